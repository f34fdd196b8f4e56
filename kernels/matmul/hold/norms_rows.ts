import { isQuantized, type Matrix, type Tuning } from "../../../src/gpu/matrix.ts";
import { addendBuffers, type AddendCount, addendsOf } from "./hold.ts";
import { tensorShards } from "../tensor/common.ts";
import { MANY_WEIGHTS } from "../matmul_rows.ts";
import { canBeResident } from "../matmul_stages.ts";

/**
 * Most bytes that all workgroups together read to norm x themselves. On an H200 a dispatch costs about 2.4 us, in
 * which its caches give this much beside the weights.
 */
const MOST_READ = 12 * 2 ** 20;
/** Columns that a workgroup makes, about. */
const COLUMNS = 32;

/** Most rows of x that a matmul norms itself. */
export const MOST_NORMED_ROWS = 8;

/** What a matmul that norms x itself depends on beside the matrix. */
export interface NormUse {
  /** Of x. */
  readonly rows: number;
  /** What is added to x first. */
  readonly added: AddendCount | undefined;
  /** Storage buffers that the epilogue binds. */
  readonly bound: number;
  readonly tuning: Tuning;
}

/** Whether a matmul had better norm x itself, by `normedRows`, than have it normed before. */
export function normsRows(matrix: Matrix, { rows, added, bound, tuning }: NormUse): boolean {
  const { software, tensor, storageBuffers } = tuning;
  if (software || rows > MOST_NORMED_ROWS || tensorShards(matrix, tensor)) return false;
  const buffers = 3 + bound + 1 + addendBuffers(added) + Number(isQuantized(matrix.format));
  const workgroups = Math.ceil(matrix.rows / COLUMNS);
  const read = workgroups * rows * matrix.cols * (1 + addendsOf(added)) * 4;
  const many = added && "experts" in added && matrix.rows * matrix.cols >= MANY_WEIGHTS;
  return buffers <= storageBuffers && read <= MOST_READ && !many &&
    canBeResident(matrix, { rows, splitK: 1, tuning });
}

/** Most bytes of partial sums, of 8 splits a row, that all workgroups together read to add them themselves. */
const MOST_PARTIAL_BYTES = 4.5 * 2 ** 20;
/** The same beside weights that take longer to read: of an H200, o of Qwen3-30B-A3B. */
const MOST_BESIDE_MANY = 9 * 2 ** 20;

/**
 * Whether a matmul had better add the splits of attention itself, by `combinedHeads`; `wide`: in workgroups of twice as
 * many columns, each of which adds them once.
 */
export function combinesHeads(
  matrix: Matrix,
  { rows, splitK, bound = 0, wide = false, tuning }: Pick<NormUse, "rows" | "tuning"> & {
    readonly splitK: number;
    /** Storage buffers of sinks and of the epilogue; default 0. */
    readonly bound?: number;
    readonly wide?: boolean;
  },
): boolean {
  const { software, tensor, storageBuffers } = tuning;
  if (software || tensorShards(matrix, tensor)) return false;
  const buffers = 6 + bound + Number(isQuantized(matrix.format));
  const columns = wide ? 2 * COLUMNS : COLUMNS;
  const read = Math.ceil(matrix.rows / columns) * rows * matrix.cols * 8 * 4;
  const many = matrix.rows * matrix.cols >= MANY_WEIGHTS;
  return buffers <= storageBuffers && read <= (many ? MOST_BESIDE_MANY : MOST_PARTIAL_BYTES) &&
    (many || !wide) && canBeResident(matrix, { rows, splitK, tuning });
}
