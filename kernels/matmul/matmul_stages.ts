/** How many vec8s of k pass through workgroup memory at a time, and as what they are multiplied. */
import {
  BLOCK_VEC8S,
  isInteger,
  isQuantized,
  type Matrix,
  type WeightFormat,
} from "../../src/gpu/matrix.ts";
import { lanesOf } from "./matmul_lanes.ts";
import { MANY_WEIGHTS, type MatmulUse, type TileUse, tileUse } from "./matmul_rows.ts";

/**
 * How the staged kernels multiply: floats; or, for integers, activations rounded to 8 bits a vec8,
 * as floats or as packed bytes, which give the same bits.
 */
export type Dots = "floats" | "whole" | "packed";

/** Bytes of workgroup memory of a vec8 of x that is packed: its bytes and their step. */
export const PACKED_VEC8_BYTES = 12;

/** From how many rows of x on it is prefetched: waiting for it takes long beside the weights. */
export const PREFETCH_ROWS = 7;

/** Vec8s of k in a stage whose follower is prefetched: two of them fill workgroup memory. */
export const PREFETCH_STAGE = 32;

/** Most rows of x whose stages may be long. */
export const FEW_ROWS = 2;

/** Packed blocks of a lane in a stage, all loaded at once: more fill registers and slow compilers down. */
export const MOST_STEPS = 4;

/** Rows of x that tiles have where there are many. */
export const TILE_ROWS = 8;

/** Bytes of workgroup memory that the norm of a row takes besides, at most: a sum for each of 512 lanes. */
const NORM_BYTES = 2048;

/**
 * The same of the sums of pairs alone, lib/matmul_outputs.wgsl, of 128 invocations of 16 lanes each: of FEW_ROWS at
 * most.
 */
const PAIR_BYTES = 8 * 8 * 17;

/** Tiles of few rows do not pay for unpacking integers to floats. */
export function dotsOf(
  format: WeightFormat,
  { rows, tuning }: Pick<MatmulUse, "rows" | "tuning">,
): Dots {
  if (!isInteger(format)) return "floats";
  return rows <= tuning.packedRows ? "packed" : "whole";
}

/**
 * Stages of a range beyond which fewer and longer ones are better, though the last is a part of one: each is a wait for
 * memory.
 */
const MANY_STAGES = 8;

/**
 * Stages of the ranges of a matrix, the one that suits most first: those that the ranges divide into, or
 * where none does or few rows would have many, all, the last a part of one.
 */
export function stagesOf(
  { format, cols, lanes }: Pick<Matrix, "format" | "cols" | "lanes">,
  use: TileUse,
): number[] {
  const range = cols / 8 / use.splitK;
  const block = BLOCK_VEC8S[format] * lanesOf({ format, lanes }, use.tuning);
  const possible = stages(format, use)
    .filter((stage) => stage % block === 0 && stage / block <= MOST_STEPS);
  const whole = possible.filter((stage) => range % stage === 0);
  // Rows are packed block by block for all their lanes.
  const parts = lanes > 1 && range % (isQuantized(format) ? BLOCK_VEC8S[format] * lanes : 1) === 0;
  if (!parts) return whole;
  const [longest = 0] = whole;
  const many = range > MANY_STAGES * longest && hasLongStages(format, use);
  return longest === 0 || many ? possible : whole;
}

/**
 * Packed bytes of x need fewer registers: longer stages fit, which load more weights at once. Many tiles have enough on
 * their way, and a shorter text: 16 rows of Qwen3-0.6B take 68.6 us a layer of 72.3 (H200).
 */
function stages(format: WeightFormat, use: TileUse): number[] {
  const short = use.packed && (use.manyTiles || use.pairs > use.tuning.pairs);
  if (short || use.rows >= PREFETCH_ROWS) return [PREFETCH_STAGE, 64];
  return hasLongStages(format, use) ? [128, 64, 32] : [64, 32];
}

function hasLongStages(format: WeightFormat, use: TileUse): boolean {
  return dotsOf(format, use) === "packed" && use.rows <= FEW_ROWS;
}

