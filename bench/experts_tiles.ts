/** Which workgroups of expert_tensor.wgsl are timed. */
import {
  type ExpertTile,
  expertTileBytes,
  expertTileThreads,
} from "../shaders/experts/expert_tensor.ts";
import type { Gpu } from "../src/gpu/device.ts";
import type { MatrixUnit } from "../src/gpu/matrix_unit.ts";

export type { ExpertTile };

/** Weights and x in bf16 and f32, in f16 and f32, or both in f16. */
export type Stored = "bf16" | "mixed" | "f16";

type Launch = readonly [columns: number, own: number, stage: number, ahead: number, unroll: number];

/** Up to eight jobs: subgroups, each with own columns. */
const FEW: readonly Launch[] = [
  [1, 1, 128, 2, 1],
  [1, 1, 128, 2, 8],
  [1, 1, 64, 2, 1],
  [1, 1, 64, 4, 1],
  [1, 2, 64, 2, 1],
  [2, 1, 128, 2, 1],
  [2, 1, 64, 2, 1],
  [2, 2, 64, 2, 1],
  [4, 1, 128, 1, 1],
  [4, 1, 128, 2, 1],
  [4, 1, 128, 2, 2],
  [4, 1, 128, 2, 8],
  [4, 1, 128, 3, 1],
  [4, 1, 256, 1, 1],
  [4, 1, 64, 2, 1],
  [4, 1, 64, 2, 4],
  [8, 1, 128, 1, 1],
  [8, 1, 64, 2, 1],
];

/** Jobs in tiles of the unit's rows, rows and columns of subgroups, own rows and columns, ... */
const MANY: readonly (readonly [
  jobs: number,
  grid: readonly [number, number],
  own: readonly [number, number],
  stage: number,
  ahead: number,
  skips: boolean,
  unroll?: number,
])[] = [
  [1, [1, 4], [1, 1], 128, 1, false],
  [1, [1, 4], [1, 2], 64, 1, false],
  [2, [1, 4], [2, 2], 32, 1, true],
  [2, [1, 4], [2, 2], 32, 1, false],
  [2, [1, 4], [2, 2], 64, 1, false],
  [2, [2, 2], [1, 4], 32, 1, false],
  [2, [2, 4], [1, 2], 64, 1, false],
  [2, [1, 4], [2, 1], 64, 1, false],
  [4, [1, 4], [4, 2], 32, 1, true],
  [4, [1, 4], [4, 2], 32, 1, false],
  [4, [2, 2], [2, 4], 32, 1, false],
  [4, [2, 2], [2, 4], 32, 1, true],
  [4, [2, 2], [2, 4], 32, 1, false, 2],
  [4, [2, 2], [2, 4], 64, 1, false],
  [4, [2, 4], [2, 2], 64, 1, false],
  [4, [2, 4], [2, 2], 32, 1, false],
  [4, [2, 4], [2, 4], 32, 1, false],
  [4, [4, 2], [1, 4], 64, 1, true],
];

/** Those that the adapter can run, of a list, and that suit jobs of which an expert has `mean`. */
export function expertTilesFor(
  { gpu: { limits }, unit }: { readonly gpu: Gpu; readonly unit: MatrixUnit },
  list: string,
  k: number,
  mean: number,
  rows: number,
): ExpertTile[] {
  const few = FEW.map(([columns, own, stage, ahead, unroll]): ExpertTile => ({
    ...{ jobs: rows === 1 ? 1 : unit.m / 2, grid: [1, columns], own: [1, own] },
    ...{ stage, ahead, unroll },
  }));
  const many = MANY.filter(([jobs]) => jobs * unit.m < 6 * mean || jobs === 1)
    .map(([jobs, grid, own, stage, ahead, skips, unroll = 1]): ExpertTile => ({
      ...{ jobs: jobs * unit.m, grid, own, stage, ahead, skips, unroll },
    }));
  return (list === "few" ? few : many).filter((tile) =>
    k % tile.stage === 0 && tile.stage % unit.k === 0 &&
    expertTileBytes(unit, tile) <= limits.maxComputeWorkgroupStorageSize &&
    expertTileThreads(unit, tile) <= limits.maxComputeInvocationsPerWorkgroup
  );
}

export function tileText({ jobs, grid, own, stage, ahead, skips, unroll }: ExpertTile): string {
  const sizes = `${jobs} jobs, ${grid.join("x")} of ${own.join("x")}, k ${stage}, ${ahead} ahead`;
  return `${sizes}, unroll ${unroll}${skips ? ", skips" : ""}`;
}
