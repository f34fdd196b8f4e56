import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import {
  ANY,
  both,
  type CodePoints,
  codePoints,
  except,
  utf8Ranges,
} from "../../src/grammar/rules/code_points.ts";

const point = fc.oneof(
  fc.integer({ min: 0, max: 0x10ffff }),
  fc.constantFrom(0, 0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xe000, 0xffff, 0x10000, 0x10ffff),
);
const set = fc.array(fc.tuple(point, point), { maxLength: 4 })
  .map((ranges) => codePoints(ranges.map(([a, b]) => [Math.min(a, b), Math.max(a, b)])));

const has = (set: CodePoints, at: number) => set.some(([from, to]) => from <= at && at <= to);
const isScalar = (at: number) => at < 0xd800 || at > 0xdfff;

Deno.test("UTF-8 ranges: the bytes of exactly the set's characters", () => {
  fc.assert(fc.property(set, point, (set, at) => {
    fc.pre(isScalar(at));
    const bytes = [...new TextEncoder().encode(String.fromCodePoint(at))];
    const fits = utf8Ranges(set).filter((ranges) =>
      ranges.length === bytes.length &&
      ranges.every(([from, to], i) => from <= Number(bytes[i]) && Number(bytes[i]) <= to)
    );
    assert.equal(fits.length, has(set, at) ? 1 : 0);
  }));
});

Deno.test("except and both", () => {
  fc.assert(fc.property(set, set, point, (a, b, at) => {
    assert.equal(has(except(a), at), isScalar(at) && !has(a, at));
    assert.equal(has(both(a, b), at), has(a, at) && has(b, at));
  }));
  assert.deepEqual(except([]), ANY);
});
