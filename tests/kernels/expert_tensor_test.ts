// Experts on matrix units: near the float64 product of the very weights at odd shapes, and the same bits of
// a job alone and in a crowd, in every shape of workgroup. EYRIE_WEBGPU=dawn has units, if any.

import assert from "node:assert/strict";
import { expertTensor, type ExpertTile } from "../../kernels/experts/expert_tensor.ts";
import { tileWeights } from "../../kernels/experts/tile_weights.ts";
import { rowScales } from "../../kernels/matmul/tensor/row_scales.ts";
import { weightScales } from "../../kernels/matmul/tensor/weight_scales.ts";
import type { Precision } from "../../src/gpu/matrices_on_units.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { packed, weights } from "./matrices.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());
const unit = device.gpu.matrixUnit as MatrixUnit;
const ignore = device.gpu.matrixUnit === undefined;
const half = (unit?.m ?? 8) / 2;

const COLS = 192;
/** Of an expert: several workgroups of columns, the last one not whole. */
const ROWS = 40;
const NOTHING = 0xffffffff;
/** Jobs of each expert. */
const LOADS = [1, 0, 15, 40, 17, 2, 0];
/** Experts in each shard. */
const SHARDS = [3, 4];

const base = { grid: [1, 1], own: [1, 1], stage: 32, ahead: 1 } as const;
const TILES: readonly ExpertTile[] = [
  { ...base, jobs: 1, stage: 16 },
  { ...base, jobs: 1, grid: [1, 2], stage: 16, ahead: 5 },
  { ...base, jobs: 1, grid: [1, 4], stage: 64 },
  { ...base, jobs: 1, own: [1, 2], ahead: 3 },
  { ...base, jobs: half, ahead: 4 },
  { ...base, jobs: half, own: [1, 2] },
  { ...base, jobs: 2 * half, grid: [1, 2], stage: 64 },
  { ...base, jobs: 4 * half, own: [2, 2], early: true },
  { ...base, jobs: 4 * half, grid: [2, 2], ahead: 2 },
  { ...base, jobs: 8 * half, grid: [2, 1], own: [2, 1] },
];

/** Words of tiles of `size` jobs each; one more tile has no expert. */
function tilesOf(experts: readonly number[], size: number): number[] {
  const used = LOADS.flatMap((_, e) => {
    const jobs = experts.flatMap((expert, job) => expert === e ? [job] : []);
    return Array.from({ length: Math.ceil(jobs.length / size) }, (_, t) => {
      const some = jobs.slice(t * size, (t + 1) * size);
      return [e, ...some, ...Array<number>(size - some.length).fill(NOTHING)];
    });
  });
  return [...used.flat(), NOTHING, ...Array<number>(size).fill(0)];
}

const VALUES = weights("bf16", LOADS.length * ROWS, COLS);
/** Jobs in an order that mixes experts. */
const EXPERTS = LOADS.flatMap((count, e) => Array<number>(count).fill(e))
  .map((e, i) => ({ e, at: i * 7 % 75 })).toSorted((a, b) => a.at - b.at).map(({ e }) => e);

/** Outputs of every job, [jobs][outputs]. */
async function product(
  x: Float32Array,
  experts: readonly number[],
  { tile, epilogue, rowJobs, precision, tiled = true }: {
    readonly tile: ExpertTile;
    readonly epilogue: "store" | "swiglu";
    readonly rowJobs: number;
    readonly precision: Precision;
    /** Whether weights were put into tiles; default true. */
    readonly tiled?: boolean;
  },
): Promise<Float32Array[]> {
  const rows = x.length / COLS;
  const outputs = epilogue === "swiglu" ? ROWS / 2 : ROWS;
  const out = device.filled(experts.length * outputs, 7);
  const [input, xScales] = [device.floats(x), device.filled(rows)];
  const words = tile.jobs === 1 ? experts : tilesOf(experts, tile.jobs);
  const lists = device.words(words);
  await device.run([rowScales({ x: input, scales: xScales }, { rows, cols: COLS })]);
  let first = 0;
  for (const count of SHARDS) {
    const shardRows = count * ROWS;
    const part = VALUES.subarray(first * ROWS * COLS, (first + count) * ROWS * COLS);
    const weights = device.words(packed("bf16", part));
    const tiles = device.filled(part.length / 2);
    const [wScales, faults] = [device.filled(shardRows), device.filled(shardRows)];
    const shape = { rows: shardRows, cols: COLS };
    await device.run([
      weightScales({ weights, scales: wScales, faults }, shape),
      tileWeights({ weights, scales: wScales, tiles }, { ...shape, unit }),
      expertTensor(
        { x: input, out, lists, wScales, xScales },
        {
          unit,
          tile,
          matrix: { cols: COLS },
          expertRows: ROWS,
          rowJobs,
          epilogue,
          precision,
          shard: { operand: tiled ? tiles : weights, first: first * ROWS, rows: shardRows },
          tiled,
          tiles: tile.jobs === 1 ? words.length : words.length / (1 + tile.jobs),
          label: "test",
        },
      ),
    ]);
    first += count;
  }
  const all = await device.readFloats(out);
  return experts.map((_, job) => all.slice(job * outputs, (job + 1) * outputs));
}

