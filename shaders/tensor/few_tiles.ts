/** Which workgroups matmuls of few rows on matrix units have. None of it touches a bit of the result. */
import type { TensorLimits } from "../../src/gpu/matrix.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { fewFits, fewRows, type FewTile } from "./matmul_tensor_few.ts";

/** Larger tiles first; the fastest on an H200 of those in bench/few.ts. */
const CANDIDATES: readonly FewTile[] = [
  { subgroups: 1, grid: 1, columns: 2, stage: 64, ahead: 2, buffers: 1 },
  { subgroups: 1, grid: 1, columns: 1, stage: 64, ahead: 2, buffers: 1 },
  { subgroups: 1, grid: 1, columns: 1, stage: 32, ahead: 2, buffers: 1 },
];

/** Of a processor, which runs one workgroup after the other. */
const PLAIN: FewTile = { subgroups: 1, grid: 1, columns: 1, stage: 32, ahead: 1, buffers: 1 };

/** Fewer lanes has a processor's subgroup. */
const LEAST_LANES = 16;

/** Workgroups that keep a large GPU's memory busy. */
const ENOUGH = 800;

/** The tile for `rows` rows of x and `columns` outputs, `range` of k at a time; undefined where none is for so many. */
export function fewTile(
  unit: MatrixUnit,
  limits: Omit<TensorLimits, "maxStorageBuffersPerShaderStage">,
  { rows, columns, range, splitK }: {
    readonly rows: number;
    readonly columns: number;
    readonly range: number;
    readonly splitK: number;
  },
): FewTile | undefined {
  if (rows > fewRows(unit)) return undefined;
  const fitting = (unit.lanes < LEAST_LANES ? [PLAIN] : CANDIDATES).filter((tile) =>
    range % tile.stage === 0 && fewFits(unit, tile, rows, limits)
  );
  const workgroups = (tile: FewTile) =>
    Math.ceil(columns / (tile.grid * tile.columns * unit.n)) * splitK;
  return fitting.find((tile) => workgroups(tile) >= ENOUGH) ?? fitting.at(-1);
}
