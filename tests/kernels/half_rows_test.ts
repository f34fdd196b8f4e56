// Rows as f16 with a scale each for matrix units: rounded to the nearest, with the scales of `rowScales`, and the same
// products to the bit as of f32 rows. Products need units: EYRIE_WEBGPU=dawn, where the adapter has any.

import assert from "node:assert/strict";
import { rmsNorm, type RowScales } from "../../kernels/norm/rms_norm.ts";
import { halfRows } from "../../kernels/matmul/tensor/half_rows.ts";
import {
  fewRows,
  type FewTile,
  matmulTensorFew,
} from "../../kernels/matmul/tensor/matmul_tensor_few.ts";
import { matmulTensor, type TensorTile } from "../../kernels/matmul/tensor/matmul_tensor.ts";
import { rowScales } from "../../kernels/matmul/tensor/row_scales.ts";
import { weightScales } from "../../kernels/matmul/tensor/weight_scales.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());
const { matrixUnit: unit } = device.gpu;

/** More eights than a workgroup's invocations load in a turn, and not a multiple of them. */
const COLS = 8 * 523;
const ROWS = 5;

async function halved(x: Float32Array, cols: number) {
  const rows = x.length / cols;
  const [scales, out] = [device.filled(rows), device.filled(rows * cols / 2, 9)];
  await device.run([halfRows({ x: device.floats(x), scales, out }, { rows, cols, label: "test" })]);
  return { scales, out };
}

/** Random rows of very different sizes, the first of zeros. */
function randomRows(rows: number, cols: number): Float32Array {
  return numbers(rows * cols, 3).map((value, i) =>
    i < cols ? 0 : value * 10 ** (Math.floor(i / cols) % 9 - 4)
  );
}

for (const [rows, cols] of [[ROWS, COLS], [2051, 8 * 33]] as const) {
  Deno.test(`${rows} rows are rounded to f16 after their scales, a row of zeros too`, async () => {
    const x = randomRows(rows, cols);
    const { scales, out } = await halved(x, cols);
    const expected = device.filled(rows);
    await device.run([rowScales({ x: device.floats(x), scales: expected }, { rows, cols })]);
    const factors = await device.readFloats(scales);
    assert.deepEqual(factors, await device.readFloats(expected));
    const halves = new Float16Array((await device.readWords(out)).buffer);
    const rounded = Float16Array.from(x, (x, i) => x * (factors[Math.floor(i / cols)] ?? NaN));
    assert.deepEqual(halves, rounded);
  });
}

Deno.test("a norm stores the same f16 rows", async () => {
  const [rows, cols] = [7, 328];
  const weight = device.floats(numbers(cols, 4));
  const x = device.floats(numbers(rows * cols, 6));
  const normed = async (put: "store" | "half") => {
    const scales: RowScales = {
      normed: device.filled(rows),
      reduced: device.filled(2 * rows),
      stride: rows,
      jobs: 1,
    };
    const out = device.filled(rows * cols, 9);
    const { rowLanes: lanes } = tuning(true);
    const shape = { rows, cols, eps: 1e-5, lanes, put, label: "test" } as const;
    await device.run(rmsNorm({ from: { x }, weight, out, scales }, shape));
    return { out, scales: scales.normed };
  };
  const expected = await halved(await device.readFloats((await normed("store")).out), cols);
  const { out, scales } = await normed("half");
  assert.deepEqual(await device.readFloats(scales), await device.readFloats(expected.scales));
  const halves = (await device.readWords(out)).subarray(0, rows * cols / 2);
  assert.deepEqual(halves, await device.readWords(expected.out));
});

const TILES: readonly (TensorTile | FewTile)[] = [
  { columns: 1, stage: 32, ahead: 2, branched: false },
  { columns: 2, stage: 32, ahead: 1, branched: true },
  { columns: 1, stage: 64, ahead: 1, branched: true },
  { subgroups: 2, columns: 1, stage: 32, ahead: 2, branched: false },
  { subgroups: 4, grid: [1, 2], own: [2, 1], stage: 64, ahead: 2, early: true, inTurn: true },
  { subgroups: 4, grid: [2, 2], own: [2, 2], stage: 32, ahead: 1, early: true },
  { subgroups: 3, grid: [1, 2], own: [1, 1], stage: 64, ahead: 2 },
];

const CASES = TILES.flatMap((tile) =>
  ("own" in tile ? [37] : [5, 11]).flatMap((rows) =>
    [1, 2].map((splitK) => ({ tile, rows, splitK }))
  )
);

for (const { tile, rows: asked, splitK } of CASES) {
  Deno.test({
    name: `f16 rows give the bits of f32 rows that are rounded, ${asked} rows, ${splitK} ranges, ${
      JSON.stringify(tile)
    }`,
    ignore: unit === undefined,
    async fn() {
      if (!unit) return;
      const rows = "own" in tile ? asked : Math.min(asked, fewRows(unit));
      const [cols, matrixRows] = [384, 38];
      const x = numbers(rows * cols, 7);
      const words = numbers(matrixRows * cols / 2, 5);
      const weights = device.words(new Uint32Array(words.buffer).map((word) => word & 0xbfffbfff));
      const [wScales, faults] = [device.filled(matrixRows), device.filled(matrixRows)];
      const matrix = { rows: matrixRows, cols };
      await device.run([weightScales({ weights, scales: wScales, faults }, matrix)]);
      const shard = { operand: weights, first: 0, rows: matrixRows };
      const { scales: xScales, out: halves } = await halved(x, cols);
      const [plain, fromF16] = await Promise.all([false, true].map(async (xIsF16) => {
        const out = device.filled(splitK * rows * matrixRows, 7);
        const of = {
          unit,
          rows,
          matrix,
          shard,
          splitK,
          xIsF16,
          precision: "f16",
          label: "t",
        } as const;
        const buffers = { x: xIsF16 ? halves : device.floats(x), xScales, wScales, out };
        await device.run([
          "own" in tile
            ? matmulTensor(buffers, { ...of, tile })
            : matmulTensorFew(buffers, { ...of, tile }),
        ]);
        return await device.readWords(out);
      }));
      assert.deepEqual(fromF16, plain);
      assert.ok(new Set(plain).size > matrixRows);
    },
  });
}
