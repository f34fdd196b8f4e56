// Normed rows as two f16 numbers for matrix units: near the float64 norm, and the same products to the bit as of
// f32 rows. Products need units: EYRIE_WEBGPU=dawn, where the adapter has any.

import assert from "node:assert/strict";
import { rmsNorm, type RowScales } from "../../kernels/norm/rms_norm.ts";
import { takesF16 } from "../../kernels/matmul/tensor/matmul_on_units.ts";
import {
  fewRows,
  type FewTile,
  matmulTensorFew,
} from "../../kernels/matmul/tensor/matmul_tensor_few.ts";
import { matmulTensor, type TensorTile } from "../../kernels/matmul/tensor/matmul_tensor.ts";
import { weightScales } from "../../kernels/matmul/tensor/weight_scales.ts";
import type { Precision, TensorMatrices } from "../../src/gpu/matrices_on_units.ts";
import type { Matrix } from "../../src/gpu/matrix.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());
const { matrixUnit: unit, limits } = device.gpu;

const [ROWS, COLS, MATRIX_ROWS] = [11, 320, 38];
const EPS = 1e-5;
const X = numbers(ROWS * COLS, 3).map((value, i) => value * 10 ** (Math.floor(i / COLS) % 9 - 4));
const WEIGHT = numbers(COLS, 4);

/** Rows of X normed, and their scales. */
async function normed(put: "store" | "pair") {
  const stored: RowScales = {
    normed: device.filled(ROWS),
    reduced: device.filled(2 * ROWS),
    stride: ROWS,
    jobs: 1,
  };
  const out = device.filled(ROWS * COLS, 9);
  await device.run(
    rmsNorm({ from: { x: device.floats(X) }, weight: device.floats(WEIGHT), out, scales: stored }, {
      rows: ROWS,
      cols: COLS,
      eps: EPS,
      lanes: tuning(true).rowLanes,
      put,
      label: "test",
    }),
  );
  return { out, scales: stored.normed };
}

Deno.test("rows of pairs are the float64 norm times the row's scale, in two f16 numbers", async () => {
  const { out, scales } = await normed("pair");
  const halves = new Float16Array((await device.readWords(out)).buffer);
  const factors = await device.readFloats(scales);
  assert.deepEqual(factors, await device.readFloats((await normed("store")).scales));
  for (let r = 0; r < ROWS; r++) {
    const row = X.subarray(r * COLS, (r + 1) * COLS);
    const square = row.reduce((sum, x) => sum + x * x, 0) / COLS;
    const expected = Array.from(row, (x, c) => x / Math.sqrt(square + EPS) * (WEIGHT[c] ?? NaN));
    const largest = Math.max(...expected.map(Math.abs));
    const scale = factors[r] ?? NaN;
    assert.ok(largest * scale >= 2 ** 14 * (1 - 1e-6) && largest * scale <= 2 ** 15);
    for (const [c, y] of expected.entries()) {
      const [hi = NaN, lo = NaN] = [halves[2 * r * COLS + c], halves[(2 * r + 1) * COLS + c]];
      assert.ok(
        Math.abs(lo) <= Math.max(Math.abs(hi), 2 ** -14) * 2 ** -10,
        `${r}, ${c}: ${hi}, ${lo}`,
      );
      // f16 has nothing below 2^-24, and f32 norms are rounded.
      assert.ok(Math.abs(hi + lo - y * scale) <= Math.abs(y * scale) * 2 ** -18 + 2 ** -24);
    }
  }
});

const TILES: readonly (TensorTile | FewTile)[] = [
  { columns: 1, stage: 32, ahead: 2, branched: false },
  { columns: 2, stage: 32, ahead: 1, branched: true },
  { subgroups: 2, columns: 1, stage: 32, ahead: 2, branched: false },
  { subgroups: 3, grid: [1, 2], own: [1, 1], stage: 64, ahead: 2 },
  { subgroups: 2, grid: [2, 1], own: [1, 2], stage: 32, ahead: 1, early: true, joined: true },
];

for (const tile of TILES) {
  Deno.test({
    name: `rows of pairs give the bits of f32 rows, ${JSON.stringify(tile)}`,
    ignore: unit === undefined,
    async fn() {
      if (!unit) return;
      const words = numbers(MATRIX_ROWS * COLS / 2, 5);
      const weights = device.words(new Uint32Array(words.buffer).map((word) => word & 0xbfffbfff));
      const [wScales, faults] = [device.filled(MATRIX_ROWS), device.filled(MATRIX_ROWS)];
      const matrix = { rows: MATRIX_ROWS, cols: COLS };
      await device.run([weightScales({ weights, scales: wScales, faults }, matrix)]);
      const shard = { operand: weights, first: 0, rows: MATRIX_ROWS };
      const rows = "own" in tile ? ROWS : Math.min(ROWS, fewRows(unit));
      const [plain, fromF16] = await Promise.all((["store", "pair"] as const).map(async (put) => {
        const { out: x, scales: xScales } = await normed(put);
        const out = device.filled(rows * MATRIX_ROWS, 7);
        const of = { unit, rows, matrix, shard, xIsF16: put === "pair", label: "test" };
        const buffers = { x, xScales, wScales, out };
        await device.run([
          "own" in tile
            ? matmulTensor(buffers, { ...of, tile })
            : matmulTensorFew(buffers, { ...of, tile }),
        ]);
        return await device.readWords(out);
      }));
      assert.deepEqual(fromF16, plain);
      assert.ok(new Set(plain).size > MATRIX_ROWS);
    },
  });
}

Deno.test("x is f16 for two rows and more on matrix units, two numbers each in rounds with --precision f32", () => {
  const shard = { operand: device.filled(4), first: 0, rows: 2 };
  const matrix: Matrix = {
    format: "bf16",
    rowOrder: "stacked",
    rows: 2,
    cols: 64,
    lanes: 1,
    shards: [shard],
  };
  const shards = new Map([[shard, { scales: device.filled(2), stored: "f16" as const }]]);
  const units = { m: 16, n: 16, k: 16, lanes: 32 };
  const of = (rows: number, { bound = 1, precision, none = false, ...more }: {
    bound?: number;
    precision?: Precision;
    format?: "q8";
    none?: boolean;
  } = {}) => {
    const tensor: TensorMatrices = {
      unit: units,
      precision,
      shards,
      experts: new Map(),
      xScales: device.filled(1),
      limits: { ...limits, maxStorageBuffersPerShaderStage: 10 },
    };
    const rules = { ...tuning(false), ...none ? {} : { tensor } };
    return takesF16({ ...matrix, ...more }, { rows, bound, tuning: rules });
  };
  const pair = { put: "pair", before: false };
  const half = { put: "half", before: false };
  const before = { put: "half", before: true };
  assert.deepEqual([1, 2, 64, 65].map((rows) => of(rows)), [undefined, pair, pair, undefined]);
  assert.deepEqual(
    [1, 2, 64, 65, 1024].map((rows) => of(rows, { precision: "f16" })),
    [undefined, half, half, before, before],
  );
  for (const precision of ["f16", "f32"] as const) {
    // One number for weights that are rounded to f16 themselves.
    assert.deepEqual([1, 16, 65].map((rows) => of(rows, { precision, format: "q8" })), [
      ...[undefined, half, before],
    ]);
    assert.equal(of(16, { precision, none: true }), undefined);
    assert.deepEqual(
      [5, 6].map((bound) => of(16, { precision, bound }) !== undefined),
      [true, false],
    );
  }
});
