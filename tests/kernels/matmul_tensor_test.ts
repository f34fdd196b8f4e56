// On matrix units: near the float64 product of the very weights, and the same bits at every number of
// rows and in every shape of workgroup. Adapters have units with EYRIE_WEBGPU=dawn, if any.

import assert from "node:assert/strict";
import { matmulTensor, type TensorTile } from "../../kernels/matmul/tensor/matmul_tensor.ts";
import { rowScales } from "../../kernels/matmul/tensor/row_scales.ts";
import { halveWeights, weightScales } from "../../kernels/matmul/tensor/weight_scales.ts";
import {
  fewRows,
  type FewTile,
  matmulTensorFew,
} from "../../kernels/matmul/tensor/matmul_tensor_few.ts";
import type { Precision } from "../../src/gpu/matrices_on_units.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { openDevice } from "../gpu/device.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());
const unit = device.gpu.matrixUnit;
const ignore = unit === undefined;

const TILES: readonly TensorTile[] = [
  { subgroups: 1, grid: [1, 1], own: [1, 1], stage: 16, ahead: 1 },
  { subgroups: 3, grid: [1, 2], own: [1, 1], stage: 16, ahead: 5 },
  { subgroups: 2, grid: [2, 1], own: [1, 2], stage: 16, ahead: 1, early: true },
  // As many stages as the loop brings in its turns.
  { subgroups: 2, grid: [1, 2], own: [2, 1], stage: 16, ahead: 2 },
  { subgroups: 3, grid: [1, 2], own: [2, 1], stage: 32, ahead: 1, joined: true },
  { subgroups: 1, grid: [1, 1], own: [1, 4], stage: 16, ahead: 1, joined: true },
  { subgroups: 4, grid: [1, 3], own: [2, 1], stage: 16, ahead: 2, inTurn: true },
  { subgroups: 3, grid: [1, 1], own: [1, 1], stage: 16, ahead: 3, early: true, inTurn: true },
];

/** For few rows. */
const FEW_TILES: readonly FewTile[] = [
  { columns: 1, stage: 16, ahead: 1, branched: false },
  { columns: 2, stage: 16, ahead: 3, branched: true },
  { columns: 1, stage: 32, ahead: 2, branched: false },
  { columns: 2, stage: 32, ahead: 1, branched: true },
  { subgroups: 2, columns: 1, stage: 32, ahead: 1, branched: false },
  { subgroups: 3, columns: 2, stage: 16, ahead: 2, branched: true },
];

/** Numbers of several magnitudes, the same each time. */
function numbers(count: number, seed: number, scale: (i: number) => number): Float32Array {
  let state = seed;
  return Float32Array.from({ length: count }, (_, i) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state / 2 ** 31 - 1) * scale(i);
  });
}

/** As bf16, cut. */
function bf16(
  values: Float32Array,
): { readonly words: Uint32Array; readonly values: Float32Array } {
  const bits = new Uint32Array(values.buffer).map((word) => word & 0xffff0000);
  const words = Uint32Array.from(
    { length: bits.length / 2 },
    (_, i) => ((bits[2 * i] ?? 0) >>> 16) | (bits[2 * i + 1] ?? 0),
  );
  return { words, values: new Float32Array(bits.buffer) };
}

async function product(
  { words, matrixRows, cols }: {
    readonly words: Uint32Array;
    readonly matrixRows: number;
    readonly cols: number;
  },
  x: Float32Array,
  tile: TensorTile | FewTile,
  precision: Precision = "f32",
): Promise<{ readonly out: Float32Array; readonly faults: Uint32Array }> {
  const rows = x.length / cols;
  const [weights, input] = [device.words(words), device.floats(x)];
  const [wScales, xScales] = [device.filled(matrixRows), device.filled(rows)];
  const [faults, out] = [device.filled(matrixRows), device.filled(rows * matrixRows, 7)];
  const matrix = { rows: matrixRows, cols };
  const shard = { operand: weights, first: 0, rows: matrixRows };
  const shape = { unit: unit as MatrixUnit, rows, matrix, shard, precision, label: "test" };
  const buffers = { wScales, x: input, xScales, out };
  await device.run([
    weightScales({ weights, scales: wScales, faults }, { rows: matrixRows, cols }),
    rowScales({ x: input, scales: xScales }, { rows, cols }),
    "own" in tile
      ? matmulTensor(buffers, { ...shape, tile })
      : matmulTensorFew(buffers, { ...shape, tile }),
  ]);
  return { out: await device.readFloats(out), faults: await device.readWords(faults) };
}

