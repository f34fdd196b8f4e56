import assert from "node:assert/strict";
import { hash32 } from "../../src/speculate/noise.ts";
import { casesOf } from "./array.ts";
import { type Case, isPossible, RUN_AXES } from "./axes.ts";
import { coveringArray } from "./pairs.ts";

Deno.test("every pair of values that is possible is in a case, whatever the seed", () => {
  for (const seed of [1, 2]) {
    const cases = casesOf(seed);
    assert.ok(cases.every(isPossible));
    const names = Object.keys(RUN_AXES) as (keyof Case)[];
    for (const [i, a] of names.entries()) {
      for (const b of names.slice(i + 1)) {
        for (const valueA of RUN_AXES[a]) {
          for (const valueB of RUN_AXES[b]) {
            if (!isPossible({ [a]: valueA, [b]: valueB })) continue;
            const has = cases.some((each) => each[a] === valueA && each[b] === valueB);
            assert.ok(has, `seed ${seed}: ${a} ${valueA}, ${b} ${valueB}`);
          }
        }
      }
    }
  }
});

Deno.test("a few cases have all pairs of many", () => {
  let at = 0;
  const axes = { a: [0, 1], b: [0, 1], c: [0, 1], d: [0, 1], e: [0, 1] };
  const cases = coveringArray(axes, () => true, () => hash32(7, at++, 5) / 2 ** 32);
  assert.ok(cases.length <= 8, `${cases.length} of 32`);
  const given = [{ a: 1, b: 1, c: 1, d: 1, e: 1 }] as const;
  const more = coveringArray(axes, () => true, () => hash32(7, at++, 5) / 2 ** 32, { given });
  assert.deepEqual(more[0], given[0]);
  assert.ok(more.length <= 9, `${more.length} of 32`);
});

Deno.test("a pair that no configuration has is an error", () => {
  const axes = { a: [0, 1], b: [0, 1], c: [0, 1] };
  const never = ({ a, b, c }: { a?: number; b?: number; c?: number }) =>
    !(a === 1 && b === 1 && c !== undefined);
  assert.throws(() => coveringArray(axes, never, () => 0.5), /no configuration has/);
});
