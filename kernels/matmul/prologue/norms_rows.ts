import type { Matrix } from "../../../src/gpu/matrix.ts";
import type { Tuning } from "../../../src/gpu/tuning.ts";
import { isQuantized } from "../../../src/gpu/weight_format.ts";
import { addendBuffers, type AddendCount, addendsOf } from "./prologue.ts";
import { tensorShards } from "../tensor/common.ts";
import { MANY_WEIGHTS } from "../matmul_rows.ts";
import { canBeResident, canBeResidentPadded, widened } from "../matmul_stages.ts";

/**
 * Most bytes that all workgroups together read to norm x themselves. On an H200 a dispatch costs about 2.4 us, in which
 * its caches deliver this much besides the weights.
 */
export const MAX_READ: number = 12 * 2 ** 20;

/**
 * For one row of a large matrix workgroups are up to five times as large, so that few of them norm x. On an H200 two
 * large workgroups run on each of its 132 multiprocessors. If there were more, the last ones would run alone: gate-up
 * of Qwen3.6-27B, q4, takes 49 us with 272 workgroups and 45 with 218.
 */
const MAX_WIDE = 264;
/** Most bytes that such workgroups together read. */
const MAX_READ_WIDE = 28 * 2 ** 20;
/** Approximate number of columns that a workgroup makes. */
const COLUMNS = 32;

/** Most rows of x that a matmul norms itself. */
export const MAX_NORMED_ROWS = 8;

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

/**
 * Whether a matmul is faster if it norms x itself, by `normedRows`, than if a dispatch before it does.
 *
 * @returns how many times as many groups of lanes its workgroups then have; undefined where it is not faster.
 */
export function normsRows(
  matrix: Matrix,
  { rows, added, bound, tuning }: NormUse,
): number | undefined {
  const { software, tensor, storageBuffers, lanes, groups, invocations } = tuning;
  if (software || rows > MAX_NORMED_ROWS || tensorShards(matrix, tensor)) return undefined;
  const buffers = 3 + bound + 1 + addendBuffers(added) + Number(isQuantized(matrix.format));
  const many = matrix.rows * matrix.cols >= MANY_WEIGHTS;
  if (many && added && "experts" in added || buffers > storageBuffers) return undefined;
  const use = { rows, splitK: 1, tuning };
  if (!canBeResidentPadded(matrix, use)) return undefined;
  const workgroups = (widen: number) => Math.ceil(matrix.rows / COLUMNS / widen);
  const read = (widen: number) =>
    workgroups(widen) * rows * matrix.cols * (1 + addendsOf(added)) * 4;
  const reads = read(1) <= MAX_READ;
  if (!many || rows > 1 || reads && workgroups(1) <= MAX_WIDE) return reads ? 1 : undefined;
  const fits = (widen: number) =>
    workgroups(widen) <= MAX_WIDE && read(widen) <= MAX_READ_WIDE &&
    widen * groups * lanes <= invocations &&
    canBeResidentPadded(matrix, widened(matrix, use, widen));
  return reads ? (fits(2) ? 2 : 1) : [4, 5].find(fits);
}

/** Most rows of heads that a matmul norms and gates itself: a range of k of these rows stays in workgroup memory. */
const MAX_GATED_ROWS = 4;

/** Most columns of such a range: the squares of its vec8s then fit where `residentBytes` counts a norm's sums. */
const MAX_GATED = 4096;

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
  if (software || rows > MAX_GATED_ROWS || tensorShards(matrix, tensor)) return false;
  const buffers = GATED_BUFFERS + bound + Number(isQuantized(matrix.format));
  const workgroups = Math.ceil(matrix.rows / COLUMNS);
  return buffers <= storageBuffers && matrix.cols % (headDim * splitK) === 0 &&
    matrix.cols / splitK <= MAX_GATED &&
    workgroups * rows * matrix.cols * 2 * 4 <= MAX_READ &&
    canBeResident(matrix, { rows, splitK, tuning });
}

/** Most bytes of partial sums, of 8 splits a row, that all workgroups together read to add them themselves. */
const MAX_PARTIAL_BYTES = 4.5 * 2 ** 20;
/** The same for large matrices, whose weights take longer to read: for an H200 with o of Qwen3-30B-A3B. */
const MAX_BESIDE_MANY = 9 * 2 ** 20;

/**
 * Whether a matmul is faster if it adds the splits of attention itself, by `combinedHeads`. With a `widen` of 2 a
 * workgroup has twice as many columns, so that fewer workgroups add the same splits.
 */
export function combinesHeads(
  matrix: Matrix,
  { rows, splitK, bound = 0, widen = 1, tuning }: Pick<NormUse, "rows" | "tuning"> & {
    readonly splitK: number;
    /** Storage buffers of sinks and of the epilogue; default 0. */
    readonly bound?: number;
    readonly widen?: number;
  },
): boolean {
  const { software, tensor, storageBuffers } = tuning;
  if (software || tensorShards(matrix, tensor)) return false;
  const buffers = 6 + bound + Number(isQuantized(matrix.format));
  const read = Math.ceil(matrix.rows / COLUMNS / widen) * rows * matrix.cols * 8 * 4;
  const many = matrix.rows * matrix.cols >= MANY_WEIGHTS;
  return buffers <= storageBuffers && read <= (many ? MAX_BESIDE_MANY : MAX_PARTIAL_BYTES) &&
    (many || widen === 1) &&
    canBeResident(matrix, widened(matrix, { rows, splitK, tuning }, widen));
}
