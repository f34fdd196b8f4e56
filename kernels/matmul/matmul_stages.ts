/** How many vec8s of k pass through workgroup memory at a time, and as what they are multiplied. */
import type { Matrix } from "../../src/gpu/matrix.ts";
import type { Tuning } from "../../src/gpu/tuning.ts";
import {
  BLOCK_VEC8S,
  isInteger,
  isQuantized,
  type WeightFormat,
} from "../../src/gpu/weight_format.ts";
import { lanesOf } from "./matmul_lanes.ts";
import { MANY_WEIGHTS, type MatmulUse, type TileUse, tileUse } from "./matmul_rows.ts";

/**
 * How the staged kernels multiply: floats; or, for integers, activations rounded to 8 bits a vec8,
 * as floats or as packed bytes, which give the same bits.
 */
export type Dots = "floats" | "whole" | "packed";

/** Bytes of workgroup memory that a packed vec8 of x takes: eight bytes and their step. */
export const PACKED_VEC8_BYTES = 12;

/** From so many rows on x is prefetched, because waiting for it takes long beside the weights. */
export const PREFETCH_ROWS = 7;

/** Vec8s of k in a stage if the next stage is prefetched: two stages fill workgroup memory. */
export const PREFETCH_STAGE = 32;

/** Most rows of x whose stages may be long. */
export const FEW_ROWS = 2;

/**
 * Most packed blocks of a lane in a stage. All are loaded at once: more would fill registers and slow compilers down.
 */
export const MAX_STEPS = 4;

/** Rows of x in a tile where there are many rows. */
export const TILE_ROWS = 8;

/** Most bytes of workgroup memory that the norm of a row takes in addition: a sum for each of 512 lanes. */
export const NORM_BYTES = 2048;

/** Invocations of a workgroup by rule, on hardware. */
const INVOCATIONS = 128;

/**
 * Most bytes of `lane_sums` (lib/matmul_outputs.wgsl), which groups with one pair of outputs have: integers at any
 * number of rows, floats at FEW_ROWS at most.
 */
function pairBytes(matrix: SumsOf, rows: number, tuning: Tuning): number {
  const lanes = lanesOf(matrix, tuning);
  const most = isInteger(matrix.format) ? rows : Math.min(rows, FEW_ROWS);
  return most * 8 * INVOCATIONS / lanes * (lanes + 1);
}

/** What decides how many lanes share an output. */
type SumsOf = Pick<Matrix, "format" | "cols" | "lanes">;

/** How weights of a format are multiplied on an adapter, at any number of rows. */
export function dotsOf(format: WeightFormat, { dot4I8 }: Pick<Tuning, "dot4I8">): Dots {
  if (!isInteger(format)) return "floats";
  return dot4I8 ? "packed" : "whole";
}

/**
 * With more stages than this in a range, fewer and longer ones are better even if the last is only partly filled: each
 * stage is a wait for memory.
 */
const MANY_STAGES = 8;

/**
 * Possible stage lengths of a matrix, the best first: those that divide its ranges of k. If none does, or if few rows
 * would have many stages, all lengths are possible, with the last stage only partly filled.
 */
export function stagesOf(
  { format, cols, lanes }: Pick<Matrix, "format" | "cols" | "lanes">,
  use: TileUse,
): number[] {
  const range = cols / 8 / use.splitK;
  const block = BLOCK_VEC8S[format] * lanesOf({ format, lanes }, use.tuning);
  const possible = stages(format, use)
    .filter((stage) => stage % block === 0 && stage / block <= MAX_STEPS);
  const whole = possible.filter((stage) => range % stage === 0);
  // Rows are packed block by block for all their lanes.
  const parts = lanes > 1 && range % (isQuantized(format) ? BLOCK_VEC8S[format] * lanes : 1) === 0;
  if (!parts) return whole;
  const [longest = 0] = whole;
  const many = range > MANY_STAGES * longest && hasLongStages(format, use);
  return longest === 0 || many ? possible : whole;
}

/**
 * Packed bytes of x need fewer registers, so longer stages fit, which load more weights at once. Many tiles have enough
 * loads in flight with short stages, whose code is shorter: 16 rows of Qwen3-0.6B take 68.6 us a layer instead of 72.3
 * (H200).
 */
