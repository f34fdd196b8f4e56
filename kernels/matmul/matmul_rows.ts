/** How the rows of x are cut into tiles where a matrix has few workgroups. */
import type { Matrix } from "../../src/gpu/matrix.ts";
import type { Tuning } from "../../src/gpu/tuning.ts";
import { isInteger } from "../../src/gpu/weight_format.ts";

/** What a launch is chosen for. */
export interface MatmulUse {
  /** Rows of x. */
  readonly rows: number;
  /** See `splitKOf`. */
  readonly splitK: number;
  readonly tuning: Tuning;
  /** Whether the epilogue keeps a partial result of every two pairs (lib/matmul_outputs.wgsl); default false. */
  readonly partial?: boolean | undefined;
}

/** What the launch of one tile of the rows is chosen for. */
export interface TileUse extends MatmulUse {
  /** Rows of the tile. */
  readonly rows: number;
  /** Whether integers stay packed, in tiles of few rows, however many rows there are. */
  readonly packed: boolean;
  /** Whether the rows make more than two such tiles. */
  readonly manyTiles: boolean;
  /** Output pairs of a group of lanes. */
  readonly pairs: number;
}

/** Workgroups that fill a large GPU at one row. */
export const ENOUGH_WORKGROUPS = 512;

/**
 * Matrices of at least so many weights are faster with stages in a forward: at one row, [2048, 4096] takes 1.9 us more
 * of 12.1 with x resident, [5120, 2048] 1.1 of 14.3 and [6144, 8192] 4 of 38.6 (H200).
 */
export const MANY_WEIGHTS: number = 1 << 23;

/**
 * Workgroups, each with twice the outputs, that fill a large GPU with packed integers, whose weights take fewer loads.
 */
const ENOUGH_PACKED = 384;

/** Rows from which on integers have tiles of FEW_TILE_ROWS, one or more. */
const MIN_PACKED_ROWS = 3;

/** Most rows that a small matrix takes in tiles of FEW_TILE_ROWS. */
export const MAX_SMALL_ROWS: number = 16;
const FEW_TILE_ROWS = 4;

/**
 * From MANY_ROWS rows on, where a range of k has LONG_RANGE numbers, integers have tiles of MANY_TILE_ROWS: half as
 * many tiles read the weights. [28672, 4096] takes 344 us instead of 358 at 64 rows and 2,566 instead of 2,736 at 512;
 * [2048, 4096] in four ranges would take 246 instead of 241 (H200, q8).
 */
export const MANY_ROWS = 32;
const LONG_RANGE = 2048;
const MANY_TILE_ROWS = 8;

/**
 * Rows up to which software adapters have tiles of FEW_TILE_ROWS, so that short prompts use the kernels of rounds.
 * Tiles of eight rows run such a prompt in nine tenths of the time, but compiling them takes longer than the prompt.
 */
const SHORT_PROMPT_ROWS = 32;

/**
 * With fewer workgroups than this a group of lanes makes one pair of outputs: so few workgroups give each scheduler a
 * warp or two, and take as long as one warp's chain. On an H200 a layer of Qwen3-30B-A3B, whose qkv has 160 workgroups,
 * takes 55.0 us instead of 55.6, one of Qwen3-0.6B 28.2 instead of 29.4, at two rows 33.7 instead of 37.8, in q8 at
 * four rows 38.9 instead of 43.9.
 */
const MIN_WORKGROUPS = 200;

/** If a large matrix has fewer workgroups than this, its tile of three or four rows is cut in two. */
const FEW_WORKGROUPS = 256;

/**
 * How the rows are cut into tiles. Where a matrix has few workgroups, tiles of few rows make more of them; tiles of the
 * same columns read the weights at the same time. Integers have such tiles for every matrix: packed integers need few
 * registers, so that many workgroups wait for memory at once.
 */
export function tileUse(matrix: Matrix, use: MatmulUse): TileUse {
  const { rows, tuning: { software, pairs } } = use;
  const whole = { ...use, packed: false, manyTiles: false, pairs };
  if (software) {
    return rows <= SHORT_PROMPT_ROWS ? { ...whole, rows: evenTile(rows, FEW_TILE_ROWS) } : whole;
  }
  if (matrix.lanes === 1) return whole;
  if (isCut(matrix, use)) return { ...whole, rows: 2 };
  const few = { ...whole, rows: evenTile(rows, FEW_TILE_ROWS) };
  if (staysPacked(matrix, use)) {
    const many = rows >= MANY_ROWS && matrix.cols / use.splitK >= LONG_RANGE;
    const tile = many ? { ...whole, rows: MANY_TILE_ROWS } : few;
    const manyTiles = rows > 2 * FEW_TILE_ROWS;
    return { ...tile, packed: true, manyTiles, pairs: packedPairs(matrix, use, tile) };
  }
  return rows <= MAX_SMALL_ROWS && isSmall(matrix, use) ? few : whole;
}

function staysPacked({ format }: Matrix, { rows, tuning }: MatmulUse): boolean {
  return isInteger(format) && tuning.dot4I8 && rows >= MIN_PACKED_ROWS;
}

/**
 * Output pairs of a group with packed integers: twice as many if there are still enough workgroups, so that each x that
 * is read makes more outputs.
 */
function packedPairs(matrix: Matrix, use: MatmulUse, { rows }: Pick<TileUse, "rows">): number {
  const { tuning: { pairs } } = use;
  if (use.rows <= FEW_TILE_ROWS && makesOnePair(matrix, use)) return 1;
  const workgroups = workgroupsOf(matrix, use) / 2 * Math.ceil(use.rows / rows);
  return workgroups >= ENOUGH_PACKED ? 2 * pairs : pairs;
}

/**
 * Whether rows are cut into tiles of two whose stages are prefetched: [6144, 4096] then takes 17.6 us at four rows, as
 * at one row, and 22.2 otherwise (H200).
 */
export function isCut(matrix: Matrix, use: MatmulUse): boolean {
  const { rows, tuning: { software } } = use;
  return !software && (rows === 3 || rows === 4) && !isInteger(matrix.format) &&
    matrix.rows * matrix.cols >= MANY_WEIGHTS && workgroupsOf(matrix, use) < FEW_WORKGROUPS;
}

/** Whether a group of lanes is faster with one pair of outputs, where rows are few. */
export function makesOnePair(matrix: Matrix, use: MatmulUse): boolean {
  return !use.partial && workgroupsOf(matrix, use) < MIN_WORKGROUPS;
}

/** Whether a matrix has few workgroups and weights. */
export function isSmall(matrix: Matrix, use: MatmulUse): boolean {
  return workgroupsOf(matrix, use) < ENOUGH_WORKGROUPS && matrix.rows * matrix.cols < MANY_WEIGHTS;
}

/** Workgroups of a tile of rows. */
function workgroupsOf(
  { rows }: Matrix,
  { splitK, tuning: { pairs, groups } }: MatmulUse,
): number {
  return rows / (2 * pairs * groups) * splitK;
}

/** Rows of x a workgroup takes, so that the tiles of `rows` are as even as can be. */
export function evenTile(rows: number, most: number): number {
  return Math.ceil(rows / Math.ceil(rows / most));
}
