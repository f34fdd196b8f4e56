/** Which workgroups matmuls of one row on matrix units have. None of it touches a bit of the result. */
import type { TensorLimits } from "../../../src/gpu/matrix.ts";
import type { MatrixUnit } from "../../../src/gpu/matrix_unit.ts";
import type { FewTile } from "../matmul_tensor_few.ts";
import { rowFits } from "./matmul_tensor_row.ts";

/** By the workgroups of two tiles of outputs: the first of which there are enough. */
const WIDE: readonly (FewTile & { readonly enough: number })[] = [
  { columns: 2, stage: 64, ahead: 2, branched: true, enough: 800 },
  { columns: 2, stage: 128, ahead: 2, branched: true, enough: 400 },
];
const NARROW: FewTile = { columns: 1, stage: 128, ahead: 2, branched: true };

/** Of a long range, which few workgroups have to go through: 20.6 us instead of 24.5; of half the length 11.6 instead of 11.4. */
const LONG: FewTile = { ...NARROW, branched: false };
const LONG_RANGE = 4096;

/** Of a range that few such stages are: 6.5 us instead of 7.1. */
const SHORT: FewTile = { ...NARROW, stage: 256 };
const SHORT_RANGE = 1024;

/** Where the range has no such stages. */
const ODD: FewTile = { ...NARROW, stage: 64 };

/** What every range of k divides into, see LEAST_STAGE; for the subgroups of a processor. */
const LEAST: FewTile = { columns: 1, stage: 32, ahead: 1, branched: true };

/** Fewer lanes has a processor's subgroup. */
const LEAST_LANES = 16;

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
  if (unit.lanes < LEAST_LANES) return LEAST;
  const workgroups = Math.ceil(columns / (2 * unit.m)) * splitK;
  const wide = WIDE.filter(({ enough }) => workgroups >= enough);
  const narrow = range >= LONG_RANGE ? [LONG] : range <= SHORT_RANGE ? [SHORT, NARROW] : [NARROW];
  return [...wide, ...narrow, ODD].find(fits) ?? LEAST;
}
