import assert from "node:assert/strict";
import { blockValues } from "../../../src/model/checkpoint/quantized/blocks.ts";
import { convertCheckpoint } from "../../../src/model/checkpoint/convert.ts";
import { openCheckpoint } from "../../../src/model/checkpoint/checkpoint.ts";
import { parseModelConfig } from "../../../src/model/config/config.ts";
import { quantizableTensors } from "../../../src/model/weights/quantizable.ts";
import { checkTarget } from "../../../src/model/weights/tensors.ts";
import { widen } from "../../../src/model/files/widen.ts";
import { dequantized } from "../../../src/model/checkpoint/quantized/dequantize.ts";
import { expertStacks } from "../../../src/model/checkpoint/quantized/expert_stacks.ts";
import { hash32 } from "../../../src/speculate/noise.ts";
import { checkpointInMemory, type Memory } from "../checkpoint_in_memory.ts";
import type { Checkpoint } from "../../../src/model/files/checkpoint_type.ts";
import type { TensorInfo } from "../../../src/model/files/safetensors.ts";

const [EXPERTS, ROWS, GROUPS] = [3, 6, 2];
const COLS = 32 * GROUPS;
const NAME = "model.layers.0.mlp.experts.down_proj";
/** Source: OCP Microscaling Formats (MX) 1.0, 5.3.3. */
const E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6];

function valueOf(code: number): number {
  return (code & 8 ? -1 : 1) * (E2M1[code & 7] ?? NaN);
}

/** U8 tensors of these bytes. */
function bytesOf(tensors: Record<string, { shape: number[]; bytes: Uint8Array }>): Checkpoint {
  const entries = Object.entries(tensors).map(([name, { shape, bytes }]): [string, TensorInfo] => [
    name,
    { name, dtype: "OTHER", dtypeName: "U8", shape, file: "model", begin: 0, size: bytes.length },
  ]);
  return {
    name: "memory",
    tensors: new Map(entries),
    json: () => undefined,
    text: () => undefined,
    read: ({ name }, offset, into) =>
      into.set(tensors[name]?.bytes.subarray(offset, offset + into.length) ?? []),
    [Symbol.dispose]: () => {},
  };
}

function mxfp4(exponent: (i: number) => number): Checkpoint {
  const count = EXPERTS * ROWS * GROUPS;
  const blocks = Uint8Array.from({ length: 16 * count }, (_, i) => hash32(1, 2, i) & 255);
  return bytesOf({
    [`${NAME}_blocks`]: { shape: [EXPERTS, ROWS, GROUPS, 16], bytes: blocks },
    [`${NAME}_scales`]: {
      shape: [EXPERTS, ROWS, GROUPS],
      bytes: Uint8Array.from({ length: count }, (_, i) => exponent(i)),
    },
  });
}

Deno.test("experts in MXFP4 are rows of one matrix: the low half of a byte is the even column", () => {
  const exponent = (i: number) => i === 5 ? 0 : 120 + i % 9;
  const stored = mxfp4(exponent);
  const view = expertStacks(stored);
  const tensor = view.tensors.get(NAME)!;
  assert.deepEqual(tensor.shape, [EXPERTS * ROWS, COLS]);
  assert.equal(tensor.dtype, "GROUPED_MXFP4");
  assert.deepEqual([...view.tensors.keys()], [NAME]);
  const rowBytes = tensor.size / (EXPERTS * ROWS);
  const bytes = new Uint8Array(4 * rowBytes);
  const first = 2;
  view.read(tensor, first * rowBytes, bytes);
  const found = dequantized(new Uint32Array(bytes.buffer), { format: "mxfp4", cols: COLS });
  const blocks = new Uint8Array(16 * EXPERTS * ROWS * GROUPS);
  stored.read(stored.tensors.get(`${NAME}_blocks`)!, 0, blocks);
  const expected = Array.from({ length: 4 * COLS }, (_, i) => {
    const at = first * COLS + i;
    const byte = blocks[at >> 1] ?? NaN;
    return valueOf(at % 2 === 0 ? byte & 15 : byte >> 4) * 2 ** (exponent(at >> 5) - 127);
  });
  assert.deepEqual([...found], expected);
});

