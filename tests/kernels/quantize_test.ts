import assert from "node:assert/strict";
import { quantize } from "../../kernels/matmul/quantize.ts";
import {
  type FloatFormat,
  isQuantizable,
  lanesFor,
  type Quantization,
} from "../../src/gpu/weight_format.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers, shuffled } from "../gpu/numbers.ts";
import { packed, weights } from "./matrices.ts";
import { emptyQuantized, pack, quantizedTo, scaleOf } from "./quantized.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

interface Case {
  readonly from: FloatFormat;
  readonly to: Quantization;
  readonly rows: number;
  readonly cols: number;
  /** Lanes of the adapter. */
  readonly most: number;
}

/** Packs `values` on the GPU, row r as row `order[r]`, and compares every bit. */
async function assertPacked(values: Float32Array, of: Case, order: readonly number[]) {
  const { from, to: format, rows, cols } = of;
  const matrix = emptyQuantized(device, { ...of, format });
  const source = device.words(packed(from, values));
  const places = device.words(order);
  await device.run([quantize({ source, rows: places }, matrix, { shard: 0, rows, from })]);
  const placed = new Float32Array(values.length);
  for (const [r, place] of order.entries()) {
    placed.set(values.subarray(r * cols, (r + 1) * cols), place * cols);
  }
  const expected = pack(placed, { format, cols, lanes: matrix.lanes });
  const { operand, scales } = matrix.shards[0] ?? {};
  assert.ok(operand && scales);
  assert.deepEqual(await device.readWords(scales), expected.scales);
  assert.deepEqual(await device.readWords(operand), expected.words);
}

const FORMATS = ["q8", "q4"] as const;

for (const to of FORMATS) {
  for (const from of ["bf16", "f16", "f32"] as const) {
    // 704 = 64 * 11 leaves 2 (q4) or 4 (q8) of 32 lanes, 64 the same; 1024 leaves all.
    for (const [cols, most] of [[64, 1], [704, 1], [704, 2], [704, 32], [1024, 4], [1024, 32]]) {
      const of = { from, to, rows: 6, cols, most } as Case;
      Deno.test(`quantize: ${from} to ${to}, ${cols} wide, ${most} lanes`, async () => {
        await assertPacked(weights(from, 6, of.cols), of, shuffled(6, 1));
      });
    }
  }

  Deno.test(`quantize: ${to}, many rows of one word of scales each`, async () => {
    const rows = 3000;
    const of = { from: "bf16", to, rows, cols: 64, most: 32 } as const;
    await assertPacked(weights("bf16", rows, 64), of, shuffled(rows, 2));
  });

  Deno.test(`quantize: ${to}, sizes from under the least scale to past the largest`, async () => {
    // A group each: powers of two, with neighbours that f16 scales round to both sides.
    const sizes = Array.from(
      { length: 160 },
      (_, i) => 2 ** (Math.floor(i / 2) - 50) * (1 + i % 2 / 3),
    );
    const values = Float32Array.from(numbers(160 * 32, 9), (x, i) => x * (sizes[i >> 5] ?? 0));
    const of = { from: "f32", to, rows: 10, cols: 512, most: 4 } as const;
    await assertPacked(values, of, shuffled(10, 3));
  });

  Deno.test(`quantize: ${to}, ties, zeros, equal sizes of both signs`, async () => {
    const groups = [
      Array(32).fill(0),
      Array(32).fill(-0),
      Array.from({ length: 32 }, (_, i) => (i - 16) / 2), // halves of the scale, -8 the largest
      Array.from({ length: 32 }, (_, i) => (16 - i) / 2),
      Array.from({ length: 32 }, (_, i) => i % 2 ? 127 : -127),
      Array.from({ length: 32 }, (_, i) => i === 0 ? 127 : i - 15.5), // scale 1 in q8
      Array.from({ length: 32 }, (_, i) => i === 31 ? -1e-30 : 0),
      Array.from({ length: 32 }, (_, i) => i === 7 ? 3e38 : 1),
    ];
    const of = { from: "f32", to, rows: 2, cols: 128, most: 32 } as const;
    await assertPacked(Float32Array.from(groups.flat()), of, [0, 1]);
  });
}

Deno.test("quantize: the reference rounds to the nearest, the largest weight fits", () => {
  assert.equal(scaleOf("q8", Float32Array.of(-127, 3)), 1);
  assert.deepEqual([-127, 0.5, 0.51, -0.5, 3].map((w) => quantizedTo("q8", w, 1)), [
    -127,
    0,
    1,
    -1,
    3,
  ]);
  // Q4_0 of llama.cpp: the largest is -8 times the scale.
  assert.equal(scaleOf("q4", Float32Array.of(16, -15)), -2);
  assert.equal(quantizedTo("q4", 16, -2), -8);
  assert.equal(quantizedTo("q4", -16, -2), 7);
  assert.equal(scaleOf("q4", Float32Array.of(1e9)), -65504);
});

Deno.test("lanes: the most that give every lane whole packed blocks", () => {
  assert.deepEqual([64, 96, 704, 32, 100].map(isQuantizable), [true, false, true, false, false]);
  assert.equal(lanesFor("bf16", 704, 32), 32);
  assert.deepEqual([64, 704, 4096, 14336].map((cols) => lanesFor("q8", cols, 32)), [4, 4, 32, 32]);
  assert.deepEqual([64, 704, 4096, 11008].map((cols) => lanesFor("q4", cols, 32)), [2, 2, 32, 8]);
  assert.equal(lanesFor("q4", 4096, 1), 1);
});
