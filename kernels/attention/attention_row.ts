/** attention_row.wgsl: attention that norms, turns and stores the heads of its row itself, and when that is faster. */
import { type Dispatch, dispatch, type Kernel, type Operand } from "../../src/gpu/kernel.ts";
import type { KvDtype } from "../../src/gpu/kv.ts";
import type { Tuning } from "../../src/gpu/tuning.ts";
import type { Heads } from "../lib/heads.ts";
import { kernelOf } from "../shader.ts";
import type { ValuesOf } from "./norm_rope_store.ts";
import {
  NORM_LANES,
  SPLIT_CELLS,
  type SplitBuffers,
  splitCounts,
  type SplitLaunch,
  type SplitOrder,
} from "./splits.ts";

/** Heads of one row that the same dispatch makes: see handoff_heads.ts. */
export interface HandoffHeads {
  /** u32 [headWords]: q, k and v as `qkv` has them. */
  readonly words: Operand;
  /** Workgroups that make them. */
  readonly makers: number;
  /** How often a workgroup polls for words that are not there yet before it makes them itself. */
  readonly turns: number;
}

/** How values are made where attention norms the heads of its row: it always stores values. */
type OwnValues = Exclude<ValuesOf, "none">;

/** What attention norms, turns and stores itself, see `ownsHeads`. */
export interface OwnHeads {
  /**
   * q, k and v as their matmul left them: [rows, heads + 2 kvHeads, headDim], kvHeads fewer without v, or where there
   * is no norm [rows, 2, heads + 2 kvHeads, headDim / 2], outputs of a matrix of row order rope_halves.
   */
  readonly qkv: Operand;
  /** Where they come from instead. */
  readonly handoff?: HandoffHeads | undefined;
  /** Norms of q and of k, [2, headDim]; absent: they are not normed. */
  readonly norm?: {
    readonly weight: Operand;
    readonly eps: number;
    /** Default: "plain". */
    readonly values?: OwnValues | undefined;
    /** Whether they are normed after rope; default: before. Values are then "plain". */
    readonly afterRope?: boolean | undefined;
  } | undefined;
  /** cos and sin, [positions, headDim / 2, 2]. */
  readonly rope: Operand;
}

/**
 * Cells up to which attention is faster if it norms the heads itself: its many invocations then share less work than
 * those of attention.wgsl. On an H200 a layer of Qwen3-30B-A3B takes 3 us less at 512 cells, 1.7 less at 2,048, and 4
 * more at 8,192.
 */
export const MAX_OWN_CELLS = 3072;

/** Storage buffers of attention that turns heads; one more where it norms them. */
const OWN_BUFFERS = 8;

/**
 * Whether attention norms, turns and stores the heads of its rows itself: only for one row, with
 * `Tuning.componentStores`. Many workgroups, all of which load their keys first, take longer than a separate dispatch
 * before attention.
 */
export function ownsHeads(
  { count, headDim, paths, normed, tuning }: Pick<Heads, "headDim"> & {
    readonly count: number;
    /** Whether heads are normed. */
    readonly normed: boolean;
    /** Whether rows may have paths. */
    readonly paths: boolean;
    readonly tuning: Tuning;
  },
): boolean {
  const { componentStores, storageBuffers, workgroupBytes, rowLanes } = tuning;
  return count === 1 && !paths && componentStores &&
    storageBuffers >= OWN_BUFFERS + Number(normed) &&
    ownBytes(headDim) <= workgroupBytes && rowThreads(headDim) <= rowLanes;
}

/** Most bytes of workgroup memory that attention_row.wgsl takes. */
function ownBytes(headDim: number): number {
  const [queries, heads] = [4, 4 + 2]; // as many queries, key and value
  const { PARTS } = splitCounts(headDim, queries, 1);
  const scores = 16 * SPLIT_CELLS + 4 * queries * (SPLIT_CELLS + 8 + PARTS);
  return 16 * rowPool(headDim, queries) + scores + 4 * heads * (headDim + NORM_LANES);
}

/** Invocations of a workgroup of attention_row.wgsl: each has four dims of a value. */
export function rowThreads(headDim: number): number {
  return 2 * splitCounts(headDim, 1, 1).THREADS;
}

/** Floats from one lane of a query's dots to the next in workgroup memory: STRIDE in attention_row.wgsl. */
const DOT_STRIDE = SPLIT_CELLS + 4;

/** Vectors of four floats for dots, and then for parts of the values' sums. */
function rowPool(headDim: number, group: number): number {
  const { LANES, PARTS } = splitCounts(headDim, group, 1);
  const even = 2 * Math.ceil(group / 2);
  return Math.max(Math.ceil(group * LANES * DOT_STRIDE / 4), PARTS * even * headDim / 4);
}

