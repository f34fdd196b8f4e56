/** attention_shared.wgsl: attention over rows that share reads of keys and values, with the bits of attention.wgsl. */
import { type CellRange, type Dispatch, dispatch, type Kernel } from "../../src/gpu/kernel.ts";
import type { KvDtype } from "../../src/gpu/kv.ts";
import type { Tuning } from "../../src/gpu/tuning.ts";
import type { Heads } from "../lib/heads.ts";
import { tileOf } from "../lib/row_blocks.ts";
import { kernelOf } from "../shader.ts";
import {
  groupOf,
  launchedSplits,
  pathGroups,
  SCORING,
  SPLIT_CELLS,
  SPLIT_CONSTANTS,
  type SplitBuffers,
  splitCounts,
  splitLaunch,
  type SplitOrder,
  type SplitRows,
  splitsOf,
  type Tile,
} from "./splits.ts";

/** Most queries for which there is workgroup memory. */
const MAX_QUERIES = 16;
/** Candidates for the queries of a workgroup; the fewest with which all workgroups run at once are taken. */
const QUERIES = [8, 12, MAX_QUERIES];
/** Queries of a workgroup of attention.wgsl, which takes the tiles that have no more. */
const FEW_QUERIES = 4;
/** Workgroups that an H200 has room for: four on each of its multiprocessors. */
const AT_ONCE = 528;
/**
 * Workgroups per split that are enough where contexts are too long for all workgroups to run at once. On an H200, 16
 * rows of a slot of the 8B shape behind 512 tokens take 12.1 us with 32 workgroups per split and 10.8 with 64; 32 rows
 * take 16.5 with 64 and 18.6 with 128.
 */
const ENOUGH = 64;

interface Shape extends Heads {
  readonly count: number;
  readonly perSlot: number;
  readonly paths: boolean;
  readonly window?: number | undefined;
  readonly tuning: Pick<Tuning, "software">;
}

/** A tile, and the context lengths in cells for which it is used. */
interface SharedTile extends Tile {
  readonly forCells: CellRange;
}

/**
 * Tiles for consecutive ranges of context lengths, together all of them; none at all where attention.wgsl is faster.
 */
export function sharedTiles(shape: Shape): readonly SharedTile[] {
  const { headDim, perSlot, tuning } = shape;
  if (tuning.software || perSlot === 1 || ![64, 128].includes(headDim)) return [];
  const sized = QUERIES.map((queries) => sizedTile(shape, queries))
    .filter(({ group, tile }) => group * tile > FEW_QUERIES);
  const largest = sized.findLast(({ each }) => each >= ENOUGH);
  if (!largest) return [];
  const tiles: SharedTile[] = [];
  for (const { group, tile, upTo } of [...sized, { ...largest, upTo: Infinity }]) {
    const last = tiles.at(-1);
    const from = last ? last.forCells.upTo + 1 : 0;
    if (upTo <= from) continue;
    const same = last?.group === group && last.tile === tile;
    if (same) tiles.pop();
    tiles.push({ group, tile, forCells: { from: same ? last.forCells.from : from, upTo } });
  }
  return tiles;
}

/** @returns `each`: workgroups per split; `upTo`: the longest context, in cells, whose workgroups all run at once. */
function sizedTile(shape: Shape, queries: number) {
  const { heads, kvHeads, count, perSlot } = shape;
  const group = groupOf(heads / kvHeads, queries);
  const tile = tileOf(perSlot, queries / group);
  const each = count / perSlot * Math.ceil(perSlot / tile) * heads / group;
  const splits = Math.floor(AT_ONCE / each);
  const all = splits >= launchedSplits(splitsOf(shape), shape, { tile });
  return { group, tile, each, upTo: all ? Infinity : splits * SPLIT_CELLS };
}

function sharedKernel({ headDim, kvDtype }: Heads, { group, tile }: Tile): Kernel {
  const name = `attention_shared_${kvDtype}_${headDim}_${group}x${tile}`;
  const counts = sharedCounts(headDim, { group, tile });
  return kernelOf<SharedParameters>("attention/attention_shared")({ kv: kvDtype, ...counts }, {
    name,
    bindings: ["q", "keys", "values", "rows", "pages", "sums", "stats"],
    constants: [...SPLIT_CONSTANTS, "KV_SPLITS", "PATHS", ...SCORING],
  });
}

/** How attention_shared.wgsl is unrolled. */
interface SharedCounts extends SplitOrder {
  /** Query heads and rows of a workgroup. */
  readonly GROUP: number;
  readonly TILE: number;
  /** Workgroups of a tile for the splits with paths. */
  readonly PATH_GROUPS: number;
  /** Queries that there is workgroup memory for. */
  readonly QUERIES: number;
  /** Cells of an invocation for the scores, one after the other. */
  readonly PASSES: number;
  /** Parts of queries of an invocation for the values. */
  readonly TURNS: number;
  /** Fours of cells of a part. */
  readonly LINES: number;
}

interface SharedParameters extends SharedCounts {
  /** What keys and values are stored as. */
  readonly kv: KvDtype;
}

function sharedCounts(headDim: number, { group, tile }: Tile): SharedCounts {
  const { VEC8S, LANES, STEPS, PARTS, CELLS, THREADS, PASSES } = splitCounts(headDim, group, tile);
  return {
    GROUP: group,
    TILE: tile,
    PATH_GROUPS: pathGroups(tile),
    QUERIES: MAX_QUERIES,
    VEC8S,
    LANES,
    STEPS,
    PARTS,
    CELLS,
    PASSES,
    TURNS: MAX_QUERIES * PARTS / THREADS,
    LINES: CELLS / 4,
  };
}

/** Records the partial sums of rows. */
export function sharedSums(buffers: SplitBuffers, rows: SplitRows, tile: SharedTile): Dispatch {
  const { constants, ...launch } = splitLaunch(rows, tile);
  return dispatch(sharedKernel(rows, tile), {
    buffers,
    constants: { ...constants, KV_SPLITS: rows.kept, PATHS: Number(rows.paths) },
    ...launch,
    forCells: tile.forCells,
  });
}