/** Whether a stage is the whole range of k, which has a kernel of its own, but for packed integers. */
export function isResident(matrix: Matrix, use: TileUse, stage: number): boolean {
  const short = use.packed && stagesOf(matrix, use).includes(stage);
  return !short && residentStages(matrix, use).includes(stage);
}

/** The whole range of k, where x of few rows fits into workgroup memory. */
export function residentStages(matrix: Matrix, use: TileUse): number[] {
  const { format, cols } = matrix;
  const range = cols / 8 / use.splitK;
  const lanes = lanesOf(matrix, use.tuning);
  const whole = lanes > 1 && range % (BLOCK_VEC8S[format] * lanes) === 0;
  // Integers without stages are multiplied as floats at other numbers of rows.
  const alike = !isInteger(format) || stagesOf(matrix, use).length > 0;
  const fits = use.rows <= TILE_ROWS && residentBytes(matrix, use) <= use.tuning.workgroupBytes;
  return whole && alike && fits ? [range] : [];
}

/** Blocks of a lane from which on those that are not there are as many as let MOST_STEPS be loaded ahead. */
const MANY_BLOCKS = 2 * MOST_STEPS;

/**
 * Vec8s of a range of k in workgroup memory, with those that fill the last blocks of all lanes, `block` vec8s together.
 */
export function heldVec8s(range: number, block: number): number {
  const blocks = Math.ceil(range / block);
  const padded = range % block !== 0 && blocks > MANY_BLOCKS
    ? Math.ceil(blocks / MOST_STEPS) * MOST_STEPS
    : blocks;
  return padded * block;
}

/**
 * Whether x of a whole range of k may be brought to workgroup memory by a hold: also where the last blocks of some
 * lanes are missing, of floats that are many for each lane, of one row: two of gpt-oss's 2,880 numbers would leave a
 * multiprocessor one workgroup.
 */
export function canBeHeld(matrix: Matrix, all: MatmulUse): boolean {
  if (canBeResident(matrix, all)) return true;
  const use = tileUse(matrix, all);
  const { format, cols } = matrix;
  const [range, lanes] = [cols / 8 / use.splitK, lanesOf(matrix, use.tuning)];
  const held = heldVec8s(range, lanes);
  const bytes = residentBytes(matrix, use) + 32 * (held - range);
  return !use.tuning.software && !isQuantized(format) && lanes > 1 && Number.isInteger(range) &&
    range > MANY_BLOCKS * lanes && use.rows === 1 && bytes <= use.tuning.workgroupBytes;
}

/** Bytes of workgroup memory of x of a whole range of k, at most. */
export function residentBytes(
  { cols }: Pick<Matrix, "cols">,
  { rows, splitK }: Pick<MatmulUse, "rows" | "splitK">,
): number {
  return rows * (4 * cols / splitK + NORM_BYTES) + Math.min(rows, FEW_ROWS) * PAIR_BYTES;
}

/** Whether x of a whole range of k may stay in workgroup memory. */
export function canBeResident(matrix: Matrix, use: MatmulUse): boolean {
  return !use.tuning.software && residentStages(matrix, tileUse(matrix, use)).length > 0;
}

/**
 * Blocks that each lane loads ahead. The body is unrolled: for integer products of more rows it is no longer than
 * with stages of 64. One row of floats has registers for more, which pays where a matrix is small; integers are
 * asked for all at once or not by many, for theirs is the longest text.
 *
 * @param spread whether each invocation has half the outputs.
 */
export function aheadOf(
  matrix: Matrix,
  stage: number,
  { rows, tuning }: MatmulUse,
  spread = false,
): number {
  const { format } = matrix;
  const blocks = stage / BLOCK_VEC8S[format] / lanesOf(matrix, tuning);
  const integers = isInteger(format);
  const short = !spread && (rows > FEW_ROWS || matrix.rows * matrix.cols >= MANY_WEIGHTS) ||
    integers && blocks > MOST_STEPS;
  const most = (integers ? 1 : 2) * (short ? MOST_STEPS / 2 : MOST_STEPS);
  return Math.max(...Array.from({ length: most }, (_, i) => i + 1).filter((n) => blocks % n === 0));
}
