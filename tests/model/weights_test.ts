import assert from "node:assert/strict";
import type { Gpu } from "../../src/gpu/device.ts";
import type { Matrix, Shard } from "../../src/gpu/matrix.ts";
import type { WeightFormat } from "../../src/gpu/weight_format.ts";
import type { DType, TensorInfo } from "../../src/model/files/safetensors.ts";
import { openQuantizer } from "../../src/model/weights/quantizer.ts";
import { widen } from "../../src/model/files/widen.ts";
import { openDevice } from "../gpu/device.ts";
import { BYTES, checkpointInMemory, join } from "./checkpoint_in_memory.ts";
import { loader } from "./loaders.ts";
import { bothOf } from "./quantized/checkpoints.ts";
import { LAYOUTS } from "./quantized/layouts.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

/** The device with a smaller limit on what one binding holds. */
function limited(bytes: number): Gpu {
  const limits = { maxStorageBufferBindingSize: bytes, maxBufferSize: 1 << 30 };
  return { ...device.gpu, limits: limits as GPUSupportedLimits };
}

async function assertShards(matrix: Matrix, expected: readonly Uint8Array[][]): Promise<void> {
  assert.equal(matrix.shards.length, expected.length);
  for (const [i, parts] of expected.entries()) {
    const words = await device.readWords((matrix.shards[i] as Shard).operand);
    assert.deepEqual(new Uint8Array(words.buffer), join(parts), `shard ${i}`);
  }
}

const cuts = ({ shards }: Matrix) => shards.map(({ first, rows }) => [first, rows]);

const FORMATS: readonly [DType, WeightFormat][] = [["BF16", "bf16"], ["F16", "f16"], [
  "F32",
  "f32",
]];

for (const [dtype, format] of FORMATS) {
  Deno.test(`weights: tensors of ${dtype} stack into one matrix as they are`, async () => {
    const memory = checkpointInMemory({ q: [dtype, 6, 16], k: [dtype, 2, 16], v: [dtype, 4, 16] });
    let loaded = 0;
    const load = loader(device.gpu, memory, { onBytes: (bytes) => loaded += bytes });
    const matrix = load.matrix("qkv", ["q", "k", "v"].map(memory.tensor));
    const { rows, cols } = matrix;
    assert.deepEqual({ format: matrix.format, rows, cols }, { format, rows: 12, cols: 16 });
    assert.deepEqual(cuts(matrix), [[0, 12]]);
    assert.equal(matrix.shards[0]?.operand.buffer.label, "qkv");
    await assertShards(matrix, [["q", "k", "v"].map(memory.bytes)]);
    assert.equal(loaded, 12 * 16 * (BYTES[dtype] ?? NaN));
  });
}

Deno.test("weights: an odd number of rows gets one of zeros", async () => {
  const memory = checkpointInMemory({ head: ["BF16", 7, 8] });
  const matrix = loader(device.gpu, memory).matrix("head", [memory.tensor("head")]);
  assert.deepEqual([matrix.rows, ...cuts(matrix)], [8, [0, 8]]);
  await assertShards(matrix, [[memory.bytes("head"), new Uint8Array(16)]]);
});

Deno.test("weights: a matrix past the binding limit is cut, across its tensors", async () => {
  const memory = checkpointInMemory({ q: ["F32", 6, 8], k: ["F32", 4, 8], v: ["F32", 5, 8] });
  // A row takes 32 bytes, so 6 fit; shards hold a multiple of 4.
  const matrix = loader(limited(200), memory).matrix("qkv", ["q", "k", "v"].map(memory.tensor));
  assert.equal(matrix.rows, 16);
  assert.deepEqual(cuts(matrix), [[0, 4], [4, 4], [8, 4], [12, 4]]);
  assert.deepEqual(matrix.shards.map(({ operand }) => operand.buffer.label), [
    "qkv#0",
    "qkv#1",
    "qkv#2",
    "qkv#3",
  ]);
  await assertShards(matrix, [
    [memory.rows("q", 0, 4)],
    [memory.rows("q", 4, 6), memory.rows("k", 0, 2)],
    [memory.rows("k", 2, 4), memory.rows("v", 0, 2)],
    [memory.rows("v", 2, 5), new Uint8Array(32)],
  ]);
});

Deno.test("weights: a tensor longer than a shard runs over several; the last is short", async () => {
  const memory = checkpointInMemory({ head: ["F16", 18, 8] });
  const matrix = loader(limited(16 * 8), memory).matrix("head", [memory.tensor("head")]);
  assert.deepEqual(cuts(matrix), [[0, 8], [8, 8], [16, 2]]);
  const parts = [[0, 8], [8, 16], [16, 18]] as const;
  await assertShards(matrix, parts.map(([from, to]) => [memory.rows("head", from, to)]));
});

