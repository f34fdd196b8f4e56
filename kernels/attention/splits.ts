/** Splits of keys: how they and the rows of slots are divided among workgroups, which compute their partial sums. */
import type { Cost, Operand } from "../../src/gpu/kernel.ts";
import type { Heads } from "../lib/heads.ts";
import { PAGE, PATH_CELLS } from "../lib/rows.ts";

/** Cells of a split of attention.wgsl. */
export const SPLIT_CELLS = 64;
const PAGES_PER_SPLIT = SPLIT_CELLS / PAGE;
/**
 * Invocations of a workgroup of attention.wgsl; twice as many for heads wider than WIDE_HEAD, whose keys and values
 * would not fit into registers otherwise.
 */
const THREADS = 128;
export const WIDE_HEAD = 256;
/** Most parts of a split's cells; the sums of the parts are added one after the other. */
const MAX_PARTS = 16;
/** Lanes of attention_combine.wgsl. */
export const COMBINE_LANES = 16;

/** Constants of soft_cap.wgsl and visible.wgsl, and the scale. */
export const SCORING = ["SCALE", "CAP", "WINDOW"] as const;

/** Lanes that norm a head vector, of norm_rope_store.wgsl too. */
export const NORM_LANES = 32;

/**
 * Splits, of `cells` cells each, that the rows of a tile can see: `all`, or with a window only those that their windows
 * touch. Neighbouring rows of a chain are one cell apart; rows of a tree are at most as far apart as a path is long.
 */
export function launchedSplits(
  all: number,
  { window, paths }: { readonly window?: number | undefined; readonly paths: boolean },
  { tile, cells = SPLIT_CELLS }: { readonly tile: number; readonly cells?: number },
): number {
  if (window === undefined) return all;
  const seen = window + Math.max(tile - 1, paths ? PATH_CELLS : 0);
  return Math.min(all, 1 + Math.ceil((seen - 1) / cells));
}

/** Workgroups of a tile of rows for the splits with paths: two for each row, since a path spans at most two splits. */
export function pathGroups(tile: number): number {
  return tile === 1 ? 0 : 2 * tile;
}

/** Invocations of a workgroup of attention.wgsl for heads of this size. */
function splitThreads(headDim: number): number {
  return headDim > WIDE_HEAD ? 2 * THREADS : THREADS;
}

/**
 * The order of sums in a split. All attention kernels without matrix units that compute splits have the same;
 * attention_lanes.wgsl, which software adapters take, has one of its own.
 */
export interface SplitOrder {
  /** Vec8s of a head. */
  readonly VEC8S: number;
  /** Lanes that share a score, and vec8s of each lane. */
  readonly LANES: number;
  readonly STEPS: number;
  /** Parts of a split's cells, for the values, and cells of each, at most. */
  readonly PARTS: number;
  readonly CELLS: number;
}

/** Parameters of attention.wgsl for a tile. */
export interface SplitParameters extends SplitOrder {
  /** Query heads and rows of a workgroup. */
  readonly GROUP: number;
  readonly TILE: number;
  /** Invocations of a workgroup. */
  readonly THREADS: number;
  /** Workgroups of a tile for the splits with paths. */
  readonly PATH_GROUPS: number;
  /** Vectors of four queries of a workgroup; queries of a vector, and its components that none uses. */
  readonly QUADS: number;
  readonly QUERIES: number;
  readonly UNUSED: number;
  /** Cells of an invocation for the scores, one after the other. */
  readonly PASSES: number;
  /** Cells of a part whose values are loaded before the weights are there, and the others. */
  readonly EARLY: number;
  readonly LATE: number;
  /** Cells of an invocation for the weights, for each four of queries. */
  readonly TURNS: number;
  /**
   * Queries of a vector whose parts are added at a time, how many times, and vectors of sums that an invocation then
   * writes.
   */
  readonly SUMMED_QUERIES: number;
  readonly SUM_TURNS: number;
  readonly OUTS: number;
}