const COLS = 192;
const MATRIX_ROWS = 46;
const WEIGHTS = bf16(numbers(MATRIX_ROWS * COLS, 1, (i) => 2 ** -(i / COLS % 20) / (1 + i % 300)));
const MATRIX = { words: WEIGHTS.words, matrixRows: MATRIX_ROWS, cols: COLS };
/** Rows of x from 1e-9 to 1e9, with numbers far below a row's largest. */
const X = numbers(37 * COLS, 2, (i) => 10 ** ((i / COLS | 0) % 19 - 9) / (1 + i % 1000));

for (const tile of [...TILES, ...FEW_TILES]) {
  Deno.test({
    name: `matrix units: near float64 at odd shapes, ${JSON.stringify(tile)}`,
    ignore,
    async fn() {
      const rows = "own" in tile ? X.length / COLS : fewRows(unit as MatrixUnit);
      const { out, faults } = await product(MATRIX, X.slice(0, rows * COLS), tile);
      assert.ok(faults.every((count) => count === 0));
      for (const [at, found] of out.entries()) {
        const [r, n] = [Math.floor(at / MATRIX_ROWS), at % MATRIX_ROWS];
        let [sum, size] = [0, 0];
        for (let k = 0; k < COLS; k++) {
          const term = (X[r * COLS + k] ?? 0) * (WEIGHTS.values[n * COLS + k] ?? 0);
          sum += term;
          size += Math.abs(term);
        }
        // Terms have 22 bits; sums of few large ones are rounded to 2^-23 each. f16 alone has 11 bits.
        assert.ok(Math.abs(found - sum) <= size * 2 ** -20, `${r}, ${n}: ${found}, ${sum}`);
      }
    },
  });
}

Deno.test({
  name: "matrix units: the same bits at 1 to 37 rows and in any shape of workgroup",
  ignore,
  async fn() {
    const [first, ...others] = TILES;
    const { out: whole } = await product(MATRIX, X, first as TensorTile);
    for (const tile of others) {
      const { out } = await product(MATRIX, X, tile);
      assert.deepEqual(out, whole, JSON.stringify(tile));
    }
    const { m } = unit as MatrixUnit;
    const few = fewRows(unit as MatrixUnit);
    for (const rows of [1, m / 2 - 1, m / 2, m / 2 + 1, m, m + 1, 33]) {
      for (const tile of [...TILES, ...rows > few ? [] : FEW_TILES]) {
        const { out } = await product(MATRIX, X.slice(0, rows * COLS), tile);
        assert.deepEqual(
          out,
          whole.subarray(0, rows * MATRIX_ROWS),
          `${rows} rows, ${JSON.stringify(tile)}`,
        );
      }
    }
  },
});

Deno.test({
  name:
    "matrix units: rows as one f16 are near float64 as f16 is, and have the same bits at 1 to 37 rows",
  ignore,
  async fn() {
    const [first, ...others] = TILES;
    const { out: whole } = await product(MATRIX, X, first as TensorTile, "f16");
    let rounded = 0;
    for (const [at, found] of whole.entries()) {
      const [r, n] = [Math.floor(at / MATRIX_ROWS), at % MATRIX_ROWS];
      let [sum, size] = [0, 0];
      for (let k = 0; k < COLS; k++) {
        const term = (X[r * COLS + k] ?? 0) * (WEIGHTS.values[n * COLS + k] ?? 0);
        sum += term;
        size += Math.abs(term);
      }
      // Each term is rounded to 11 bits, to the nearest.
      assert.ok(Math.abs(found - sum) <= size * 2 ** -11, `${r}, ${n}: ${found}, ${sum}`);
      if (Math.abs(found - sum) > size * 2 ** -20) rounded++;
    }
    // It is not the other precision.
    assert.ok(rounded > whole.length / 4, `${rounded} of ${whole.length}`);
    for (const tile of others) {
      assert.deepEqual((await product(MATRIX, X, tile, "f16")).out, whole, JSON.stringify(tile));
    }
    for (const rows of [1, 8, 9, 33]) {
      const few = FEW_TILES.slice(0, rows <= fewRows(unit as MatrixUnit) ? 1 : 0);
      for (const tile of [first as TensorTile, ...few]) {
        const { out } = await product(MATRIX, X.slice(0, rows * COLS), tile, "f16");
        assert.deepEqual(out, whole.subarray(0, rows * MATRIX_ROWS), `${rows} rows`);
      }
    }
  },
});