interface RowParameters extends SplitOrder {
  /** What keys and values are stored as. */
  readonly kv: KvDtype;
  /** Whether queries and keys are normed. */
  readonly NORMED: boolean;
  /** How values are made. */
  readonly values: OwnValues;
  /** Whether the norms' weights are multiplied after rope. */
  readonly AFTER_ROPE: boolean;
  /** Whether other workgroups of the dispatch make q, k and v, and words of these. */
  readonly HANDOFF: boolean;
  readonly RANGE: number;
  /** Query heads of a workgroup, and pairs of them. */
  readonly GROUP: number;
  readonly PAIRS_OF_QUERIES: number;
  /** Sets of invocations that share the pairs, for the values, and pairs of each. */
  readonly SETS: number;
  readonly PAIRS_EACH: number;
  /** Invocations of a workgroup, and cells of one for the scores, one after the other. */
  readonly THREADS: number;
  readonly PASSES: number;
  /** Invocations of a head vector, fours of them, and rope pairs of one. */
  readonly NORM_LANES: number;
  readonly NORM_QUADS: number;
  readonly PAIRS: number;
  /** Fours of floats of workgroup memory. */
  readonly POOL: number;
}

/** attention_row.wgsl for `group` query heads at a time. */
function rowKernel(
  { headDim, kvDtype }: Heads,
  { group, normed, values, afterRope, words }: {
    readonly group: number;
    readonly normed: boolean;
    readonly values: OwnValues;
    readonly afterRope: boolean;
    /** Of q, k and v where the same dispatch makes them; default: it does not. */
    readonly words?: number | undefined;
  },
): Kernel {
  const kinds = [
    ...normed ? ["normed"] : [],
    ...values === "plain" ? [] : [values === "normed" ? "values" : "keys"],
    ...afterRope ? ["after_rope"] : [],
    ...words === undefined ? [] : ["handoff", words],
  ];
  const name = ["attention_row", kvDtype, headDim, group, ...kinds].join("_");
  const { VEC8S, LANES, STEPS, PARTS, CELLS } = splitCounts(headDim, group, 1);
  const pairs = Math.ceil(group / 2);
  const threads = rowThreads(headDim);
  const SETS = Math.min(pairs, Math.floor(threads / (PARTS * headDim / 4)));
  const parameters = {
    kv: kvDtype,
    NORMED: normed,
    values,
    AFTER_ROPE: afterRope,
    HANDOFF: words !== undefined,
    GROUP: group,
    SETS,
    PAIRS_EACH: Math.ceil(pairs / SETS),
    PAIRS_OF_QUERIES: pairs,
    VEC8S,
    LANES,
    STEPS,
    PARTS,
    CELLS,
    THREADS: threads,
    PASSES: Math.ceil(SPLIT_CELLS * LANES / threads),
    NORM_LANES,
    NORM_QUADS: NORM_LANES / 4,
    PAIRS: Math.ceil(headDim / 2 / NORM_LANES),
    POOL: rowPool(headDim, group),
    RANGE: words ?? 0,
  };
  return kernelOf<RowParameters>("attention/attention_row")(parameters, { name });
}

/** Records the sums of splits for rows alone, `group` heads at a time, and stores their keys and values. */
export function rowSums(
  { own: { qkv, handoff, rope, norm }, ...buffers }: Omit<SplitBuffers, "q"> & {
    readonly own: OwnHeads;
  },
  { group, constants, launch, ...heads }: Heads & {
    readonly group: number;
    /** Those of attention.wgsl that it has too. */
    readonly constants: Readonly<Record<string, number>>;
    readonly launch: Omit<SplitLaunch, "constants">;
  },
): Dispatch {
  const { kvHeads, headDim } = heads;
  const words = (constants["HEAD_TILES"] ?? NaN) * kvHeads * group + 2 * kvHeads;
  const { values = "plain", afterRope = false } = norm ?? {};
  const normed = { normed: norm !== undefined, values, afterRope };
  const kind = { group, ...normed, words: handoff && words * headDim };
  const from = handoff
    ? {
      buffers: { handoff: handoff.words },
      constants: { TURNS: handoff.turns, MAKERS: handoff.makers, RANGES: 1 },
    }
    : { buffers: { qkv }, constants: {} };
  return dispatch(rowKernel(heads, kind), {
    buffers: { ...buffers, ...from.buffers, rope, ...norm ? { norm_weight: norm.weight } : {} },
    constants: { ...norm ? { EPS: norm.eps } : {}, ...from.constants, ...constants },
    ...launch,
  });
}
