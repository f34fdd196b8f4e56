// Quantized weights on matrix units: near the float64 product of weights and rows rounded to f16, and the same bits at
// every number of rows and in every shape of workgroup. Adapters have units with EYRIE_WEBGPU=dawn, if any.

import assert from "node:assert/strict";
import { groupScales } from "../../kernels/matmul/tensor/group_scales.ts";
import { halfRows } from "../../kernels/matmul/tensor/half_rows.ts";
import { matmulTensor, type TensorTile } from "../../kernels/matmul/tensor/matmul_tensor.ts";
import { rowScales } from "../../kernels/matmul/tensor/row_scales.ts";
import {
  fewRows,
  type FewTile,
  matmulTensorFew,
} from "../../kernels/matmul/tensor/matmul_tensor_few.ts";
import type { Matrix } from "../../src/gpu/matrix.ts";
import {
  isInteger,
  isQuantized,
  type Prequantized,
  type Quantization,
} from "../../src/gpu/weight_format.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { uploadPrequantized } from "./prequantized.ts";
import { pack, uploadQuantized } from "./quantized.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());
const unit = device.gpu.matrixUnit as MatrixUnit;
const ignore = unit === undefined;

const TILES: readonly TensorTile[] = [
  { subgroups: 3, grid: [1, 2], own: [1, 1], stage: 32, ahead: 2 },
  { subgroups: 2, grid: [2, 1], own: [1, 2], stage: 64, ahead: 1 },
  // As prompts and rounds have: stages in turn, and asked for before the barrier.
  { subgroups: 4, grid: [1, 2], own: [2, 1], stage: 64, ahead: 2, early: true, inTurn: true },
  { subgroups: 4, grid: [2, 2], own: [2, 2], stage: 32, ahead: 1, early: true },
];
const FEW_TILES: readonly FewTile[] = [
  { columns: 1, stage: 32, ahead: 2, branched: true },
  { columns: 2, stage: 64, ahead: 1, branched: false },
  { subgroups: 2, columns: 1, stage: 64, ahead: 2, branched: false },
];

const MATRIX_ROWS = 46;

interface Case {
  readonly matrix: Matrix;
  readonly values: Float32Array;
}

/** Weights of several magnitudes. */
function quantized(format: Quantization, cols: number, most: number): Case {
  const raw = numbers(MATRIX_ROWS * cols, 3).map((value, i) =>
    value * 2 ** -(Math.floor(i / cols) % 9) / (1 + Math.floor(i / 32) % 7)
  );
  const matrix = uploadQuantized(device, raw, { format, cols, most });
  return { matrix, values: pack(raw, { format, cols, lanes: matrix.lanes }).values };
}

function upload(format: Quantization | Prequantized, cols: number, most: number): Case {
  return isInteger(format)
    ? quantized(format, cols, most)
    : uploadPrequantized(device, format, { rows: MATRIX_ROWS, cols, most });
}

async function product(
  { matrix }: Case,
  x: Float32Array,
  tile: TensorTile | FewTile,
  { splitK = 1, halves = false }: {
    readonly splitK?: number;
    /** Whether x is rounded to f16 by a dispatch before. */
    readonly halves?: boolean;
  } = {},
): Promise<{ readonly out: Float32Array; readonly scales: Float32Array }> {
  const { format, cols, shards: [shard] } = matrix;
  assert.ok(shard?.scales && isQuantized(format));
  const rows = x.length / cols;
  const [input, wScales, xScales] = [
    device.floats(x),
    device.filled(MATRIX_ROWS),
    device.filled(rows),
  ];
  const out = device.filled(splitK * rows * MATRIX_ROWS, 7);
  const of = { unit, rows, matrix, shard, splitK, xIsF16: halves, label: "test" };
  const rounded = device.filled(rows * cols / 2);
  const buffers = { wScales, x: halves ? rounded : input, xScales, out };
  await device.run([
    groupScales({ groups: shard.scales, scales: wScales }, { format, rows: MATRIX_ROWS, cols }),
    halves
      ? halfRows({ x: input, scales: xScales, out: rounded }, { rows, cols, label: "test" })
      : rowScales({ x: input, scales: xScales }, { rows, cols }),
    "own" in tile
      ? matmulTensor(buffers, { ...of, tile })
      : matmulTensorFew(buffers, { ...of, tile }),
  ]);
  return { out: await device.readFloats(out), scales: await device.readFloats(wScales) };
}

