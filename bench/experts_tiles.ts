/** Which workgroups of expert_tensor.wgsl are timed. */
import { type ExpertTile, expertTileBytes } from "../shaders/experts/expert_tensor.ts";
import type { Gpu } from "../src/gpu/device.ts";
import type { MatrixUnit } from "../src/gpu/matrix_unit.ts";

export type { ExpertTile };

/** Weights and x in bf16 and f32, in f16 and f32, or both in f16. */
export type Stored = "bf16" | "mixed" | "f16";

type Launch = readonly [
  subgroups: number,
  columns: number,
  own: number,
  stage: number,
  ahead: number,
  buffers: 1 | 2,
];

/** Up to eight jobs: subgroups, columns of them, own columns, stage, ahead, buffers. */
const FEW: readonly Launch[] = [
  [1, 1, 1, 128, 1, 1],
  [1, 1, 1, 128, 2, 1],
  [1, 1, 1, 128, 2, 2],
  [1, 1, 1, 64, 2, 1],
  [1, 1, 1, 64, 4, 1],
  [1, 1, 1, 64, 2, 2],
  [1, 1, 1, 32, 4, 1],
  [1, 1, 2, 64, 1, 1],
  [1, 1, 2, 64, 2, 1],
  [1, 1, 2, 64, 2, 2],
  [1, 1, 2, 32, 4, 1],
  [2, 2, 1, 128, 2, 1],
  [2, 2, 1, 64, 2, 1],
  [2, 2, 2, 64, 2, 1],
  [4, 4, 1, 128, 2, 1],
  [4, 4, 1, 64, 2, 1],
  [4, 4, 1, 64, 2, 2],
  [4, 4, 1, 64, 4, 1],
];

/** Jobs in tiles of the unit's rows, subgroups, rows and columns of them, own rows and columns, ... */
const MANY: readonly (readonly [
  jobs: number,
  subgroups: number,
  grid: readonly [number, number],
  own: readonly [number, number],
  stage: number,
  ahead: number,
  buffers: 1 | 2,
])[] = [
  [1, 4, [1, 4], [1, 1], 64, 1, 1],
  [1, 4, [1, 4], [1, 2], 64, 1, 1],
  [1, 4, [1, 4], [1, 2], 32, 1, 2],
  [2, 4, [1, 4], [2, 1], 64, 1, 1],
  [2, 4, [1, 4], [2, 2], 32, 1, 1],
  [2, 4, [1, 4], [2, 2], 32, 1, 2],
  [2, 4, [1, 4], [2, 2], 64, 1, 1],
  [2, 8, [2, 4], [1, 2], 64, 1, 1],
  [4, 4, [1, 4], [4, 1], 32, 1, 2],
  [4, 4, [1, 4], [4, 2], 32, 1, 1],
  [4, 4, [1, 4], [4, 2], 32, 1, 2],
  [4, 4, [2, 2], [2, 4], 32, 1, 1],
  [4, 4, [2, 2], [2, 4], 32, 1, 2],
  [4, 8, [2, 4], [2, 2], 32, 1, 2],
  [4, 8, [2, 4], [2, 2], 64, 1, 1],
];

/** Those that the adapter can run, of a list, and that suit jobs of which an expert has `mean`. */
export function expertTilesFor(
  { gpu: { limits }, unit }: { readonly gpu: Gpu; readonly unit: MatrixUnit },
  list: string,
  k: number,
  mean: number,
  rows: number,
): ExpertTile[] {
  const few = FEW.map(([subgroups, columns, own, stage, ahead, buffers]): ExpertTile => ({
    ...{ jobs: rows === 1 ? 1 : unit.m / 2, subgroups, grid: [1, columns], own: [1, own] },
    ...{ stage, ahead, buffers },
  }));
  const many = MANY.filter(([jobs]) => jobs * unit.m < 6 * mean || jobs === 1)
    .map(([jobs, subgroups, grid, own, stage, ahead, buffers]): ExpertTile => ({
      ...{ jobs: jobs * unit.m, subgroups, grid, own, stage, ahead, buffers },
    }));
  return (list === "few" ? few : many).filter((tile) =>
    k % tile.stage === 0 && tile.stage % unit.k === 0 &&
    expertTileBytes(unit, tile) <= limits.maxComputeWorkgroupStorageSize &&
    tile.subgroups * unit.lanes <= limits.maxComputeInvocationsPerWorkgroup
  );
}

export function tileText(tile: ExpertTile): string {
  const { jobs, subgroups, grid, own, stage, ahead, buffers } = tile;
  return `${jobs} jobs, ${subgroups} subgroups ${grid.join("x")} of ${
    own.join("x")
  }, k ${stage}, ${ahead} ahead, ${buffers} buffers`;
}
