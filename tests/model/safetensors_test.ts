import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { UsageError } from "../../src/errors.ts";
import {
  headerSize,
  MAX_HEADER_BYTES,
  parseHeader,
  type TensorInfo,
} from "../../src/model/files/safetensors.ts";
import { safetensors } from "./folders.ts";

const PATH = "dir/model.safetensors";

function parse(file: Uint8Array): TensorInfo[] {
  const where = { path: PATH, file: "model.safetensors", size: file.length };
  const size = headerSize(file.subarray(0, 8), where);
  return parseHeader(file.subarray(8, 8 + size), where);
}

function parseEntries(entries: unknown, dataBytes: number): TensorInfo[] {
  return parse(safetensors(entries, dataBytes));
}

function rejects(file: Uint8Array, message: RegExp): void {
  assert.throws(() => parse(file), (error: unknown) => {
    assert.ok(error instanceof UsageError, String(error));
    assert.ok(error.message.startsWith(`Cannot read "${PATH}": `), error.message);
    assert.match(error.message, message);
    return true;
  });
}

Deno.test("a header gives every tensor its place in the file", () => {
  const header = {
    __metadata__: { format: "pt" },
    b: { dtype: "BF16", shape: [2, 3], data_offsets: [8, 20] },
    a: { dtype: "I64", shape: [1], data_offsets: [0, 8] },
    scalar: { dtype: "F32", shape: [], data_offsets: [20, 24] },
    none: { dtype: "F32", shape: [0, 5], data_offsets: [24, 24] },
  };
  const start = 8 + JSON.stringify(header).length;
  const tensors = parseEntries(header, 24);
  assert.deepEqual(tensors.map(({ name }) => name), ["a", "b", "scalar", "none"]);
  assert.deepEqual(tensors[1], {
    name: "b",
    dtype: "BF16",
    dtypeName: "BF16",
    shape: [2, 3],
    file: "model.safetensors",
    begin: start + 8,
    size: 12,
  });
});

Deno.test("a dtype that is not read is kept, marked", () => {
  const fp8 = { dtype: "F8_E4M3", shape: [4], data_offsets: [0, 4] };
  const future = { dtype: "F4", shape: [4], data_offsets: [4, 6] };
  const tensors = parseEntries({ fp8, future }, 6);
  assert.deepEqual(tensors.map((t) => [t.dtype, t.dtypeName]), [["OTHER", "F8_E4M3"], [
    "OTHER",
    "F4",
  ]]);
});

const GOOD = { dtype: "F32", shape: [2], data_offsets: [0, 8] };