export function splitCounts(headDim: number, group: number, tile: number): SplitParameters {
  const VEC8S = headDim / 8;
  const THREADS = splitThreads(headDim);
  const QUADS = Math.ceil(tile * group / 4);
  const QUERIES = Math.min(4, tile * group);
  // SPLIT_CELLS * LANES is at least THREADS, so that every invocation has a part of a score.
  const LANES = VEC8S >= 8 ? 8 : VEC8S >= 4 ? 4 : 2;
  const PARTS = Math.min(MAX_PARTS, Math.floor(THREADS / VEC8S));
  const CELLS = Math.ceil(SPLIT_CELLS / PARTS);
  // Sums of two queries of a wide head would take more workgroup memory than WebGPU promises.
  const SUMMED_QUERIES = headDim > WIDE_HEAD ? 1 : 2;
  // Values are loaded early only where registers allow, then all of them.
  const EARLY = QUADS === 1 && CELLS <= 8 ? CELLS : 0;
  return {
    GROUP: group,
    TILE: tile,
    THREADS,
    PATH_GROUPS: pathGroups(tile),
    QUADS,
    VEC8S,
    LANES,
    STEPS: Math.ceil(VEC8S / LANES),
    PASSES: SPLIT_CELLS * LANES / THREADS,
    PARTS,
    CELLS,
    EARLY,
    LATE: CELLS - EARLY,
    TURNS: Math.ceil(QUADS * SPLIT_CELLS / THREADS),
    SUMMED_QUERIES,
    SUM_TURNS: Math.ceil(QUERIES / SUMMED_QUERIES),
    OUTS: Math.ceil(2 * SUMMED_QUERIES * VEC8S / THREADS),
    QUERIES,
    UNUSED: 4 - QUERIES,
  };
}

/** Splits of a whole block table. */
export function splitsOf({ tablePages }: Pick<Heads, "tablePages">): number {
  return Math.ceil(tablePages / PAGES_PER_SPLIT);
}

/** Query heads a workgroup takes: the largest part of a group that is at most `most`. */
export function groupOf(group: number, most: number): number {
  const parts = Array.from({ length: group }, (_, i) => group / (i + 1));
  return parts.find((part) => Number.isInteger(part) && part <= most) ?? 1;
}

/** What is read, and the partial sums that are written. */
export type SplitBuffers = Readonly<
  Record<"q" | "keys" | "values" | "rows" | "pages" | "sums" | "stats", Operand>
>;

/** Constants of kernels whose workgroups are launched so, beside SCORING. */
export const SPLIT_CONSTANTS = [
  "KV_HEADS",
  "HEAD_TILES",
  "TABLE_PAGES",
  "PER_SLOT",
  "FIRST_ROW",
] as const;

/** `count` rows whose partial sums, [rows, heads, kept], are computed; each `perSlot` neighbours are of one slot. */
export interface SplitRows extends Heads {
  readonly count: number;
  readonly perSlot: number;
  readonly paths: boolean;
  readonly window?: number | undefined;
  /** In `rows`. */
  readonly firstRow: number;
  /** Partial sums of a query. */
  readonly kept: number;
  /** Of SCORING. */
  readonly constants: Readonly<Record<(typeof SCORING)[number], number>>;
  readonly label: string;
  readonly work: Cost;
}

/** The part of `SplitRows` that a workgroup takes. */
export interface Tile {
  /** Query heads. */
  readonly group: number;
  /** Rows. */
  readonly tile: number;
}

/** The constants and workgroups of a dispatch. */
export interface SplitLaunch {
  readonly constants: Readonly<
    Record<(typeof SPLIT_CONSTANTS)[number] | (typeof SCORING)[number], number>
  >;
  /** Tiles of rows, groups of heads, and splits: first those with paths, then the others. */
  readonly workgroups: readonly [number, number, number];
  readonly cellsEach: number;
  readonly groupsBefore: number;
  readonly label: string;
  readonly work: Cost;
}

/** How rows, heads and splits are divided among workgroups of this tile. */
export function splitLaunch(of: SplitRows, { group, tile }: Tile): SplitLaunch {
  const { heads, kvHeads, count, perSlot, paths, kept, label, work } = of;
  const groupsBefore = paths ? pathGroups(tile) : 0;
  return {
    constants: {
      KV_HEADS: kvHeads,
      HEAD_TILES: heads / kvHeads / group,
      TABLE_PAGES: of.tablePages,
      // If all tiles are whole, PER_SLOT does not depend on the prompt: prompts of all lengths share a pipeline.
      PER_SLOT: perSlot % tile === 0 ? tile : perSlot,
      FIRST_ROW: of.firstRow,
      ...of.constants,
    },
    workgroups: [
      count / perSlot * Math.ceil(perSlot / tile),
      heads / group,
      groupsBefore + launchedSplits(kept, of, { tile }),
    ],
    cellsEach: SPLIT_CELLS,
    groupsBefore,
    label,
    work,
  };
}
