import type { Dispatch, Operand } from "../../src/gpu/kernel.ts";
import {
  isQuantized,
  type Matrix,
  MOST_DISPATCHED,
  type TensorLimits,
  type TensorShard,
  type Tuning,
} from "../../src/gpu/matrix.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import type { Epilogue } from "../fragments/epilogue.ts";
import {
  matmulTensor,
  rowScales,
  tensorBindings,
  tensorShards,
  type TensorTile,
} from "./matmul_tensor.ts";
import { fewTile } from "./few_tiles.ts";
import { matmulTensorFew } from "./matmul_tensor_few.ts";
import { matmulTensorRow } from "./row/matmul_tensor_row.ts";
import { rowTile } from "./row/row_tiles.ts";
import { type HeldRow, holdOnUnits } from "./row/held_row.ts";
import { LEAST_STAGE, tensorTile } from "./tensor_tiles.ts";

/** Whether matrix units can multiply by a matrix, whatever the number of rows: numbers of bf16 apart, see `weightScales`. */
export function fitsUnits(
  { format, rows, cols }: Pick<Matrix, "format" | "rows" | "cols">,
  { unit, limits, splitK }: {
    readonly unit: MatrixUnit;
    readonly limits: TensorLimits;
    readonly splitK: number;
  },
): boolean {
  const range = cols / splitK;
  if (!isQuantized(format) && format !== "bf16" || unit.n % 8 !== 0 || range % LEAST_STAGE !== 0) {
    return false;
  }
  return tensorTile(unit, limits, { rows: 1, columns: rows, range, splitK }) !== undefined;
}

/**
 * Records `out = epilogue(x W^T)` on matrix units, the scales of x first unless they are noted. Undefined
 * where the matrix has no scales, or the epilogue stores no numbers or binds too much: that does not depend on the rows.
 */
export function matmulOnUnits(
  { matrix, x, xScales, out }: {
    readonly matrix: Matrix;
    readonly x: Operand;
    readonly xScales?: Operand | undefined;
    readonly out: Operand;
  },
  { rows, epilogue, splitK, hold, tuning: { tensor }, label }: {
    readonly rows: number;
    readonly epilogue: Epilogue;
    readonly splitK: number;
    /** How x of one row comes to workgroup memory whole, see `normsOnUnits`. */
    readonly hold?: HeldRow | undefined;
    readonly tuning: Tuning;
    readonly label: string;
  },
): Dispatch[] | undefined {
  const shards = tensorShards(matrix, tensor);
  if (!tensor || !shards || epilogue.slots.out !== undefined) return undefined;
  const { unit, limits, precision } = tensor;
  if (tensorBindings(epilogue, matrix) > limits.maxStorageBuffersPerShaderStage) return undefined;
  if (rows > MOST_DISPATCHED) throw new Error(`${label}: ${rows} rows`);
  const { cols, format } = matrix;
  const use = { format, rows, range: cols / splitK, splitK };
  const dispatches = matrix.shards.map((shard, i) => {
    const { scales: wScales, halved } = shards[i] as TensorShard;
    const buffers = { x, out, wScales, xScales: xScales ?? tensor.xScales };
    const of = { unit, rows, matrix, shard, splitK, halved, epilogue, precision, label };
    const row = rows === 1
      ? rowTile(unit, limits, { ...use, columns: shard.rows, held: hold !== undefined })
      : undefined;
    if (row) {
      return matmulTensorRow(buffers, { ...of, tile: row, hold: hold && holdOnUnits(hold) });
    }
    const few = fewTile(unit, limits, { ...use, columns: shard.rows });
    if (few) return matmulTensorFew(buffers, { ...of, tile: few });
    const tile = tensorTile(unit, limits, { ...use, columns: shard.rows }) as TensorTile;
    return matmulTensor(buffers, { ...of, tile });
  });
  const first = { rows, cols, label: `${label}.scales` };
  return [
    ...xScales || hold ? [] : [rowScales({ x, scales: tensor.xScales }, first)],
    ...dispatches,
  ];
}

/**
 * Whether `matmul` of some rows with an epilogue that notes scales does: on matrix units, for rows of one
 * unit. The dispatch that finds the scales of more takes less of their time.
 */
export function notesOnUnits(
  matrix: Matrix,
  { rows, epilogue, tuning: { tensor } }: {
    readonly rows: number;
    readonly epilogue: Epilogue;
    readonly tuning: Pick<Tuning, "tensor">;
  },
): boolean {
  if (!tensor || !tensorShards(matrix, tensor)) return false;
  const { unit, limits: { maxStorageBuffersPerShaderStage } } = tensor;
  return rows <= unit.m && tensorBindings(epilogue, matrix) <= maxStorageBuffersPerShaderStage;
}
