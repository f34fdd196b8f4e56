// Experts of quantized weights on matrix units: near the float64 product of weights and rows rounded to f16, and the
// same bits of a job in every shape of workgroup. EYRIE_WEBGPU=dawn has units, if any.

import assert from "node:assert/strict";
import { expertTensor, type ExpertTile } from "../../kernels/experts/expert_tensor.ts";
import { groupScales } from "../../kernels/matmul/tensor/group_scales.ts";
import { halfRows } from "../../kernels/matmul/tensor/half_rows.ts";
import { rowScales } from "../../kernels/matmul/tensor/row_scales.ts";
import type { Matrix } from "../../src/gpu/matrix.ts";
import { isQuantized } from "../../src/gpu/weight_format.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { uploadPrequantized } from "./prequantized.ts";
import { pack, uploadQuantized } from "./quantized.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());
const unit = device.gpu.matrixUnit as MatrixUnit;
const ignore = device.gpu.matrixUnit === undefined;
const half = (unit?.m ?? 8) / 2;

/** Of an expert: several workgroups of columns, the last one not whole. */
const ROWS = 42;
const NOTHING = 0xffffffff;
/** Jobs of each expert. */
const LOADS = [1, 0, 15, 20, 2];
const EXPERTS = LOADS.flatMap((count, e) => Array<number>(count).fill(e))
  .map((e, i) => ({ e, at: i * 7 % 38 })).toSorted((a, b) => a.at - b.at).map(({ e }) => e);

const TILES: readonly ExpertTile[] = [
  { jobs: 1, grid: [1, 1], own: [1, 1], stage: 64, ahead: 1 },
  { jobs: 1, grid: [1, 2], own: [1, 1], stage: 64, ahead: 2 },
  { jobs: half, grid: [1, 1], own: [1, 2], stage: 32, ahead: 4 },
  { jobs: 2 * half, grid: [1, 2], own: [1, 1], stage: 64, ahead: 1 },
  { jobs: 2 * half, grid: [1, 2], own: [1, 2], stage: 64, ahead: 2, early: true },
  { jobs: 4 * half, grid: [2, 1], own: [1, 2], stage: 64, ahead: 1 },
];

interface Case {
  readonly matrix: Matrix;
  readonly values: Float32Array;
}

function upload(format: "q8" | "q4" | "u4" | "f8" | "mxfp4" | "nvfp4", cols: number): Case {
  const rows = LOADS.length * ROWS;
  if (format !== "q8" && format !== "q4") {
    return uploadPrequantized(device, format, { rows, cols, most: 16 });
  }
  const raw = numbers(rows * cols, 3).map((value, i) => value * 2 ** -(Math.floor(i / cols) % 9));
  const matrix = uploadQuantized(device, raw, { format, cols, most: 16 });
  return { matrix, values: pack(raw, { format, cols, lanes: matrix.lanes }).values };
}

/** Words of tiles of `size` jobs each; one more tile has no expert. */
function tilesOf(size: number): number[] {
  const used = LOADS.flatMap((_, e) => {
    const jobs = EXPERTS.flatMap((expert, job) => expert === e ? [job] : []);
    return Array.from({ length: Math.ceil(jobs.length / size) }, (_, t) => {
      const some = jobs.slice(t * size, (t + 1) * size);
      return [e, ...some, ...Array<number>(size - some.length).fill(NOTHING)];
    });
  });
  return [...used.flat(), NOTHING, ...Array<number>(size).fill(0)];
}

async function product({ matrix }: Case, x: Float32Array, tile: ExpertTile, xIsF16 = false) {
  const { cols, format, shards: [shard] } = matrix;
  assert.ok(shard?.scales && isQuantized(format));
  const rows = EXPERTS.length;
  const [out, xScales, wScales] = [
    device.filled(rows * ROWS, 7),
    device.filled(rows),
    device.filled(matrix.rows),
  ];
  const words = tile.jobs === 1 ? EXPERTS : tilesOf(tile.jobs);
  const [given, halves] = [device.floats(x), device.filled(rows * cols / 2)];
  await device.run([
    xIsF16
      ? halfRows({ x: given, scales: xScales, out: halves }, { rows, cols, label: "halves" })
      : rowScales({ x: given, scales: xScales }, { rows, cols }),
    groupScales({ groups: shard.scales, scales: wScales }, { format, rows: matrix.rows, cols }),
    expertTensor(
      { x: xIsF16 ? halves : given, out, lists: device.words(words), wScales, xScales },
      {
        unit,
        tile,
        matrix,
        shard,
        tiled: false,
        expertRows: ROWS,
        rowJobs: 1,
        xIsF16,
        epilogue: "store",
        tiles: tile.jobs === 1 ? words.length : words.length / (1 + tile.jobs),
        label: "test",
      },
    ),
  ]);
  return { out: await device.readFloats(out), scales: await device.readFloats(wScales) };
}

/** As row_scales.wgsl: the largest number becomes one from 2^14 on. */
function scaleOf(row: Float32Array): number {
  return 2 ** (14 - Math.floor(Math.log2(Math.max(...row.map(Math.abs)))));
}

for (
  const [format, cols] of [["q8", 192], ["q4", 1024], ["q4", 192], ["u4", 192], ["mxfp4", 192], [
    "nvfp4",
    192,
  ], [
    "f8",
    192,
  ]] as const
) {
  Deno.test({
    name:
      `experts on matrix units, ${format}, ${cols} wide: near float64, a job's bits are its own`,
    ignore,
    async fn() {
      const made = upload(format, cols);
      const x = numbers(EXPERTS.length * cols, 5).map((value, i) =>
        value * 10 ** (Math.floor(i / cols) % 9 - 4)
      );
      const [first] = TILES;
      const { out, scales } = await product(made, x, first as ExpertTile);
      for (const [job, e] of EXPERTS.entries()) {
        const row = x.subarray(job * cols, (job + 1) * cols);
        const xScale = scaleOf(row);
        for (let c = 0; c < ROWS; c++) {
          const scale = scales[e * ROWS + c] ?? NaN;
          let [sum, size] = [0, 0];
          for (let k = 0; k < cols; k++) {
            const w = (made.values[(e * ROWS + c) * cols + k] ?? NaN) * scale;
            const [half = NaN, xHalf = NaN] = Float16Array.of(w, (row[k] ?? NaN) * xScale);
            const term = xHalf / xScale * half / scale;
            sum += term;
            size += Math.abs(term);
          }
          const found = out[job * ROWS + c] ?? NaN;
          assert.ok(Math.abs(found - sum) <= size * 2 ** -20, `job ${job}, ${c}: ${found}, ${sum}`);
        }
      }
      for (const tile of TILES) {
        for (const xIsF16 of [false, true]) {
          const { out: other } = await product(made, x, tile, xIsF16);
          assert.deepEqual(other, out, JSON.stringify({ ...tile, xIsF16 }));
        }
      }
    },
  });
}
