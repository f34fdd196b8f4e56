/** Which workgroups matmuls of one row on matrix units have. None of it touches a bit of the result. */
import type { TensorLimits } from "../../../src/gpu/matrix.ts";
import type { MatrixUnit } from "../../../src/gpu/matrix_unit.ts";
import { rowFits, type RowTile } from "./matmul_tensor_row.ts";

/** Of the first of which there are enough workgroups, which have so many loads on their way together. */
const TILES: readonly (RowTile & { readonly enough: number })[] = [
  { columns: 2, stage: 64, ahead: 2, branched: false, enough: 800 },
  { columns: 2, stage: 128, ahead: 2, branched: true, enough: 400 },
  { columns: 1, stage: 128, ahead: 2, branched: true, enough: 400 },
  { columns: 1, stage: 256, ahead: 2, branched: true, enough: 0 },
];

/** Instead of the last one where the range is long: 8B's qkv takes 18.3 us, in branches 24.8. */
const LONG: RowTile = { columns: 1, stage: 256, ahead: 2, branched: false };
const LONG_RANGE = 4096;

/** Where x is held: stages of 256 take as much longer as the norm of its own saves. */
const HELD: RowTile = { columns: 1, stage: 128, ahead: 2, branched: true };

/** Where the range has no such stages. */
const ODD: readonly RowTile[] = [HELD, { ...HELD, stage: 64 }];

/** What every range of k divides into, see LEAST_STAGE; for the subgroups of a processor. */
const LEAST: RowTile = { columns: 1, stage: 32, ahead: 1, branched: true };

/** Fewer lanes has a processor's subgroup. */
const LEAST_LANES = 16;

/**
 * The tile for a shard of `columns` outputs, `range` of k at a time; undefined where there is no room.
 *
 * @param held whether x is whole in workgroup memory before the first stage.
 */
export function rowTile(
  unit: MatrixUnit,
  limits: Pick<TensorLimits, "maxComputeWorkgroupStorageSize">,
  { columns, range, splitK, held = false }: {
    readonly columns: number;
    readonly range: number;
    readonly splitK: number;
    readonly held?: boolean;
  },
): RowTile | undefined {
  const fits = (tile: RowTile) =>
    range % tile.stage === 0 && rowFits(unit, tile, limits, held ? range / 8 : 0);
  if (!fits(LEAST)) return undefined;
  if (unit.lanes < LEAST_LANES) return LEAST;
  const workgroups = (tile: RowTile) => Math.ceil(columns / (tile.columns * unit.m)) * splitK;
  const first = TILES.find((tile) => workgroups(tile) >= tile.enough) as RowTile;
  const long = first === TILES.at(-1) && range >= LONG_RANGE;
  return [held ? HELD : long ? LONG : first, ...ODD].find(fits) ?? LEAST;
}
