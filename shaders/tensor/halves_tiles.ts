/** Which workgroups matmuls of many rows on matrix units have. None of it touches a bit of the result. */
import type { TensorLimits } from "../../src/gpu/matrix.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import {
  type HalvesTile,
  halvesTileBytes,
  halvesTileSize,
  halvesTileThreads,
} from "./matmul_halves.ts";

/** A tile, and beyond how many rows, in those of the unit, it is looked at. */
interface Candidate {
  readonly beyond: number;
  readonly tile: HalvesTile;
}

/** Larger tiles first; the fastest on an H200 of those in bench/tensor_many.ts. */
const CANDIDATES: readonly Candidate[] = [
  { beyond: 4, tile: { grid: [2, 4], own: [4, 2], stage: 16, buffers: 2, pad: 1 } },
  { beyond: 2, tile: { grid: [2, 2], own: [2, 4], stage: 32, buffers: 2, pad: 1 } },
  { beyond: 1, tile: { grid: [1, 4], own: [2, 2], stage: 32, buffers: 2, pad: 1 } },
];

/** Workgroups that keep a large GPU busy. */
const ENOUGH = 96;

/**
 * The tile for `rows` rows of x and a shard of `columns` outputs, `range` of k at a time; undefined where
 * rows are few or the adapter has room for none.
 */
export function halvesTile(
  unit: MatrixUnit,
  limits: Omit<TensorLimits, "maxStorageBuffersPerShaderStage">,
  { rows, columns, range, splitK }: {
    readonly rows: number;
    readonly columns: number;
    readonly range: number;
    readonly splitK: number;
  },
): HalvesTile | undefined {
  const fitting = CANDIDATES.filter(({ beyond, tile }) =>
    rows > beyond * unit.m && range % tile.stage === 0 && tile.stage % unit.k === 0 &&
    halvesTileBytes(unit, tile) <= limits.maxComputeWorkgroupStorageSize &&
    halvesTileThreads(unit, tile) <= limits.maxComputeInvocationsPerWorkgroup
  ).map(({ tile }) => tile);
  const workgroups = (tile: HalvesTile) => {
    const [tileRows, tileColumns] = halvesTileSize(unit, tile);
    return Math.ceil(rows / tileRows) * Math.ceil(columns / tileColumns) * splitK;
  };
  const most = fitting.toSorted((a, b) => workgroups(b) - workgroups(a))[0];
  return fitting.find((tile) => workgroups(tile) >= ENOUGH) ?? most;
}
