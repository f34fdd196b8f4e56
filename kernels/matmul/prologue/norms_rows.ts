import type { Matrix } from "../../../src/gpu/matrix.ts";
import type { Tuning } from "../../../src/gpu/tuning.ts";
import { isQuantized } from "../../../src/gpu/weight_format.ts";
import { addendBuffers, type AddendCount, addendsOf } from "./prologue.ts";
import { tensorShards } from "../tensor/common.ts";
import { MANY_WEIGHTS } from "../matmul_rows.ts";
import { canBeHeld, canBeResident } from "../matmul_stages.ts";

/**
 * Most bytes that all workgroups together read to norm x themselves. On an H200 a dispatch costs about 2.4 us, in which
 * its caches deliver this much besides the weights.
 */
export const MOST_READ: number = 12 * 2 ** 20;
/** Approximate number of columns that a workgroup makes. */
const COLUMNS = 32;

/** Most rows of x that a matmul norms itself. */
export const MOST_NORMED_ROWS = 8;

/** What decides, besides the matrix, whether a matmul norms x itself. */
export interface NormUse {
  /** Rows of x. */
  readonly rows: number;
  /** What is added to x first. */
  readonly added: AddendCount | undefined;
  /** Storage buffers that the epilogue binds. */
  readonly bound: number;
  readonly tuning: Tuning;
}

/** Whether a matmul is faster if it norms x itself, by `normedRows`, than if a dispatch before it does. */
export function normsRows(matrix: Matrix, { rows, added, bound, tuning }: NormUse): boolean {
  const { software, tensor, storageBuffers } = tuning;
  if (software || rows > MOST_NORMED_ROWS || tensorShards(matrix, tensor)) return false;
  const buffers = 3 + bound + 1 + addendBuffers(added) + Number(isQuantized(matrix.format));
  const workgroups = Math.ceil(matrix.rows / COLUMNS);
  const read = workgroups * rows * matrix.cols * (1 + addendsOf(added)) * 4;
  const many = added && "experts" in added && matrix.rows * matrix.cols >= MANY_WEIGHTS;
  return buffers <= storageBuffers && read <= MOST_READ && !many &&
    canBeHeld(matrix, { rows, splitK: 1, tuning });
}

/** Most rows of heads that a matmul norms and gates itself: a range of k of these rows stays in workgroup memory. */
const MOST_GATED_ROWS = 4;

/** Most columns of such a range: the squares of its vec8s then fit where `residentBytes` counts a norm's sums. */
const MOST_GATED = 4096;

/** Storage buffers of such a matmul besides those of its epilogue and of scales. */
const GATED_BUFFERS = 5;

/** Whether a matmul is faster if it norms and gates the heads of x itself, by `gatedHeads`. */
export function gatesHeads(
  matrix: Matrix,
  { rows, splitK, bound, headDim, tuning }: Pick<NormUse, "rows" | "bound" | "tuning"> & {
    readonly splitK: number;
    readonly headDim: number;
  },
): boolean {
  const { software, tensor, storageBuffers } = tuning;
  if (software || rows > MOST_GATED_ROWS || tensorShards(matrix, tensor)) return false;
  const buffers = GATED_BUFFERS + bound + Number(isQuantized(matrix.format));
  const workgroups = Math.ceil(matrix.rows / COLUMNS);
  return buffers <= storageBuffers && matrix.cols % (headDim * splitK) === 0 &&
    matrix.cols / splitK <= MOST_GATED &&
    workgroups * rows * matrix.cols * 2 * 4 <= MOST_READ &&
    canBeResident(matrix, { rows, splitK, tuning });
}

/** Most bytes of partial sums, of 8 splits a row, that all workgroups together read to add them themselves. */
const MOST_PARTIAL_BYTES = 4.5 * 2 ** 20;
/** The same for large matrices, whose weights take longer to read: for an H200 with o of Qwen3-30B-A3B. */
const MOST_BESIDE_MANY = 9 * 2 ** 20;

/**
 * Whether a matmul is faster if it adds the splits of attention itself, by `combinedHeads`. With `wide` a workgroup has
 * twice as many columns, so that fewer workgroups add the same splits.
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
