/** Which workgroups of matmul_tensor.wgsl are timed. */
import { type TensorTile, tileBytes, tileSize } from "../../kernels/matmul/tensor/matmul_tensor.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";

/** Workgroups with one tile of rows, for single tokens and rounds of up to 16 rows. */
const NARROW: readonly TensorTile[] = [
  { subgroups: 2, grid: [1, 2], own: [1, 1], stage: 128, ahead: 1 },
  { subgroups: 4, grid: [1, 2], own: [1, 1], stage: 128, ahead: 1 },
  { subgroups: 8, grid: [1, 2], own: [1, 1], stage: 128, ahead: 1 },
  { subgroups: 8, grid: [1, 2], own: [1, 1], stage: 256, ahead: 1 },
  { subgroups: 4, grid: [1, 4], own: [1, 1], stage: 64, ahead: 1 },
  { subgroups: 4, grid: [1, 4], own: [1, 1], stage: 128, ahead: 1 },
  { subgroups: 8, grid: [1, 4], own: [1, 1], stage: 128, ahead: 1 },
  { subgroups: 8, grid: [1, 8], own: [1, 1], stage: 64, ahead: 1 },
  { subgroups: 8, grid: [1, 8], own: [1, 1], stage: 128, ahead: 1 },
  { subgroups: 4, grid: [1, 1], own: [1, 1], stage: 128, ahead: 2 },
  { subgroups: 8, grid: [1, 1], own: [1, 1], stage: 256, ahead: 2 },
  { subgroups: 4, grid: [1, 2], own: [1, 1], stage: 128, ahead: 2 },
  { subgroups: 8, grid: [1, 2], own: [1, 1], stage: 128, ahead: 2 },
  { subgroups: 8, grid: [1, 2], own: [1, 1], stage: 256, ahead: 2 },
  { subgroups: 8, grid: [1, 2], own: [1, 1], stage: 128, ahead: 4 },
  { subgroups: 4, grid: [1, 4], own: [1, 1], stage: 128, ahead: 2 },
  { subgroups: 8, grid: [1, 4], own: [1, 1], stage: 128, ahead: 2 },
  { subgroups: 4, grid: [1, 4], own: [1, 2], stage: 64, ahead: 1 },
];

const WIDE: readonly TensorTile[] = [
  { subgroups: 4, grid: [1, 2], own: [2, 1], stage: 128, ahead: 1 },
  { subgroups: 4, grid: [1, 4], own: [2, 1], stage: 128, ahead: 1 },
  { subgroups: 4, grid: [1, 4], own: [2, 1], stage: 64, ahead: 2 },
  { subgroups: 4, grid: [1, 4], own: [2, 2], stage: 64, ahead: 1 },
  { subgroups: 8, grid: [2, 4], own: [1, 1], stage: 64, ahead: 1 },
  { subgroups: 8, grid: [1, 8], own: [2, 1], stage: 64, ahead: 1 },
  { subgroups: 8, grid: [2, 4], own: [2, 1], stage: 64, ahead: 1 },
  { subgroups: 8, grid: [1, 8], own: [4, 1], stage: 32, ahead: 1 },
  { subgroups: 8, grid: [2, 4], own: [2, 2], stage: 32, ahead: 1 },
  { subgroups: 8, grid: [2, 4], own: [2, 2], stage: 64, ahead: 1 },
  { subgroups: 8, grid: [2, 4], own: [2, 2], stage: 32, ahead: 2 },
  { subgroups: 4, grid: [2, 2], own: [2, 4], stage: 32, ahead: 1 },
  { subgroups: 4, grid: [2, 2], own: [2, 3], stage: 32, ahead: 1 },
  { subgroups: 8, grid: [2, 4], own: [4, 2], stage: 32, ahead: 1 },
  { subgroups: 8, grid: [4, 2], own: [2, 4], stage: 32, ahead: 1 },
  { subgroups: 16, grid: [4, 4], own: [2, 2], stage: 32, ahead: 1 },
];

/** The tiles that the adapter can run and that suit a number of rows. */
export function tilesFor(
  unit: MatrixUnit,
  rows: number,
  limits: Pick<
    GPUSupportedLimits,
    "maxComputeWorkgroupStorageSize" | "maxComputeInvocationsPerWorkgroup"
  >,
): TensorTile[] {
  return [...NARROW, ...WIDE].filter((tile) => {
    const [tileRows] = tileSize(unit, tile);
    const fits = tileBytes(unit, tile) <= limits.maxComputeWorkgroupStorageSize &&
      tile.subgroups * unit.lanes <= limits.maxComputeInvocationsPerWorkgroup;
    const needed = Math.ceil(rows / unit.m) * unit.m;
    return fits && tileRows <= needed && tileRows >= Math.min(needed, rows >= 256 ? 64 : 16);
  });
}

export function tileText({ subgroups, grid, own, stage, ahead }: TensorTile): string {
  return `${subgroups} subgroups ${grid.join("x")} of ${own.join("x")}, k ${stage}, ${ahead} ahead`;
}
