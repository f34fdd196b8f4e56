/** Which workgroups matmuls of one row on matrix units have. None of it touches a bit of the result. */
import type { TensorLimits } from "../../../src/gpu/matrix.ts";
import type { MatrixUnit } from "../../../src/gpu/matrix_unit.ts";
import type { FewTile } from "../matmul_tensor_few.ts";
import { rowFits } from "./matmul_tensor_row.ts";

/** Most loads on their way at once: the tile where columns are fewest, in the last place that suits. */
const CANDIDATES: readonly FewTile[] = [
  { columns: 2, stage: 64, ahead: 2, branched: true },
  { columns: 1, stage: 64, ahead: 2, branched: true },
  { columns: 1, stage: 128, ahead: 2, branched: true },
];

/** What every range of k divides into, see LEAST_STAGE; for the subgroups of a processor. */
const LEAST: FewTile = { columns: 1, stage: 32, ahead: 1, branched: true };

/** Fewer lanes has a processor's subgroup. */
const LEAST_LANES = 16;

/** Workgroups that keep a large GPU's memory busy. */
const ENOUGH = 800;

/** The tile for a shard of `columns` outputs, `range` of k at a time; undefined where there is no room. */
export function rowTile(
  unit: MatrixUnit,
  limits: Pick<TensorLimits, "maxComputeWorkgroupStorageSize">,
  { columns, range, splitK }: {
    readonly columns: number;
    readonly range: number;
    readonly splitK: number;
  },
): FewTile | undefined {
  const fits = (tile: FewTile) => range % tile.stage === 0 && rowFits(unit, tile, limits);
  if (!fits(LEAST)) return undefined;
  const fitting = unit.lanes < LEAST_LANES ? [] : CANDIDATES.filter(fits);
  const workgroups = (tile: FewTile) => Math.ceil(columns / (tile.columns * unit.m)) * splitK;
  return fitting.find((tile) => workgroups(tile) >= ENOUGH) ?? fitting.at(-1) ?? LEAST;
}
