/** Which workgroups matmuls of experts on matrix units have. None of it touches a bit of the result. */
import type { TensorLimits } from "../../src/gpu/matrix.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { type ExpertTile, expertTileBytes, expertTileThreads } from "./expert_tensor.ts";
import type { Jobs } from "./job_lists.ts";

type Launch = Omit<ExpertTile, "jobs">;

/** For one job or half of a unit's rows, which have hi and lo in one tile of the unit. */
const FEW: readonly Launch[] = [
  { grid: [1, 1], own: [1, 1], stage: 128, ahead: 2 },
  { grid: [1, 1], own: [1, 1], stage: 32, ahead: 2 },
];

/** By the jobs of a tile, in rows of the unit. */
const MANY: Readonly<Record<number, readonly Launch[]>> = {
  1: [
    { grid: [1, 4], own: [1, 1], stage: 64, ahead: 1 },
    { grid: [1, 4], own: [1, 1], stage: 32, ahead: 1 },
  ],
  2: [{ grid: [1, 4], own: [2, 1], stage: 32, ahead: 1 }],
  4: [{ grid: [1, 4], own: [4, 1], stage: 32, ahead: 1 }],
};

/** Rows of k divide into stages of some tile where they are a multiple of this. */
export const LEAST_EXPERT_STAGE = 32;

/** Jobs of a tile, in rows of the unit: at least as many as an expert has on average. */
const UNIT_ROWS = [0.5, 1, 2, 4] as const;

/** Jobs of one expert that share a tile at most; 1: there are no lists. */
export function unitTile({ rows, topK, numExperts }: Jobs, { m }: MatrixUnit): number {
  if (rows === 1) return 1;
  const mean = rows * topK / numExperts;
  return (UNIT_ROWS.find((count) => count * m >= 1.5 * mean) ?? 4) * m;
}

/** The workgroup for tiles of `tile` jobs; undefined where the adapter has room for none. */
export function unitLaunch(
  unit: MatrixUnit,
  limits: Omit<TensorLimits, "maxStorageBuffersPerShaderStage">,
  { tile, cols }: { readonly tile: number; readonly cols: number },
): ExpertTile | undefined {
  const candidates = tile < unit.m ? FEW : MANY[tile / unit.m] ?? [];
  return candidates.map((launch) => ({ ...launch, jobs: tile })).find((launch) =>
    cols % launch.stage === 0 && launch.stage % unit.k === 0 &&
    expertTileBytes(unit, launch) <= limits.maxComputeWorkgroupStorageSize &&
    expertTileThreads(unit, launch) <= limits.maxComputeInvocationsPerWorkgroup
  );
}