for (
  const [what, entry, message] of [
    ["not an object", 7, /tensor "x" is not described by an object/],
    ["no dtype", { ...GOOD, dtype: undefined }, /tensor "x" has dtype undefined/],
    ["a negative size", { ...GOOD, shape: [-2] }, /tensor "x" has shape \[-2\]/],
    ["a fraction", { ...GOOD, shape: [1.5] }, /tensor "x" has shape \[1.5\]/],
    ["a word as shape", { ...GOOD, shape: "2" }, /tensor "x" has shape "2"/],
    ["a wild product", { ...GOOD, shape: [2 ** 40, 2 ** 40, 0] }, /too large/],
    ["one offset", { ...GOOD, data_offsets: [0] }, /tensor "x" has offsets \[0\]/],
    ["offsets backwards", { ...GOOD, data_offsets: [8, 0] }, /ends at byte 0 before/],
    ["a wrong size", { ...GOOD, shape: [3] }, /has 8 bytes, but F32 \[3\] takes 12/],
    ["an end past the file", { ...GOOD, data_offsets: [4, 12] }, /tensor "x" is truncated/],
    ["__proto__ as dtype", { ...GOOD, dtype: 5 }, /has dtype 5/],
    ["a dtype of two lines", { ...GOOD, dtype: "F9\n" }, /has dtype "F9\\n"/],
    ["a code of terminals as dtype", { ...GOOD, dtype: "\x1b[2J" }, /has dtype "\\u001b\[2J"/],
    ["a dtype without end", { ...GOOD, dtype: "F".repeat(1e6) }, /has dtype "F{119}…/],
  ] as const
) {
  Deno.test(`a tensor with ${what} is an error that names it`, () => {
    rejects(safetensors({ x: entry }, 8), message);
  });
}

Deno.test("tensors that overlap are an error that names both", () => {
  rejects(
    safetensors({ x: GOOD, y: { ...GOOD, data_offsets: [4, 12] } }, 12),
    /tensors "x" and "y" overlap/,
  );
});

Deno.test("bytes that no tensor claims are an error that says where they are", () => {
  const at = (begin: number) => ({ ...GOOD, data_offsets: [begin, begin + 8] });
  rejects(safetensors({ x: at(4) }, 12), /4 bytes before tensor "x" belong to none/);
  rejects(safetensors({ x: at(0), y: at(16) }, 24), /8 bytes before tensor "y" belong to none/);
  rejects(safetensors({ x: at(0) }, 9), /1 bytes after the last tensor belong to none/);
});

Deno.test("a tensor named twice is an error, however the name is escaped", () => {
  const entry = JSON.stringify(GOOD);
  rejects(safetensors(`{"x":${entry},"\\u0078":${entry}}`, 8), /tensor "x" is named twice/);
});

Deno.test("a key repeated inside strings and nested objects is no duplicate", () => {
  const meta = { x: 'x"}, "x": {', y: "\\" };
  assert.equal(parseEntries({ __metadata__: meta, x: GOOD }, 8).length, 1);
});

Deno.test("a broken start is an error", () => {
  rejects(new Uint8Array(5), /truncated: 5 bytes/);
  rejects(new Uint8Array(8), /header is not JSON/);
  rejects(safetensors("[]", 0), /not a JSON object/);
  rejects(safetensors('{"x":', 0), /header is not JSON/);
  rejects(Uint8Array.of(200, 0, 0, 0, 0, 0, 0, 0, 123), /truncated: 9 bytes/);
  rejects(new Uint8Array(16).fill(255), /not a safetensors file/);
  assert.throws(
    () => headerSize(new Uint8Array(8).fill(127), { path: PATH, file: "", size: 2 ** 52 }),
    UsageError,
  );
  assert.ok(MAX_HEADER_BYTES <= 1e8);
});

/** Parsing gives tensors inside the file or a UsageError, nothing else. */
function holds(file: Uint8Array): void {
  try {
    for (const { begin, size } of parse(file)) assert.ok(begin >= 8 && begin + size <= file.length);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    assert.ok(error.message.length < 600 && !error.message.includes("\n"), error.message);
  }
}

Deno.test("random bytes never do worse than a UsageError", () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), holds), { numRuns: 500 });
});

Deno.test("random JSON headers never do worse than a UsageError", () => {
  const number = fc.oneof(fc.integer({ min: -4, max: 40 }), fc.double(), fc.maxSafeNat());
  const entry = fc.record({
    dtype: fc.oneof(fc.constantFrom("F32", "BF16", "I64", "U8", "toString"), fc.jsonValue()),
    shape: fc.oneof(fc.array(number, { maxLength: 4 }), fc.jsonValue()),
    data_offsets: fc.oneof(fc.tuple(number, number), fc.jsonValue()),
  }, { requiredKeys: [] });
  const header = fc.dictionary(fc.string(), fc.oneof(entry, fc.jsonValue()), { maxKeys: 5 });
  fc.assert(
    fc.property(header, fc.nat({ max: 64 }), (json, data) => holds(safetensors(json, data))),
    { numRuns: 500 },
  );
});

Deno.test("a valid file with one byte changed never does worse than a UsageError", () => {
  const file = safetensors({ x: GOOD, y: { ...GOOD, data_offsets: [8, 16] } }, 16);
  const change = fc.tuple(fc.nat({ max: file.length - 1 }), fc.nat({ max: 255 }));
  fc.assert(
    fc.property(change, ([at, byte]) => holds(file.with(at, byte))),
    { numRuns: 500 },
  );
});

Deno.test("a valid file cut anywhere is an error", () => {
  const file = safetensors({ x: GOOD }, 8);
  for (let end = 0; end < file.length; end++) rejects(file.subarray(0, end), /truncated/);
});