Deno.test("a scale of MXFP4 that is too large is an error, and so are other shapes", () => {
  const view = expertStacks(mxfp4((i) => i === 7 ? 255 : 127));
  const tensor = view.tensors.get(NAME)!;
  assert.throws(() => view.read(tensor, 0, new Uint8Array(tensor.size)), {
    message: `Cannot use "memory/model": tensor "${NAME}_scales" has a scale above 2^113`,
  });
  const stored = mxfp4(() => 127);
  const without = new Map([...stored.tensors].filter(([name]) => !name.endsWith("_scales")));
  assert.throws(() => expertStacks({ ...stored, tensors: without }), /_blocks" has no scales/);
});

Deno.test("matrices of experts with biases beside them are stored by inputs, and read by outputs", () => {
  const stored: Memory = checkpointInMemory({
    [NAME]: ["BF16", EXPERTS, COLS, ROWS],
    [`${NAME}_bias`]: ["BF16", EXPERTS, ROWS],
    "model.layers.1.mlp.experts.down_proj": ["BF16", EXPERTS, ROWS, COLS],
  });
  const view = expertStacks(stored);
  const tensor = view.tensors.get(NAME)!;
  assert.deepEqual(tensor.shape, [EXPERTS * ROWS, COLS]);
  assert.deepEqual(view.tensors.get(`${NAME}_bias`)?.shape, [EXPERTS * ROWS]);
  // Another model's, which have none, are left alone.
  const other = "model.layers.1.mlp.experts.down_proj";
  assert.equal(view.tensors.get(other), stored.tensors.get(other));
  const numbers = new Uint16Array(stored.bytes(NAME).slice().buffer);
  const bytes = new Uint8Array(2 * COLS * 8);
  const first = 4; // from the first expert into the second
  view.read(tensor, 2 * COLS * first, bytes);
  const expected = Array.from({ length: 8 * COLS }, (_, i) => {
    const [row, k] = [first + Math.floor(i / COLS), i % COLS];
    const [expert, n] = [Math.floor(row / ROWS), row % ROWS];
    return numbers[(expert * COLS + k) * ROWS + n];
  });
  assert.deepEqual([...new Uint16Array(bytes.buffer)], expected);
});

Deno.test("convert quantizes experts that are stored by inputs, which are rows then", async () => {
  const from = new URL("../../golden/gpt_oss", import.meta.url).pathname;
  const parent = await Deno.makeTempDir({ prefix: "eyrie-test-" });
  try {
    const to = `${parent}/q8`;
    const quantize = { to: "q8", names: quantizableTensors } as const;
    await convertCheckpoint({ from, to, force: false, shardBytes: 1e9, quantize });
    using converted = openCheckpoint(to);
    using original = openCheckpoint(from);
    const json = converted.json("config.json");
    const config = parseModelConfig("gpt_oss", json, undefined);
    assert.deepEqual(checkTarget(converted, config), []);
    const found = converted.tensors.get(NAME)!;
    assert.equal(found.dtype, "GROUPED_Q8");
    const blocks = new Uint8Array(found.size);
    converted.read(found, 0, blocks);
    const stored = original.tensors.get(NAME)!;
    const bytes = new Uint8Array(stored.size);
    original.read(stored, 0, bytes);
    const values = blockValues(blocks, "q8");
    const expected = widen(bytes, "BF16");
    assert.equal(values.length, expected.length);
    const worst = Math.max(...values.map((value, i) => Math.abs(value - (expected[i] ?? NaN))));
    assert.ok(worst < 0.005, `${worst}`);
  } finally {
    await Deno.remove(parent, { recursive: true });
  }
});
