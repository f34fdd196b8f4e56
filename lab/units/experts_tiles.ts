/** Which workgroups of expert_tensor.wgsl are timed. */
import {
  type ExpertTile,
  expertTileBytes,
  expertTileThreads,
} from "../../kernels/experts/expert_tensor.ts";
import type { Gpu } from "../../src/gpu/device.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";

export type { ExpertTile };

type Launch = readonly [columns: number, own: number, stage: number, ahead: number];

/** Workgroups for at most eight jobs: subgroups, column tiles of each subgroup, ... */
const FEW: readonly Launch[] = [
  [1, 1, 32, 8],
  [1, 1, 64, 2],
  [1, 1, 64, 3],
  [1, 1, 64, 4],
  [1, 1, 64, 6],
  [1, 2, 64, 2],
  [1, 2, 64, 3],
  [1, 2, 64, 4],
  [2, 1, 128, 1],
  [2, 1, 128, 2],
  [2, 2, 64, 2],
  [4, 1, 128, 1],
  [4, 1, 128, 2],
];

/** Jobs in tiles of the unit's rows, the grid of subgroups, the row and column tiles of each subgroup, ... */
const MANY: readonly (readonly [
  jobs: number,
  grid: readonly [number, number],
  own: readonly [number, number],
  stage: number,
  ahead: number,
])[] = [
  [1, [1, 4], [1, 2], 64, 1],
  [1, [1, 8], [1, 2], 32, 1],
  [2, [1, 4], [2, 2], 32, 1],
  [2, [1, 4], [2, 2], 32, 2],
  [2, [1, 8], [2, 2], 64, 1],
  [3, [1, 8], [3, 2], 32, 1],
  [4, [1, 4], [4, 2], 32, 1],
  [4, [1, 8], [4, 2], 32, 1],
  [4, [1, 8], [4, 2], 32, 2],
  [4, [2, 2], [2, 4], 32, 1],
  [4, [2, 4], [2, 4], 32, 1],
];

/** The tiles that the adapter can run and that suit experts with `mean` jobs each on average. */
export function expertTilesFor(
  { gpu: { limits }, unit }: { readonly gpu: Gpu; readonly unit: MatrixUnit },
  { k, mean, rows }: { readonly k: number; readonly mean: number; readonly rows: number },
): ExpertTile[] {
  const few = FEW.map(([columns, own, stage, ahead]): ExpertTile => ({
    jobs: rows === 1 ? 1 : unit.m / 2,
    grid: [1, columns],
    own: [1, own],
    stage,
    ahead,
  }));
  const many = MANY.filter(([jobs]) => jobs * unit.m < 6 * mean || jobs === 1)
    .map(([jobs, grid, own, stage, ahead]): ExpertTile => ({
      jobs: jobs * unit.m,
      grid,
      own,
      stage,
      ahead,
    }));
  return (mean < 2 ? few : many).filter((tile) =>
    k % tile.stage === 0 && tile.stage % unit.k === 0 &&
    expertTileBytes(unit, tile) <= limits.maxComputeWorkgroupStorageSize &&
    expertTileThreads(unit, tile) <= limits.maxComputeInvocationsPerWorkgroup
  );
}

export function tileText({ jobs, grid, own, stage, ahead }: ExpertTile): string {
  return `${jobs} jobs, ${grid.join("x")} of ${own.join("x")}, k ${stage}, ${ahead} ahead`;
}
