/** attention_tiled.wgsl: attention over many neighbouring rows of a slot, with the bits that attention.wgsl gives. */
import { type Dispatch, dispatch, type Kernel } from "../../src/gpu/kernel.ts";
import type { KvDtype } from "../../src/gpu/kv.ts";
import type { Tuning } from "../../src/gpu/tuning.ts";
import type { Heads } from "../lib/heads.ts";
import { kernelOf } from "../shader.ts";
import {
  COMBINE_LANES,
  groupOf,
  launchedSplits,
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

/**
 * Invocations of a workgroup. A workgroup takes 23 KiB of workgroup memory; with more than about 24, NVIDIA's driver
 * runs only one on a multiprocessor at a time.
 */
const THREADS = 128;
/** Fewest rows of a slot that this kernel takes; for fewer, the other kernels make better use of a workgroup. */
const MIN_ROWS = 17;
/** vec4s of a query or a key that pass through workgroup memory at a time. */
const STAGED = 8;
/** Vec8s of values that do so, one for each invocation. */
const STAGED_VALUES = 128;
/** Stages of values that are loaded before the first is needed. */
const AHEAD = 2;

/** Workgroups that keep a large GPU busy. */
const ENOUGH = 96;

/** The rows of a forward, by which `isTiled` decides whether this kernel takes them. */
interface TiledRows {
  readonly count: number;
  readonly perSlot: number;
  readonly paths: boolean;
  readonly tuning: Tuning;
}

/**
 * Whether this kernel takes the rows. A head's vec8s must be a power of two that divides the workgroup's invocations.
 * Where a query may keep the sums of all splits, attention.wgsl is faster unless the rows' own cells make enough
 * workgroups: on an H200 a prompt of 128 tokens of Qwen3-0.6B's shape takes 12 us there and 20 here, one of 512 tokens
 * 86 and 72.
 */
export function isTiled(shape: Heads & TiledRows): boolean {
  const { headDim, heads, tablePages, count, perSlot, paths, tuning } = shape;
  if (!tuning.tiles || paths || perSlot < MIN_ROWS) return false;
  if (![64, 128, 256].includes(headDim)) return false;
  const { group, tile } = tiledShape(shape);
  const tiles = count / perSlot * Math.ceil(perSlot / tile) * heads / group;
  return splitsOf({ tablePages }) > COMBINE_LANES ||
    tiles * Math.ceil(perSlot / SPLIT_CELLS) >= ENOUGH;
}

/**
 * Partial sums that a query keeps: at most as many as attention_combine.wgsl has lanes; with a window, as many as the
 * splits that the rows of a tile see.
 */
export function keptSums(shape: Heads & { readonly window?: number | undefined }): number {
  const splits = splitsOf(shape);
  if (shape.window === undefined) return Math.min(splits, COMBINE_LANES);
  return launchedSplits(splits, { window: shape.window, paths: false }, tiledShape(shape));
}

function tiledShape(
  { heads, kvHeads, headDim }: Pick<Heads, "heads" | "kvHeads" | "headDim">,
): Tile {
  const queries = queriesOf(headDim);
  const group = groupOf(heads / kvHeads, queries);
  return { group, tile: Math.floor(queries / group) };
}

/** Queries of a workgroup: fewer for wide heads, whose sums fill the registers. */
function queriesOf(headDim: number): number {
  return headDim > 128 ? 32 : 64;
}

function tiledKernel(heads: Heads): Kernel {
  const { group, tile } = tiledShape(heads);
  const { headDim, kvDtype } = heads;
  const name = `attention_tiled_${kvDtype}_${headDim}_${group}x${tile}`;
  const counts = tiledCounts(headDim, group, tile);
  return kernelOf<TiledParameters>("attention/attention_tiled")({ kv: kvDtype, ...counts }, {
    name,
    bindings: ["q", "keys", "values", "rows", "pages", "sums", "stats"],
    constants: [...SPLIT_CONSTANTS, "KEPT", ...SCORING],
  });
}

/** Records the partial sums of rows. */
export function tiledSums(buffers: SplitBuffers, rows: SplitRows): Dispatch {
  const { constants, ...launch } = splitLaunch(rows, tiledShape(rows));
  return dispatch(tiledKernel(rows), {
    buffers,
    constants: { ...constants, KEPT: rows.kept },
    ...launch,
  });
}

/** How attention_tiled.wgsl is unrolled. */
interface TiledCounts extends SplitOrder {
  /** Invocations of a workgroup, and groups of sixteen of them, which share queries for the scores. */
  readonly THREADS: number;
  readonly GROUPS: number;
  /** Query heads and rows of a workgroup, and queries that there is room for. */
  readonly GROUP: number;
  readonly TILE: number;
  readonly QUERIES: number;
  /** Lanes of a score that a stage holds, and vec8s of a query or a key in a stage. */
  readonly AT_ONCE: number;
  readonly STAGE_VEC8S: number;
  /** Queries of an invocation for the scores, and fours of them. */
  readonly SCORED: number;
  readonly SCORED_QUADS: number;
  /** Queries of an invocation for the values, and fours of them. */
  readonly SUMMED: number;
  readonly SUMMED_QUADS: number;
  /** Invocations that share the softmax of four queries. */
  readonly SHARES: number;
  /** Cells whose values are in workgroup memory at a time: parts of a split, and half of the cells of each. */
  readonly STAGED_CELLS: number;
  readonly STAGED_PARTS: number;
  readonly HALF_PART: number;
  /** Halves of vec8s of values that an invocation loads ahead. */
  readonly AHEAD: number;
  /** Vec8s of queries and of keys that an invocation loads for a stage. */
  readonly Q_LOADS: number;
  readonly K_LOADS: number;
  /** Line pitches in workgroup memory, in vec4s: of queries, keys and weights, and of values. */
  readonly PITCH: number;
  readonly VALUE_PITCH: number;
}

interface TiledParameters extends TiledCounts {
  /** What keys and values are stored as. */
  readonly kv: KvDtype;
}

function tiledCounts(headDim: number, group: number, tile: number): TiledCounts {
  const { VEC8S, LANES, STEPS, PARTS, CELLS } = splitCounts(headDim, group, tile);
  const QUERIES = queriesOf(headDim);
  const AT_ONCE = STAGED / (2 * STEPS);
  const STAGE_VEC8S = AT_ONCE * STEPS;
  const GROUPS = THREADS / 16;
  const SCORED = QUERIES / GROUPS;
  const SUMMED = QUERIES * VEC8S / THREADS;
  const STAGED_CELLS = STAGED_VALUES / VEC8S;
  return {
    THREADS,
    GROUPS,
    GROUP: group,
    TILE: tile,
    QUERIES,
    VEC8S,
    LANES,
    STEPS,
    PARTS,
    CELLS,
    AT_ONCE,
    STAGE_VEC8S,
    SCORED,
    SUMMED,
    STAGED_CELLS,
    AHEAD,
    SCORED_QUADS: SCORED / 4,
    SUMMED_QUADS: SUMMED / 4,
    SHARES: THREADS / (QUERIES / 4),
    Q_LOADS: QUERIES * STAGE_VEC8S / THREADS,
    K_LOADS: SPLIT_CELLS * STAGE_VEC8S / THREADS,
    STAGED_PARTS: Math.max(1, STAGED_CELLS / CELLS),
    HALF_PART: Math.min(STAGED_CELLS, CELLS) / 2,
    PITCH: Math.max(4 * STAGE_VEC8S, QUERIES / 4) + 1,
    VALUE_PITCH: 2 * VEC8S,
  };
}