/** As row_scales.wgsl: the largest number becomes one from 2^14 on. */
function scaleOf(row: Float32Array): number {
  return 2 ** (14 - Math.floor(Math.log2(Math.max(...row.map(Math.abs)))));
}

/** Rows of x from 1e-4 to 1e4. */
function input(rows: number, cols: number): Float32Array {
  return numbers(rows * cols, 2).map((value, i) => value * 10 ** (Math.floor(i / cols) % 9 - 4));
}

for (const format of ["q8", "q4", "u4", "i8", "f8"] as const) {
  // Lanes of software, those of hardware, and few of them where the width divides into no more.
  for (const [cols, most] of [[192, 1], [192, 16], [1024, 16]] as const) {
    Deno.test({
      name: `matrix units, ${format}: near float64, ${cols} wide for ${most} lanes`,
      ignore,
      async fn() {
        const made = upload(format, cols, most);
        const x = input(11, cols);
        const { out, scales } = await product(made, x, TILES[0] as TensorTile);
        let rounded = 0;
        for (const [at, found] of out.entries()) {
          const [r, n] = [Math.floor(at / MATRIX_ROWS), at % MATRIX_ROWS];
          const scale = scales[n] ?? NaN;
          let [sum, exact, size, peak] = [0, 0, 0, 0];
          const xScale = scaleOf(x.subarray(r * cols, (r + 1) * cols));
          for (let k = 0; k < cols; k++) {
            const w = made.values[n * cols + k] ?? NaN;
            const [half = NaN, xHalf = NaN] = Float16Array.of(
              w * scale,
              (x[r * cols + k] ?? NaN) * xScale,
            );
            const term = xHalf / xScale * half / scale;
            sum += term;
            exact += (x[r * cols + k] ?? NaN) * w;
            size += Math.abs(term);
            peak = Math.max(peak, Math.abs(w * scale));
          }
          // Products of f16 numbers are exact, their sums rounded.
          assert.ok(Math.abs(found - sum) <= size * 2 ** -20, `${r}, ${n}: ${found}, ${sum}`);
          // Weights and activations have 11 bits.
          assert.ok(Math.abs(found - exact) <= size * 2.01 * 2 ** -11, `${r}, ${n}`);
          if (Math.abs(found - exact) > size * 2 ** -19) rounded++;
          assert.ok(peak < 2 ** 15 && peak >= 2 ** 9, `${peak}`);
        }
        assert.equal(rounded > 0, true);
      },
    });
  }

  Deno.test({
    name: `matrix units, ${format}: the same bits at 1 to 17 rows and in any shape of workgroup`,
    ignore,
    async fn() {
      const cols = 1024;
      const made = upload(format, cols, 16);
      const x = input(17, cols);
      for (const splitK of [1, 4]) {
        const { out: whole } = await product(made, x, TILES[0] as TensorTile, { splitK });
        for (const rows of [1, fewRows(unit), fewRows(unit) + 1, 17]) {
          const tiles = rows > fewRows(unit) ? TILES.slice(1) : [...TILES.slice(1), ...FEW_TILES];
          for (const tile of tiles) {
            for (const halves of [false, true]) {
              const { out } = await product(made, x.slice(0, rows * cols), tile, {
                splitK,
                halves,
              });
              for (let range = 0; range < splitK; range++) {
                const from = range * 17 * MATRIX_ROWS;
                assert.deepEqual(
                  out.subarray(range * rows * MATRIX_ROWS, (range + 1) * rows * MATRIX_ROWS),
                  whole.subarray(from, from + rows * MATRIX_ROWS),
                  `${rows} rows, ${JSON.stringify(tile)}${halves ? ", x is f16" : ""}`,
                );
              }
            }
          }
        }
      }
    },
  });
}
