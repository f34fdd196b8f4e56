import type { Dispatch, Operand } from "../../../src/gpu/kernel.ts";
import {
  MAX_SCALED_ROWS,
  type TensorLimits,
  type TensorShard,
} from "../../../src/gpu/matrices_on_units.ts";
import type { Matrix } from "../../../src/gpu/matrix.ts";
import type { Tuning } from "../../../src/gpu/tuning.ts";
import { isQuantized } from "../../../src/gpu/weight_format.ts";
import type { MatrixUnit } from "../../../src/gpu/matrix_unit.ts";
import { type Epilogue, PLAIN } from "../../lib/epilogue.ts";
import { scaleConstants } from "../../norm/rms_norm.ts";
import type { Prologue } from "../prologue/prologue.ts";
import { tensorBindings, tensorShards } from "./common.ts";
import { formatOf } from "./loads.ts";
import { matmulTensor, type TensorTile } from "./matmul_tensor.ts";
import { rowScales } from "./row_scales.ts";
import { fewTile } from "./few_tiles.ts";
import { matmulTensorFew } from "./matmul_tensor_few.ts";
import { roundRows } from "./round_tiles.ts";
import { MIN_STAGE, tensorTile } from "./tensor_tiles.ts";

/** The prologue with the buffer of the scales that its first workgroup resets to the largest. */
function withResetScales(prologue: Prologue): Prologue {
  const { resets } = prologue;
  if (!resets) return prologue;
  return {
    ...prologue,
    name: `${prologue.name}_resets`,
    buffers: { ...prologue.buffers, reduced: resets.reduced },
    constants: { ...prologue.constants, ...scaleConstants(resets) },
  };
}

/**
 * Whether matrix units can multiply by a matrix at any number of rows. Whether its bf16 numbers are exact in f16 is not
 * checked here, see `weightScales`.
 */
export function fitsUnits(
  { format, rows, cols }: Pick<Matrix, "format" | "rows" | "cols">,
  { unit, limits, splitK }: {
    readonly unit: MatrixUnit;
    readonly limits: TensorLimits;
    readonly splitK: number;
  },
): boolean {
  const range = cols / splitK;
  if (!isQuantized(format) && format !== "bf16" || unit.n % 8 !== 0 || range % MIN_STAGE !== 0) {
    return false;
  }
  return tensorTile(unit, limits, { rows: 1, columns: rows, range, splitK, low: 1 }) !== undefined;
}

/**
 * Records `out = epilogue(x W^T)` on matrix units, with a dispatch before for the scales of x unless they are stored
 * already. Undefined if the matrix has no scales, or if the epilogue stores no numbers or binds too many buffers: that
 * does not depend on the rows.
 */
export function matmulOnUnits(
  { matrix, x, xScales, xIsF16, out }: {
    readonly matrix: Matrix;
    readonly x: Operand;
    readonly xScales?: Operand | undefined;
    /** Whether x is stored as `takesF16` says. */
    readonly xIsF16?: boolean | undefined;
    readonly out: Operand;
  },
  { rows, epilogue, splitK, prologue, tuning: { tensor }, label }: {
    readonly rows: number;
    readonly epilogue: Epilogue;
    readonly splitK: number;
    /** How x of one row comes to workgroup memory whole, see `normsOnUnits`. */
    readonly prologue?: Prologue | undefined;
    readonly tuning: Tuning;
    readonly label: string;
  },
): Dispatch[] | undefined {
  const shards = tensorShards(matrix, tensor);
  if (!tensor || !shards || epilogue.out !== undefined) return undefined;
  const { unit, limits, precision } = tensor;
  if (tensorBindings(epilogue, matrix) > limits.maxStorageBuffersPerShaderStage) return undefined;
  if (rows > MAX_SCALED_ROWS) throw new Error(`${label}: ${rows} rows`);
  const { cols, format } = matrix;
  const use = { format, rows, range: cols / splitK, splitK };
  const { LOW: low } = formatOf({ matrix, precision }).parameters;
  const halves = xIsF16 === true && low === 0;
  const dispatches = matrix.shards.map((shard, i) => {
    const { scales: wScales, stored } = shards[i] as TensorShard;
    const halved = stored === "f16";
    const buffers = { x, out, wScales, xScales: xScales ?? tensor.xScales };
    const of = { unit, rows, matrix, shard, splitK, halved, epilogue, precision, label };
    const few = fewTile(unit, limits, {
      ...use,
      columns: shard.rows,
      resident: prologue !== undefined,
    });
    if (few) {
      return matmulTensorFew(buffers, {
        ...of,
        tile: few,
        xIsF16,
        prologue: prologue && withResetScales(prologue),
      });
    }
    const columns = shard.rows;
    const tile = tensorTile(unit, limits, { ...use, columns, halves, low }) as TensorTile;
    return matmulTensor(buffers, { ...of, tile, xIsF16 });
  });
  const first = { rows, cols, label: `${label}.scales` };
  return [
    ...xScales || prologue || halves ? [] : [rowScales({ x, scales: tensor.xScales }, first)],
    ...dispatches,
  ];
}

/**
 * Whether `matmul` stores scales, with an epilogue that does so, at any number of rows: it must run on matrix units.
 */
export function storesScalesOnUnits(
  matrix: Matrix,
  { epilogue, tuning: { tensor } }: {
    readonly epilogue: Epilogue;
    readonly tuning: Pick<Tuning, "tensor">;
  },
): boolean {
  if (!tensor || !tensorShards(matrix, tensor)) return false;
  return tensorBindings(epilogue, matrix) <= tensor.limits.maxStorageBuffersPerShaderStage;
}

/** The form in which a matmul takes x instead of f32, see `takesF16`. */
interface F16Input {
  /** One f16 number for each of x, [rows, cols] as `halfRows` writes it, or two, [rows, 2, cols]. */
  readonly put: "half" | "pair";
  /** Whether a dispatch of its own that writes this form, with the scales in `TensorMatrices.xScales`, pays. */
  readonly before: boolean;
}

/**
 * How the operation that writes x, and knows its scales, is to store it for matmuls of two rows and more; undefined: as
 * f32. Each row of x is read by many workgroups, which would otherwise all round it. With `--precision f32` rounding x
 * is not what limits prompts.
 */
export function takesF16(
  matrix: Matrix,
  { rows, bound, tuning: { tensor } }: {
    readonly rows: number;
    /** Storage buffers of the epilogue. */
    readonly bound: number;
    readonly tuning: Pick<Tuning, "tensor">;
  },
): F16Input | undefined {
  if (!tensor || rows === 1) return undefined;
  const bindings = tensorBindings(PLAIN.store, matrix) + bound;
  const { limits, precision, unit } = tensor;
  if (!tensorShards(matrix, tensor) || bindings > limits.maxStorageBuffersPerShaderStage) {
    return undefined;
  }
  const many = rows > roundRows(unit);
  const { LOW: low } = formatOf({ matrix, precision }).parameters;
  if (low === 0) return { put: "half", before: many };
  return many ? undefined : { put: "pair", before: false };
}
