// Many rows on matrix units, x split beforehand: near the float64 product, and the bits of matmul_tensor.wgsl at
// every number of rows and in every shape of workgroup. Adapters have units with EYRIE_WEBGPU=dawn, if any.

import assert from "node:assert/strict";
import { type HalvesTile, matmulHalves, rowHalves } from "../../shaders/tensor/matmul_halves.ts";
import { matmulTensor, weightScales } from "../../shaders/tensor/matmul_tensor.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { hash32 } from "../../src/speculate/noise.ts";
import { openDevice } from "../gpu/device.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());
const unit = device.gpu.matrixUnit as MatrixUnit;
const ignore = device.gpu.matrixUnit === undefined;

const TILES: readonly HalvesTile[] = [
  { grid: [1, 1], own: [1, 1], stage: 16, buffers: 1, pad: 1 },
  { grid: [2, 1], own: [1, 2], stage: 16, buffers: 2, pad: 0 },
  { grid: [1, 3], own: [2, 1], stage: 32, buffers: 2, pad: 2 },
];

const [ROWS, MATRIX_ROWS, COLS, SPLIT_K] = [37, 46, 192, 2];

function noise(stream: number, count: number, scale: (i: number) => number): Float32Array {
  return Float32Array.from(
    { length: count },
    (_, i) => (hash32(5, stream, i) / 2 ** 31 - 1) * scale(i),
  );
}

/** Rows from 1e-9 to 1e9, with numbers far below a row's largest. */
const X = noise(1, ROWS * COLS, (i) => 10 ** ((i / COLS | 0) % 19 - 9) / (1 + i % 1000));
const WEIGHT_BITS = new Uint32Array(
  noise(2, MATRIX_ROWS * COLS, (i) => 2 ** -(i / COLS % 20) / (1 + i % 300)).buffer,
).map((word) => word & 0xffff0000);
const WEIGHTS = new Float32Array(WEIGHT_BITS.buffer);
const WORDS = Uint32Array.from(
  { length: WEIGHTS.length / 2 },
  (_, i) => (WEIGHT_BITS[2 * i] ?? 0) >>> 16 | (WEIGHT_BITS[2 * i + 1] ?? 0),
);

/** x W^T over ranges of k, [splitK, rows, MATRIX_ROWS], without a tile by matmul_tensor.wgsl. */
async function product(
  rows: number,
  tile?: HalvesTile,
  splitK = 1,
): Promise<Float32Array> {
  const weights = device.words(WORDS);
  const x = device.floats(X.slice(0, rows * COLS));
  const [wScales, xScales, faults] = [
    device.filled(MATRIX_ROWS),
    device.filled(rows),
    device.filled(MATRIX_ROWS),
  ];
  const [halves, out] = [device.filled(rows * COLS), device.filled(splitK * rows * MATRIX_ROWS, 7)];
  const matrix = { rows: MATRIX_ROWS, cols: COLS };
  const shard = { operand: weights, first: 0, rows: MATRIX_ROWS };
  const of = { unit, rows, matrix, shard, splitK, label: "test" };
  const simple = { subgroups: 1, grid: [1, 1], own: [1, 1], stage: 16, ahead: 1 } as const;
  await device.run([
    weightScales({ weights, scales: wScales, faults }, { rows: MATRIX_ROWS, cols: COLS }),
    rowHalves({ x, scales: xScales, halves }, { unit, rows, cols: COLS }),
    tile
      ? matmulHalves({ halves, wScales, xScales, out }, { ...of, tile })
      : matmulTensor({ x, wScales, xScales, out }, { ...of, tile: simple }),
  ]);
  return await device.readFloats(out);
}

Deno.test({
  name: "matrix units, x split beforehand: near float64, in any shape of workgroup the same bits",
  ignore,
  async fn() {
    const whole = await product(ROWS);
    for (const [at, found] of whole.entries()) {
      const [r, n] = [Math.floor(at / MATRIX_ROWS), at % MATRIX_ROWS];
      let [sum, size] = [0, 0];
      for (let k = 0; k < COLS; k++) {
        const term = (X[r * COLS + k] ?? 0) * (WEIGHTS[n * COLS + k] ?? 0);
        sum += term;
        size += Math.abs(term);
      }
      // Terms have 22 bits; sums of few large ones are rounded to 2^-23 each.
      assert.ok(Math.abs(found - sum) <= size * 2 ** -20, `${r}, ${n}: ${found}, ${sum}`);
    }
    for (const tile of TILES) {
      assert.deepEqual(await product(ROWS, tile), whole, JSON.stringify(tile));
      for (const rows of [1, 16, 17]) {
        const found = await product(rows, tile);
        assert.deepEqual(found, whole.subarray(0, rows * MATRIX_ROWS), `${rows} rows`);
      }
    }
  },
});

Deno.test({
  name: "matrix units, x split beforehand: ranges of k",
  ignore,
  async fn() {
    const whole = await product(ROWS, undefined, SPLIT_K);
    const tile = { ...TILES[1] as HalvesTile, stage: 32 };
    assert.deepEqual(await product(ROWS, tile, SPLIT_K), whole);
  },
});