/** Rows of several magnitudes, with numbers far below a row's largest. */
const X = numbers(EXPERTS.length * COLS, 5).map((value, i) =>
  value * 10 ** ((i / COLS | 0) % 13 - 6) / (1 + i % 300)
);

/** How far the products of each are from float64: see matmul_tensor_test.ts. */
const BOUNDS = { f32: 2 ** -20, f16: 2 ** -11 };
const PRECISIONS = ["f32", "f16"] as const;

for (const precision of PRECISIONS) {
  for (const tile of TILES) {
    Deno.test({
      name: `experts on matrix units: near float64, x ${precision}, ${JSON.stringify(tile)}`,
      ignore,
      async fn() {
        const shape = { tile, epilogue: "store", rowJobs: 1, precision } as const;
        const found = await product(X, EXPERTS, shape);
        let rounded = 0;
        for (const [job, e] of EXPERTS.entries()) {
          for (let c = 0; c < ROWS; c++) {
            let [sum, size] = [0, 0];
            for (let k = 0; k < COLS; k++) {
              const term = X[job * COLS + k]! * VALUES[(e * ROWS + c) * COLS + k]!;
              sum += term;
              size += Math.abs(term);
            }
            const off = Math.abs(found[job]![c]! - sum);
            assert.ok(off <= size * BOUNDS[precision], `job ${job}, ${c}: ${off} of ${size}`);
            if (off > size * BOUNDS.f32) rounded++;
          }
        }
        // It is not the other precision.
        const least = precision === "f16" ? EXPERTS.length * ROWS / 4 : 0;
        assert.ok(rounded >= least, `${rounded} rounded`);
      },
    });
  }
}

for (
  const [epilogue, precision] of [["store", "f32"], ["swiglu", "f32"], ["swiglu", "f16"]] as const
) {
  Deno.test({
    name: `experts on matrix units: a job's bits are its own, ${epilogue}, x ${precision}`,
    ignore,
    async fn() {
      const rowJobs = epilogue === "swiglu" ? 3 : 1;
      const of = { epilogue, rowJobs, precision } as const;
      const x = X.slice(0, EXPERTS.length / rowJobs * COLS);
      const [first] = TILES;
      const alone = await product(x, EXPERTS, { tile: first!, ...of });
      for (const tile of TILES.slice(1)) {
        const found = await product(x, EXPERTS, { tile, ...of });
        assert.deepEqual(found, alone, JSON.stringify(tile));
      }
      for (const tile of TILES) {
        const found = await product(x, EXPERTS, { tile, ...of, tiled: false });
        assert.deepEqual(found, alone, `weights row after row, ${JSON.stringify(tile)}`);
      }
      // Fewer of them, in another order.
      const rows = [3, 20, 11, 0, 8].map((r) => rowJobs === 3 ? r : 3 * r);
      const jobs = rows.flatMap((r) => Array.from({ length: rowJobs }, (_, j) => r * rowJobs + j));
      const some = Float32Array.from(rows.flatMap((r) => [...x.slice(r * COLS, (r + 1) * COLS)]));
      const experts = jobs.map((job) => EXPERTS[job]!);
      for (const tile of TILES) {
        const found = await product(some, experts, { tile, ...of });
        assert.deepEqual(found, jobs.map((job) => alone[job]!), JSON.stringify(tile));
      }
    },
  });
}
