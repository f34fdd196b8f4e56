/** Chooses the workgroups of matmuls of experts on matrix units. No bit of the result depends on the choice. */
import type { TensorLimits } from "../../src/gpu/matrices_on_units.ts";
import { BLOCK_VEC8S, type WeightFormat } from "../../src/gpu/weight_format.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import {
  type ExpertTile,
  expertTileBytes,
  expertTileThreads,
  tileColumns,
} from "./expert_tensor.ts";
import type { Jobs } from "./job_lists.ts";

type Launch = Omit<ExpertTile, "jobs">;

/** Launches for a job alone: SHORT for a short k, WIDE if one tile of columns each would make too many workgroups. */
const SHORT: Launch = { grid: [1, 4], own: [1, 1], stage: 128, ahead: 1 };
const WIDE: Launch = { grid: [1, 1], own: [1, 2], stage: 64, ahead: 3 };
const ALONE: readonly Launch[] = [
  { grid: [1, 1], own: [1, 1], stage: 64, ahead: 4 },
  { grid: [1, 1], own: [1, 1], stage: 32, ahead: 4 },
];

const SHORT_COLS = 1536;

/** Workgroups of one subgroup with 4 stages ahead that a large GPU runs at once. */
const AT_ONCE = 1200;

/** Launches by the jobs of a tile, in rows of the unit; the first whose stage divides k is taken. */
const LAUNCHES: ReadonlyMap<number, readonly Launch[]> = new Map([
  [0.5, [
    { grid: [1, 1], own: [1, 2], stage: 64, ahead: 4 },
    { grid: [1, 1], own: [1, 2], stage: 32, ahead: 4 },
  ]],
  [1, [
    { grid: [1, 4], own: [1, 2], stage: 64, ahead: 2, early: true },
    { grid: [1, 8], own: [1, 2], stage: 32, ahead: 1, early: true },
  ]],
  [2, [
    { grid: [1, 4], own: [2, 2], stage: 64, ahead: 2, early: true },
    { grid: [1, 4], own: [2, 2], stage: 32, ahead: 1, early: true },
  ]],
  [4, [{ grid: [1, 4], own: [4, 2], stage: 32, ahead: 1, early: true }]],
]);

/** Sizes of tiles of jobs, in rows of the unit. With half of the rows, hi and lo share a tile of the unit. */
const UNIT_ROWS = [0.5, 1, 2, 4] as const;

/**
 * Most jobs of one expert that share a tile; 1: there are no lists. A tile has room for 1.5 times the jobs that an
 * expert has on average, so that few experts need a second tile; but it is two units' rows as long as the average fits.
 */
export function unitTile({ rows, topK, numExperts }: Jobs, { m }: MatrixUnit): number {
  if (rows === 1) return 1;
  const mean = rows * topK / numExperts;
  const enough = (count: number) => count * m >= (count === 2 ? 1 : 1.5) * mean;
  return (UNIT_ROWS.find(enough) ?? 4) * m;
}

/**
 * The workgroup for tiles of `tile` jobs; undefined where the adapter has room for none.
 *
 * @param outputs of all jobs, where each is a tile.
 */
export function unitLaunch(
  unit: MatrixUnit,
  limits: Omit<TensorLimits, "maxStorageBuffersPerShaderStage">,
  { tile, cols, outputs = 0, format = "bf16" }: {
    readonly tile: number;
    readonly cols: number;
    readonly outputs?: number | undefined;
    readonly format?: WeightFormat;
  },
): ExpertTile | undefined {
  const alone = [
    ...cols <= SHORT_COLS ? [SHORT] : [],
    ...outputs > AT_ONCE * unit.n ? [WIDE] : [],
    ...ALONE,
  ];
  const candidates = tile === 1 ? alone : LAUNCHES.get(tile / unit.m) ?? [];
  return candidates.map((launch) => ({ ...launch, jobs: tile }))
    .find((launch) => cols % launch.stage === 0 && runs(unit, limits, launch, format));
}

/** Whether there are workgroups for any number of jobs. */
export function hasLaunches(
  unit: MatrixUnit,
  limits: Omit<TensorLimits, "maxStorageBuffersPerShaderStage">,
  { cols, format }: { readonly cols: number; readonly format?: WeightFormat },
): boolean {
  return [1, ...UNIT_ROWS.map((count) => count * unit.m)]
    .every((tile) =>
      unitLaunch(unit, limits, { tile, cols, ...format ? { format } : {} }) !== undefined
    );
}

/** Whether the adapter has room for a workgroup, and its lanes for a stage of weights. */
function runs(
  unit: MatrixUnit,
  limits: Omit<TensorLimits, "maxStorageBuffersPerShaderStage">,
  tile: ExpertTile,
  format: WeightFormat,
): boolean {
  const threads = expertTileThreads(unit, tile);
  const blocks = tileColumns(unit, tile) * tile.stage / (8 * BLOCK_VEC8S[format]);
  return tile.stage % unit.k === 0 && blocks % threads === 0 &&
    expertTileBytes(unit, tile) <= limits.maxComputeWorkgroupStorageSize &&
    threads <= limits.maxComputeInvocationsPerWorkgroup;
}
