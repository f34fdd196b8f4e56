// On matrix units, one row that is in workgroup memory: near float64, and the bits of the kernels that bring rows
// stage by stage, whatever brings it. EYRIE_WEBGPU=dawn has units, if any.

import assert from "node:assert/strict";
import { PLAIN } from "../../shaders/fragments/epilogue.ts";
import { normLanes, rmsNorm } from "../../shaders/norm/rms_norm.ts";
import { rowScales, weightScales } from "../../shaders/tensor/matmul_tensor.ts";
import { type FewTile, matmulTensorFew } from "../../shaders/tensor/matmul_tensor_few.ts";
import {
  heldFits,
  matmulTensorHeld,
  normedRow,
  plainRow,
} from "../../shaders/tensor/matmul_tensor_held.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import type { Operand } from "../../src/gpu/kernel.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());
const unit = device.gpu.matrixUnit as MatrixUnit;
const ignore = device.gpu.matrixUnit === undefined;
const { limits } = device.gpu;

const MATRIX_ROWS = 46; // leaves a tile of columns unfilled
const FEW: FewTile = { columns: 1, stage: 16, ahead: 1 };

/** bf16 weights [MATRIX_ROWS, cols], their scales, and one row's buffers. */
async function build(cols: number, stream: number) {
  const bits = new Uint32Array(numbers(MATRIX_ROWS * cols, stream).buffer)
    .map((word) => word & 0xffff0000);
  const words = Uint32Array.from(
    { length: bits.length / 2 },
    (_, i) => (bits[2 * i] ?? 0) >>> 16 | (bits[2 * i + 1] ?? 0),
  );
  const weights = device.words(words);
  const wScales = device.filled(MATRIX_ROWS);
  const faults = device.filled(MATRIX_ROWS);
  await device.run([
    weightScales({ weights, scales: wScales, faults }, { rows: MATRIX_ROWS, cols }),
  ]);
  assert.ok((await device.readWords(faults)).every((count) => count === 0));
  const shape = {
    ...{ unit, matrix: { rows: MATRIX_ROWS, cols }, label: "test" },
    shard: { operand: weights, first: 0, rows: MATRIX_ROWS },
  };
  return { values: new Float32Array(bits.buffer), wScales, shape };
}

for (
  const { cols, splitK, tile } of [
    { cols: 192, splitK: 1, tile: { columns: 1, stage: 16, ahead: 1 } },
    { cols: 576, splitK: 3, tile: { columns: 2, stage: 32, ahead: 4 } },
  ]
) {
  Deno.test({
    name: `one row in workgroup memory: ${cols} in ${splitK}, ${JSON.stringify(tile)}`,
    ignore,
    async fn() {
      assert.ok(heldFits(unit, tile, { range: cols / splitK, limits }));
      const { values, wScales, shape } = await build(cols, 3);
      const row = numbers(cols, 4).map((value, i) => value * 1e3 / (1 + i % 100));
      const [x, xScales] = [device.floats(row), device.filled(1)];
      const [out, other] = [1, 2].map(() => device.filled(splitK * MATRIX_ROWS, 7)) as [
        Operand,
        Operand,
      ];
      const of = { ...shape, splitK };
      await device.run([
        rowScales({ x, scales: xScales }, { rows: 1, cols }),
        matmulTensorHeld({ x, out, wScales }, { ...of, tile, row: plainRow(xScales) }),
        matmulTensorFew({ x, out: other, wScales, xScales }, { ...of, tile: FEW, rows: 1 }),
      ]);
      const found = await device.readFloats(out);
      assert.deepEqual(found, await device.readFloats(other));
      for (let n = 0; n < MATRIX_ROWS; n++) {
        let [sum, size] = [0, 0];
        for (let k = 0; k < cols; k++) {
          const term = (row[k] ?? NaN) * (values[n * cols + k] ?? NaN);
          sum += term;
          size += Math.abs(term);
        }
        let whole = 0;
        for (let range = 0; range < splitK; range++) whole += found[range * MATRIX_ROWS + n] ?? NaN;
        assert.ok(Math.abs(whole - sum) <= size * 2 ** -20, `${n}: ${whole}, ${sum}`);
      }
    },
  });
}

for (const splitK of [0, 3]) {
  Deno.test({
    name: `one row in workgroup memory: normed after ${splitK} sums, as rms_norm's`,
    ignore,
    async fn() {
      const cols = 256;
      const { wScales, shape } = await build(cols, 5);
      const norm = { rows: 1, cols, eps: 1e-6, lanes: 256, label: "norm" };
      const lanes = normLanes(norm);
      const weight = device.floats(numbers(cols, 6));
      const sums = device.floats(numbers(Math.max(1, splitK) * cols, 7));
      const values = numbers(cols, 8);
      const stride = 3;
      const [x, normed] = [device.floats(values), device.filled(cols)];
      const scales = { normed: device.filled(1), lowered: device.filled(2 * stride), stride };
      const [out, other] = [device.filled(MATRIX_ROWS), device.filled(MATRIX_ROWS)];
      await device.run([
        ...rmsNorm({
          from: splitK > 0 ? { x, sums, splitK } : { x },
          ...{ weight, out: normed, noted: scales },
        }, norm),
        matmulTensorFew(
          { x: normed, out: other, wScales, xScales: scales.normed },
          { ...shape, tile: FEW, rows: 1, epilogue: PLAIN.swiglu },
        ),
      ]);
      const stream = device.filled(cols);
      const lowered = device.filled(2 * stride);
      const row = normedRow(
        {
          ...{ weight, eps: norm.eps, lanes, lowered: { scales: lowered, stride } },
          added: splitK > 0 ? { sums, splitK, stream } : undefined,
        },
        { cols, lanes: unit.lanes },
      );
      const tile = { columns: 1, stage: 64, ahead: 2 };
      await device.run([
        matmulTensorHeld(
          { x: device.floats(values), out, wScales },
          { ...shape, tile, row, epilogue: PLAIN.swiglu },
        ),
      ]);
      const expected = await device.readFloats(other);
      assert.ok(expected.subarray(0, MATRIX_ROWS / 2).every((value) => value !== 0));
      assert.deepEqual(await device.readFloats(out), expected);
      assert.deepEqual(await device.readFloats(lowered), await device.readFloats(scales.lowered));
      if (splitK > 0) assert.deepEqual(await device.readFloats(stream), await device.readFloats(x));
    },
  });
}
