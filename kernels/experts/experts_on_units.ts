import type { Dispatch, Operand } from "../../src/gpu/kernel.ts";
import {
  MAX_SCALED_ROWS,
  type TensorLimits,
  type TensorMatrices,
} from "../../src/gpu/matrices_on_units.ts";
import type { Matrix, Shard } from "../../src/gpu/matrix.ts";
import { isQuantized } from "../../src/gpu/weight_format.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { formatOf } from "../matmul/tensor/loads.ts";
import { roundRows } from "../matmul/tensor/round_tiles.ts";
import { rowScales } from "../matmul/tensor/row_scales.ts";
import type { ExpertEpilogue } from "./expert_kernels.ts";
import { expertTensor } from "./expert_tensor.ts";
import type { ExpertChoice } from "./route.ts";
import { hasLaunches, unitLaunch } from "./expert_unit_tiles.ts";
import { rowGroup } from "./tile_weights.ts";
import { type Jobs, maxTiles, type TileSize } from "./job_lists.ts";

/**
 * Whether matrix units can multiply the experts of a matrix, whatever the number of rows: the values of the numbers are
 * not looked at.
 */
export function fitsExpertUnits(
  { format, rows, cols }: Pick<Matrix, "format" | "rows" | "cols">,
  { unit, limits, numExperts }: {
    readonly unit: MatrixUnit;
    readonly limits: TensorLimits;
    readonly numExperts: number;
  },
): boolean {
  const expertRows = rows / numExperts;
  const lies = isQuantized(format) || format === "bf16" && expertRows % rowGroup(unit) === 0;
  return lies && unit.n % 8 === 0 && expertRows % 2 === 0 &&
    hasLaunches(unit, limits, { cols, format });
}

/** The scales of the experts of a matrix's shards; undefined where they are not multiplied on matrix units. */
export function expertScales(
  { shards }: Pick<Matrix, "shards">,
  tensor: TensorMatrices | undefined,
): Operand[] | undefined {
  const scales = shards.flatMap((shard) => tensor?.experts.get(shard)?.scales ?? []);
  return scales.length === shards.length ? scales : undefined;
}

/**
 * Whether a gated epilogue of `expertMatmul` may reduce the scales of the jobs of some rows (`scaledEpilogue`): on
 * matrix units, for at most as many rows as a unit has. More rows were not timed.
 */
export function expertsStoreScales(
  matrix: Pick<Matrix, "shards">,
  { rows, tensor }: { readonly rows: number; readonly tensor: TensorMatrices | undefined },
): boolean {
  return tensor !== undefined && rows <= tensor.unit.m &&
    expertScales(matrix, tensor) !== undefined;
}

/**
 * Whether the matmul of experts by a matrix takes x as `halfRows` stores it, in forwards of more rows than a round has.
 * Otherwise each of its workgroups, of which many read the same rows, rounds them. With two f16 numbers for each of x
 * it was not worth a dispatch.
 *
 * @param of.rows of the forward.
 */
export function expertsTakeF16(
  matrix: Pick<Matrix, "format" | "shards">,
  { rows, tensor }: { readonly rows: number; readonly tensor: TensorMatrices | undefined },
): boolean {
  if (!tensor || !expertScales(matrix, tensor) || rows <= roundRows(tensor.unit)) return false;
  return formatOf({ matrix, precision: tensor.precision }).parameters.LOW === 0;
}

/**
 * Records `out[job] = epilogue(W_e x[row])` on matrix units, the scales of x first unless `xScales`, f32 [rows of
 * x], has them (as `rowScales` writes them) or x is f16; the rest is as in `expertMatmul`. Returns undefined where the
 * matrix has no scales, which does not depend on the rows.
 */
export function expertsOnUnits(
  { matrix, x, xScales: given, xIsF16, out, experts, tiles, choice }: {
    readonly matrix: Matrix;
    readonly x: Operand;
    readonly xScales?: Operand | undefined;
    /** Whether x is f16, see `expertsTakeF16`, with its scales in `TensorMatrices.xScales`. */
    readonly xIsF16?: boolean | undefined;
    readonly out: Operand;
    readonly experts: Operand;
    readonly tiles: Operand;
    readonly choice?: ExpertChoice | undefined;
  },
  { tensor, tile, shared, epilogue, perJob, label, work, ...jobs }: Jobs & {
    readonly tile: TileSize;
    readonly shared?: number | undefined;
    readonly tensor: TensorMatrices | undefined;
    readonly epilogue: ExpertEpilogue;
    readonly perJob: boolean;
    readonly label: string;
    work(shard: Shard): Dispatch["work"];
  },
): Dispatch[] | undefined {
  const scales = expertScales(matrix, tensor);
  if (!tensor || !scales) return undefined;
  const { unit, limits, precision } = tensor;
  const xScales = given ?? tensor.xScales;
  const { cols, format } = matrix;
  const outputs = jobs.rows * jobs.topK * matrix.rows / jobs.numExperts;
  const launch = unitLaunch(unit, limits, { tile, cols, outputs, format });
  const xRows = perJob ? jobs.rows * jobs.topK : jobs.rows;
  if (!launch || xRows > MAX_SCALED_ROWS) throw new Error(`${label}: ${xRows} rows of ${cols}`);
  const dispatches = matrix.shards.map((shard, i) =>
    expertTensor(
      {
        x,
        out,
        lists: tile === 1 ? experts : tiles,
        xScales,
        choice,
        wScales: scales[i] as Operand,
      },
      {
        unit,
        tile: launch,
        matrix,
        shard,
        tiled: tensor.experts.get(shard)?.stored === "f16_tiles",
        shared,
        epilogue,
        precision,
        xIsF16,
        label,
        expertRows: matrix.rows / jobs.numExperts,
        tiles: maxTiles(jobs, tile),
        rowJobs: perJob ? 1 : jobs.topK,
        work: work(shard),
      },
    )
  );
  if (given || xIsF16) return dispatches;
  const scaling = { rows: xRows, cols, label: `${label}.scales` };
  return [rowScales({ x, scales: xScales }, scaling), ...dispatches];
}