Deno.test("weights: a pair is [a; b] in one shard", async () => {
  const memory = checkpointInMemory({ gate: ["BF16", 5, 8], up: ["BF16", 5, 8] });
  const load = loader(device.gpu, memory);
  const matrix = load.pair("gateUp", memory.tensor("gate"), memory.tensor("up"));
  assert.deepEqual([matrix.rows, ...cuts(matrix)], [10, [0, 10]]);
  assert.equal(matrix.rowOrder, "gate_up");
  await assertShards(matrix, [[memory.bytes("gate"), memory.bytes("up")]]);
});

Deno.test("weights: each shard of a pair holds both halves of the same rows", async () => {
  const memory = checkpointInMemory({ gate: ["F32", 11, 8], up: ["F32", 11, 8] });
  const load = loader(limited(8 * 32), memory);
  const matrix = load.pair("gateUp", memory.tensor("gate"), memory.tensor("up"));
  assert.equal(matrix.rows, 22);
  // `first` counts output columns: rows of gate, not of the stack.
  assert.deepEqual(cuts(matrix), [[0, 8], [4, 8], [8, 6]]);
  const parts = [[0, 4], [4, 8], [8, 11]] as const;
  await assertShards(
    matrix,
    parts.map(([from, to]) => [memory.rows("gate", from, to), memory.rows("up", from, to)]),
  );
});

Deno.test("weights: each shard of heads holds first halves and then second halves", async () => {
  // Heads of 8 rows: two of q, one of k, one of v.
  const memory = checkpointInMemory({ q: ["F32", 16, 8], k: ["F32", 8, 8], v: ["F32", 8, 8] });
  const tensors = { turned: ["q", "k"].map(memory.tensor), plain: [memory.tensor("v")] };
  const half = (name: string, head: number, second: 0 | 1) =>
    memory.rows(name, 8 * head + 4 * second, 8 * head + 4 * second + 4);
  const whole = loader(device.gpu, memory).heads("qkv", tensors, { headDim: 8, width: 8 });
  assert.deepEqual([whole.rows, ...cuts(whole)], [32, [0, 32]]);
  assert.equal(whole.rowOrder, "rope_halves");
  const heads = [["q", 0], ["q", 1], ["k", 0], ["v", 0]] as const;
  await assertShards(whole, [
    [...heads.map(([name, head]) => half(name, head, 0))].concat(
      heads.map(([name, head]) => half(name, head, 1)),
    ),
  ]);
  // Six pairs a shard: cut inside a head.
  const cut = loader(limited(12 * 32), memory).heads("qkv", tensors, { headDim: 8, width: 8 });
  assert.deepEqual(cuts(cut), [[0, 12], [6, 12], [12, 8]]);
  await assertShards(cut, [
    [half("q", 0, 0), memory.rows("q", 8, 10), half("q", 0, 1), memory.rows("q", 12, 14)],
    [memory.rows("q", 10, 12), half("k", 0, 0), memory.rows("q", 14, 16), half("k", 0, 1)],
    [half("v", 0, 0), half("v", 0, 1)],
  ]);
});

Deno.test("weights: where a rope turns a part of a head, halves of it come before those of the rest", async () => {
  const memory = checkpointInMemory({ q: ["F32", 16, 8], v: ["F32", 16, 8] });
  const tensors = { turned: [memory.tensor("q")], plain: [memory.tensor("v")] };
  const matrix = loader(device.gpu, memory).heads("qkv", tensors, { headDim: 16, width: 12 });
  const parts = [["q", 0, 6], ["q", 12, 14], ["v", 0, 8], ["q", 6, 12], ["q", 14, 16], [
    "v",
    8,
    16,
  ]];
  await assertShards(matrix, [
    parts.map(([name, from, to]) => memory.rows(name as string, from as number, to as number)),
  ]);
});

Deno.test("weights: no read is larger than 4 MiB, and chunks meet without a seam", async () => {
  const cols = 1000;
  const memory = checkpointInMemory({ a: ["BF16", 2201, cols], b: ["BF16", 2200, cols] });
  let [loaded, chunks] = [0, 0];
  const load = loader(device.gpu, memory, {
    onBytes: (bytes) => {
      loaded += bytes;
      chunks++;
    },
  });
  const matrix = load.matrix("wide", [memory.tensor("a"), memory.tensor("b")]);
  assert.equal(memory.largest, 4 << 20);
  assert.deepEqual([loaded, chunks], [4401 * cols * 2, 4]);
  const words = await device.readWords((matrix.shards[0] as Shard).operand);
  const expected = join([memory.bytes("a"), memory.bytes("b"), new Uint8Array(cols * 2)]);
  // deepEqual takes seconds for this many elements.
  const actual = new Uint8Array(words.buffer);
  assert.equal(actual.length, expected.length);
  assert.equal(actual.findIndex((byte, i) => byte !== expected[i]), -1);
});