Deno.test("weights that f16 cannot hold beside their row's largest are counted", async () => {
  const rows = [
    [1, 2 ** -31, 0, -1], // 2^14 and 2^-17 once scaled
    [1, 2 ** -38, 1, 1], // 2^-24, f16's least
    [1, 2 ** -39, 1, 1],
    [1, 1.5 * 2 ** -38, -(2 ** -40), 1],
    [2 ** -80, 2 ** -100, 0, 0],
  ].map((row) => bf16(Float32Array.from(row)).words);
  const weights = device.words(rows.flatMap((words) => [...words]));
  const [scales, faults] = [device.filled(rows.length), device.filled(rows.length)];
  await device.run([weightScales({ weights, scales, faults }, { rows: rows.length, cols: 4 })]);
  assert.deepEqual([...await device.readWords(faults)], [0, 0, 1, 2, 1]);
  const expected = [14, 14, 14, 14, 74].map((power) => 2 ** power);
  assert.deepEqual([...await device.readFloats(scales)], expected);
});

Deno.test("weights become f16 times their row's scale, exactly, in place", async () => {
  const [rows, cols] = [21, 518];
  const { words, values } = bf16(
    numbers(rows * cols, 5, (i) => i % 7 === 0 ? 0 : 2 ** -(i / cols % 20) / (1 + i % 300)),
  );
  const [weights, scales] = [device.words(words), device.filled(rows)];
  const faults = device.filled(rows);
  await device.run([
    weightScales({ weights, scales, faults }, { rows, cols }),
    halveWeights({ weights, scales }, { rows, cols }),
  ]);
  assert.ok((await device.readWords(faults)).every((count) => count === 0));
  const factors = await device.readFloats(scales);
  const found = new Float16Array((await device.readWords(weights)).buffer);
  const expected = values.map((value, i) => value * (factors[Math.floor(i / cols)] ?? NaN));
  assert.deepEqual([...found], [...expected]);
});

Deno.test("weights of more rows than a dimension may have workgroups are scaled", async () => {
  const count = 70_000;
  const pair = (x: number) => [...bf16(Float32Array.of(x, 0)).words];
  const weights = device.words(
    Array.from({ length: count }, (_, row) => pair(2 ** (row % 7))).flat(),
  );
  const [scales, faults] = [device.filled(count), device.filled(count)];
  await device.run([weightScales({ weights, scales, faults }, { rows: count, cols: 2 })]);
  const found = (await device.readFloats(scales)).slice(0, count);
  assert.deepEqual([...found.map(Math.log2)], Array.from({ length: count }, (_, i) => 14 - i % 7));
});

Deno.test("the scale of a row makes its largest number one from 2^14 on", async () => {
  const x = [3, -5, 0, 1, 0, 0, 0, 0, 2 ** -70, 0, 0, 0, -3e38, 1, 1, 1];
  const scales = device.filled(4);
  await device.run([rowScales({ x: device.floats(x), scales }, { rows: 4, cols: 4 })]);
  assert.deepEqual([...await device.readFloats(scales)].map(Math.log2), [12, 74, 74, -113]);
});

for (const rows of [5, 2051]) {
  Deno.test(`the scales of ${rows} rows are those of their largest numbers`, async () => {
    const cols = 196;
    const x = numbers(rows * cols, 4, (i) => 2 ** ((i / cols | 0) % 23 - 11) / (1 + i % 50));
    const scales = device.filled(rows, 3);
    await device.run([rowScales({ x: device.floats(x), scales }, { rows, cols })]);
    const expected = Float32Array.from({ length: rows }, (_, r) => {
      const peak = Math.max(...x.subarray(r * cols, (r + 1) * cols).map(Math.abs));
      return 2 ** (14 - Math.floor(Math.log2(peak)));
    });
    assert.deepEqual(await device.readFloats(scales), expected);
  });
}