function stages(format: WeightFormat, use: TileUse): number[] {
  const short = use.packed && (use.manyTiles || use.pairs > use.tuning.pairs);
  if (short || use.rows >= PREFETCH_ROWS) return [PREFETCH_STAGE, 64];
  return hasLongStages(format, use) ? [128, 64, 32] : [64, 32];
}

function hasLongStages(format: WeightFormat, use: TileUse): boolean {
  return dotsOf(format, use.tuning) === "packed" && use.rows <= FEW_ROWS;
}

/** Whether a stage is the whole range of k, which has a kernel of its own, but for packed integers. */
export function isResident(matrix: Matrix, use: TileUse, stage: number): boolean {
  const short = use.packed && stagesOf(matrix, use).includes(stage);
  return !short && residentStages(matrix, use).includes(stage);
}

/** The whole range of k as the only stage, if x of few rows fits into workgroup memory; else none. */
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

/**
 * A lane with more blocks than this, some of them missing, is padded to a multiple of MAX_STEPS blocks, so that
 * MAX_STEPS are loaded ahead.
 */
const MANY_BLOCKS = 2 * MAX_STEPS;

/**
 * Vec8s that a range of k takes in workgroup memory, padded to fill the last blocks of all lanes. A block of every lane
 * is `block` vec8s together.
 */
export function residentVec8s(range: number, block: number): number {
  const blocks = Math.ceil(range / block);
  const padded = range % block !== 0 && blocks > MANY_BLOCKS
    ? Math.ceil(blocks / MAX_STEPS) * MAX_STEPS
    : blocks;
  return padded * block;
}

/**
 * Whether x of a whole range of k, padded by `residentVec8s`, fits into workgroup memory. The last blocks of some lanes
 * may be missing for one row of floats with many blocks per lane: two rows of gpt-oss's 2,880 numbers would leave a
 * multiprocessor one workgroup.
 */
export function canBeResidentPadded(matrix: Matrix, all: MatmulUse): boolean {
  if (canBeResident(matrix, all)) return true;
  const use = tileUse(matrix, all);
  const { format, cols } = matrix;
  const [range, lanes] = [cols / 8 / use.splitK, lanesOf(matrix, use.tuning)];
  const padded = residentVec8s(range, lanes);
  const bytes = residentBytes(matrix, use) + 32 * (padded - range);
  return !use.tuning.software && !isQuantized(format) && lanes > 1 && Number.isInteger(range) &&
    range > MANY_BLOCKS * lanes && use.rows === 1 && bytes <= use.tuning.workgroupBytes;
}

/** Most bytes of workgroup memory that x of a whole range of k takes. */
export function residentBytes(
  matrix: SumsOf,
  { rows, splitK, tuning }: Pick<MatmulUse, "rows" | "splitK" | "tuning">,
): number {
  return rows * (4 * matrix.cols / splitK + NORM_BYTES) + pairBytes(matrix, rows, tuning);
}

/**
 * The use of workgroups with `widen` times as many groups of lanes, whose `lane_sums` take as many times the memory.
 */
export function widened(matrix: SumsOf, use: MatmulUse, widen: number): MatmulUse {
  const { rows, tuning } = use;
  const more = (widen - 1) * pairBytes(matrix, rows, tuning);
  return { ...use, tuning: { ...tuning, workgroupBytes: tuning.workgroupBytes - more } };
}

/** Whether x of a whole range of k may stay in workgroup memory. */
export function canBeResident(matrix: Matrix, use: MatmulUse): boolean {
  return !use.tuning.software && residentStages(matrix, tileUse(matrix, use)).length > 0;
}

/**
 * Blocks that each lane loads ahead. The loop body is unrolled over them: for integer products of more rows it is no
 * longer than with stages of 64. One row of floats has registers for more, which pays where a matrix is small. Integers
 * are loaded all at once or only a few ahead, because their code is the longest: of many blocks one, with which a round
 * of Qwen3.6-27B in q4 takes 6.72 ms instead of 6.83 (H200).
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
  const large = matrix.rows * matrix.cols >= MANY_WEIGHTS;
  if (integers && rows === 1 && large && blocks > MANY_BLOCKS) return 1;
  const short = !spread && (rows > FEW_ROWS || large) || integers && blocks > MAX_STEPS;
  const most = (integers ? 1 : 2) * (short ? MAX_STEPS / 2 : MAX_STEPS);
  return Math.max(...Array.from({ length: most }, (_, i) => i + 1).filter((n) => blocks % n === 0));
}