Deno.test("weights: tensors that do not match are the checkpoint's fault", () => {
  const memory = checkpointInMemory({
    q: ["BF16", 4, 8],
    narrow: ["BF16", 4, 4],
    ids: ["I64", 4, 8],
  });
  const load = loader(device.gpu, memory);
  const stack = (...names: string[]) => () => load.matrix("m", names.map(memory.tensor));
  assert.throws(stack("q", "narrow"), {
    name: "UsageError",
    message: 'Cannot load "memory": tensor "narrow" is BF16 [4,4], it must match "q", BF16 [4,8]',
  });
  assert.throws(stack("ids"), /Cannot load "memory": tensor "ids" is I64/);
});

Deno.test("weights: tensors of several types in one matrix become float32 exactly", async () => {
  const memory = checkpointInMemory({
    bf16: ["BF16", 6, 16],
    f16: ["F16", 6, 16],
    f32: ["F32", 4, 16],
  });
  const f32 = (name: string) => {
    const { dtype } = memory.tensor(name);
    return new Uint8Array(widen(memory.bytes(name), dtype).buffer);
  };
  const rows = (name: string, from: number, to: number) => f32(name).subarray(64 * from, 64 * to);
  const tensors = ["bf16", "f16", "f32"].map(memory.tensor) as [TensorInfo, TensorInfo, TensorInfo];
  let loaded = 0;
  const load = loader(limited(8 * 64), memory, { onBytes: (bytes) => loaded += bytes });
  const matrix = load.matrix("m", tensors);
  assert.equal(matrix.format, "f32");
  await assertShards(matrix, [
    [f32("bf16"), rows("f16", 0, 2)],
    [rows("f16", 2, 6), f32("f32")],
  ]);
  assert.equal(loaded, (6 + 6) * 16 * 2 + 4 * 16 * 4);
  const pair = load.pair("p", tensors[0], tensors[1]);
  await assertShards(pair, [
    [rows("bf16", 0, 4), rows("f16", 0, 4)],
    [rows("bf16", 4, 6), rows("f16", 4, 6)],
  ]);
});

Deno.test("weights: a vector is widened to f32 exactly", async () => {
  const memory = checkpointInMemory({ bf16: ["BF16", 5], f16: ["F16", 6], f32: ["F32", 7] });
  let loaded = 0;
  const load = loader(device.gpu, memory, { onBytes: (bytes) => loaded += bytes });
  for (const name of ["bf16", "f16", "f32"]) {
    const tensor = memory.tensor(name);
    const words = await device.readWords(load.vector(name, tensor));
    const expected = widen(memory.bytes(name), tensor.dtype);
    assert.deepEqual(words.slice(0, expected.length), new Uint32Array(expected.buffer));
  }
  assert.equal(loaded, 5 * 2 + 6 * 2 + 7 * 4);
});

Deno.test("weights: widen knows the values of each type", () => {
  const bytes = (...halves: number[]) => new Uint8Array(Uint16Array.from(halves).buffer);
  // 1, -2, the smallest subnormal, infinity
  const bf16 = widen(bytes(0x3f80, 0xc000, 0x0001, 0x7f80), "BF16");
  assert.deepEqual([...bf16], [1, -2, 2 ** -133, Infinity]);
  const f16 = widen(bytes(0x3c00, 0xc000, 0x0001, 0x7c00), "F16");
  assert.deepEqual([...f16], [1, -2, 2 ** -24, Infinity]);
  const f32 = Float32Array.of(0.1, -3e38);
  assert.deepEqual(widen(new Uint8Array(f32.buffer), "F32"), f32);
  // A view that does not begin where its buffer does.
  const view = new Uint8Array(Uint16Array.of(9, 0x3f80).buffer, 2);
  assert.deepEqual([...widen(view, "BF16")], [1]);
});

Deno.test("a table that is quantized becomes float32", async () => {
  const { quantized, values } = bothOf(LAYOUTS["fp8, blocks"]!);
  const name = "model.layers.0.mlp.down_proj.weight";
  const table = loader(device.gpu, quantized).table("table", quantized.tensors.get(name)!);
  assert.equal(table.format, "f32");
  const words = await device.readWords(table.shards[0]!.operand);
  assert.deepEqual(new Float32Array(words.buffer), values.get(name));
});

Deno.test("quantized rows beside rows that are not become float32, and stay so", async () => {
  const { quantized, values } = bothOf(LAYOUTS["awq, groups of 128"]!);
  const [gate, embed] = ["model.layers.0.mlp.gate_proj.weight", "model.embed_tokens.weight"]
    .map((name) => quantized.tensors.get(name)!) as [TensorInfo, TensorInfo];
  using quantizer = openQuantizer(device.gpu);
  const options = { quantize: { to: "q8", quantizer } } as const;
  const matrix = loader(device.gpu, quantized, options).matrix("mixed", [gate, embed]);
  assert.equal(matrix.format, "f32");
  const plain = new Uint8Array(embed.size);
  quantized.read(embed, 0, plain);
  const words = new Uint8Array(values.get(gate.name)!.slice().buffer);
  await assertShards(matrix, [[words, new Uint8Array(widen(plain, embed.dtype).buffer)]]);
});
