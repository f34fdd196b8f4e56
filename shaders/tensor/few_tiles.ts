/** Which workgroups matmuls of few rows on matrix units have. None of it touches a bit of the result. */
import type { TensorLimits } from "../../src/gpu/matrix.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { fewFits, fewRows, type FewTile } from "./matmul_tensor_few.ts";

/** Most loads on their way at once: the tile where columns are fewest, in the last place that suits. */
const CANDIDATES: readonly FewTile[] = [
  { columns: 2, stage: 64, ahead: 2 },
  { columns: 1, stage: 64, ahead: 2 },
  { columns: 1, stage: 128, ahead: 2 },
];

/** What every range of k divides into, see LEAST_STAGE; for the subgroups of a processor. */
const LEAST: FewTile = { columns: 1, stage: 32, ahead: 1 };

/** Fewer lanes has a processor's subgroup. */
const LEAST_LANES = 16;

/** Workgroups that keep a large GPU's memory busy. */
const ENOUGH = 800;

/** The tile for `rows` rows of x and a shard of `columns` outputs, `range` of k at a time; undefined for more rows. */
export function fewTile(
  unit: MatrixUnit,
  limits: Pick<TensorLimits, "maxComputeWorkgroupStorageSize">,
  { rows, columns, range, splitK }: {
    readonly rows: number;
    readonly columns: number;
    readonly range: number;
    readonly splitK: number;
  },
): FewTile | undefined {
  const fits = (tile: FewTile) => range % tile.stage === 0 && fewFits(unit, tile, limits);
  if (rows > fewRows(unit) || !fits(LEAST)) return undefined;
  const fitting = unit.lanes < LEAST_LANES ? [] : CANDIDATES.filter(fits);
  const workgroups = (tile: FewTile) => Math.ceil(columns / (tile.columns * unit.n)) * splitK;
  return fitting.find((tile) => workgroups(tile) >= ENOUGH) ?? fitting.at(-1) ?? LEAST;
}
