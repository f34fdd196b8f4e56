/** Which rows and cells attention over latents takes at a time. */
import type { CellRange } from "../../src/gpu/kernel.ts";
import { MULTIPROCESSORS } from "../lib/h200.ts";
import { rowBlock } from "../lib/row_blocks.ts";
import type { LongQueries } from "./latent_long.ts";
import { CHUNK, CHUNK_CELLS, SEGMENT } from "./latent_kernels.ts";

/** Most rows whose chunks go to workgroups of their own. */
export const FEW_ROWS = 16;
/** Fewest segments for which all rows have a launch of their own, beside those of longer contexts. */
const MIN_SEGMENTS = 4;
/** Most queries of a slot whose segments latent_long.wgsl computes, measured on an H200. */
const LONG_QUERIES = 64;
/** Workgroups of latent_long.wgsl that run at a time: up to this many, tiles of 4 queries beat those of 8. */
const AT_A_TIME = MULTIPROCESSORS;

/** Rows that are computed at a time, and the runs of cells of which they store partial sums. */
export interface Pass {
  readonly first: number;
  readonly count: number;
  readonly perSlot: number;
  readonly run: number;
  readonly runs: number;
  readonly forCells?: CellRange;
  /** Queries of a tile of latent_long.wgsl; absent: another kernel computes the pass. */
  readonly long?: LongQueries;
}

interface Asked {
  readonly count: number;
  /** Rows of one slot that follow each other. */
  readonly perSlot: number;
  readonly heads: number;
  readonly tablePages: number;
  /** Whether latent_long.wgsl may be taken. */
  readonly long: boolean;
}

export function segmentsOf(tablePages: number): number {
  return Math.ceil(tablePages * CHUNK / SEGMENT);
}

/** Chunks of a context that is short enough for partial sums of each. A page is a chunk. */
export function chunksOf(tablePages: number): number {
  return Math.min(tablePages, CHUNK_CELLS / CHUNK);
}

/**
 * The passes: few rows of short contexts go by chunks, all others by segments, in blocks of rows if room is short.
 *
 * @param room rows times runs whose sums fit.
 */
export function passesOf(room: number, asked: Asked): Pass[] {
  const { count, perSlot, tablePages } = asked;
  const whole = { first: 0, count, perSlot };
  const [chunks, segments] = [chunksOf(tablePages), segmentsOf(tablePages)];
  const few = count <= FEW_ROWS && count * chunks <= room;
  const runs = few ? chunks : Math.min(segments, Math.floor(room / count));
  const short = { ...whole, run: few ? CHUNK : SEGMENT, runs };
  const most = short.run * runs;
  if (most >= tablePages * CHUNK) return [short];
  const blocks = blocksOf({ ...whole, run: SEGMENT, runs: segments }, room);
  if (!few && runs < MIN_SEGMENTS) return blocks;
  return [{ ...short, forCells: { from: 0, upTo: most } }, ...longPasses(blocks, asked, most + 1)];
}

/** Passes over segments, of contexts of `from` cells or more. */
function longPasses(blocks: readonly Pass[], asked: Asked, from: number): Pass[] {
  const { count, perSlot, heads, long } = asked;
  const passes = (forCells: CellRange, queries?: LongQueries) =>
    blocks.map((pass) => ({ ...pass, forCells, ...queries ? { long: queries } : {} }));
  if (!long || perSlot * heads > LONG_QUERIES) return passes({ from, upTo: Infinity });
  const upTo = Math.floor(AT_A_TIME / Math.ceil(count * heads / 4)) * SEGMENT;
  return upTo < from
    ? passes({ from, upTo: Infinity }, 8)
    : [...passes({ from, upTo }, 4), ...passes({ from: upTo + 1, upTo: Infinity }, 8)];
}

/** Rows whose partial sums fit at a time. */
function blocksOf(whole: Pass, room: number): Pass[] {
  const { count, runs } = whole;
  const each = rowBlock(whole, Math.floor(room / runs));
  return Array.from({ length: Math.ceil(count / each.count) }, (_, i) => {
    const first = i * each.count;
    const rows = Math.min(each.count, count - first);
    return { ...whole, first, count: rows, perSlot: Math.min(each.perSlot, rows) };
  });
}
