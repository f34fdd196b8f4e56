/** attention_units.wgsl: attention on matrix units, and which shapes it takes. */
import type { KvDtype } from "../../../src/gpu/kv.ts";
import { type Kernel } from "../../../src/gpu/kernel.ts";
import type { AttentionUnits } from "../../../src/gpu/matrices_on_units.ts";
import type { MatrixUnit } from "../../../src/gpu/matrix_unit.ts";
import { pathGroups } from "../splits.ts";
import type { AttentionShape } from "../attention.ts";
import type { Heads } from "../../lib/heads.ts";
import { kernelOf } from "../../shader.ts";

/** Invocations of a workgroup: few where it has one split, more where it has a segment. */
export const MIN_THREADS = 128;
const MANY_THREADS = 256;
/** Cells of a split of keys, whose sums begin with zero: decides bits. */
const CELLS = 64;
/** Cells of a segment: its splits are merged in order, then the segments are. Decides bits. */
export const SEGMENT_CELLS = 1024;
/** Rows that are recorded together. */
export interface Block extends AttentionShape {
  /** In `rows`. */
  readonly firstRow: number;
  /** In `scales`. */
  readonly firstScale: number;
}

/** A workgroup of attention_units.wgsl. No number of these changes a bit of what it computes. */
export interface UnitsTile {
  /** With padding: a multiple of the unit's rows. */
  readonly queries: number;
  /** Query heads. */
  readonly group: number;
  /** Rows of a slot. */
  readonly tile: number;
  /** Splits of keys: 1, all of a segment, or several whose sums are kept separately. */
  readonly span: number;
  /** The sums of each of its splits are kept, as if it had a workgroup of its own. */
  readonly unmerged: boolean;
  /** Its rows see no splits of other workgroups: it writes their output. */
  readonly direct: boolean;
  /** Values are loaded with the keys: they wait in registers. */
  readonly early: boolean;
  /** Tiles of queries stay in registers, not in workgroup memory. */
  readonly inRegisters: boolean;
  /** Invocations of the workgroup. */
  readonly threads: number;
}

/** Cells of a split. */
export function cellsOf({ cells = CELLS }: AttentionUnits): number {
  return cells;
}

/** Why a shape stays with the other kernels; undefined where the units take it, at any number of rows. */
export function whyNotUnits(
  heads: Pick<Heads, "headDim" | "kvDtype">,
  units: AttentionUnits,
): string | undefined {
  const { unit, limits } = units;
  const { headDim } = heads;
  if (MIN_THREADS % unit.lanes !== 0 || unit.k > 16 || unit.m > 16 || unit.n > 16) {
    return `attention: units of ${unit.m}x${unit.n}x${unit.k}`;
  }
  if (headDim % 16 !== 0 || headDim < 32 || headDim > 128 || wideOf(headDim) > unit.lanes) {
    return `attention: heads of ${headDim}`;
  }
  const least = unitsBytes(heads, units, { queries: 16, inRegisters: true });
  const fits = least <= limits.maxComputeWorkgroupStorageSize &&
    MIN_THREADS <= limits.maxComputeInvocationsPerWorkgroup;
  return fits ? undefined : `attention: ${least} bytes of workgroup memory`;
}

/** Invocations that load a row, rounded up to a power of two: two of its vec8s each, the surplus ones none. */
export function wideOf(headDim: number): number {
  return 2 ** Math.ceil(Math.log2(headDim / 16));
}

/** Invocations of a workgroup of many splits: MANY_THREADS where all of them load the same number of rows. */
export function maxThreads({ headDim }: Pick<Heads, "headDim">, units: AttentionUnits): number {
  const { limits, unit } = units;
  const fits = MANY_THREADS <= limits.maxComputeInvocationsPerWorkgroup &&
    cellsOf(units) * wideOf(headDim) % MANY_THREADS === 0 && MANY_THREADS % unit.lanes === 0;
  return fits ? MANY_THREADS : MIN_THREADS;
}

/** Whether queries and weights, and keys and values, are two f16 numbers each: 1 or 0. */
export function lowOf(
  { kvDtype }: Pick<Heads, "kvDtype">,
  { precision }: AttentionUnits,
): { readonly Q_LOW: number; readonly KV_LOW: number } {
  const low = precision !== "f16";
  return { Q_LOW: Number(low), KV_LOW: Number(low && kvDtype === "f32") };
}

/** vec4s of a workgroup's pool, and where scores and queries begin in it. */
function poolOf(
  { headDim, kvDtype }: Pick<Heads, "headDim" | "kvDtype">,
  units: AttentionUnits,
  { queries, inRegisters }: Pick<UnitsTile, "queries" | "inRegisters">,
) {
  const { Q_LOW, KV_LOW } = lowOf({ kvDtype }, units);
  const cells = cellsOf(units);
  const pitch = headDim / 8 + 1;
  const SCORES_AT = (1 + KV_LOW) * cells * pitch;
  const stage = Math.max(SCORES_AT + queries * (cells / 4 + 1), queries * (headDim / 4 + 1));
  const own = (1 + Q_LOW) * queries * pitch;
  return inRegisters
    ? { SCORES_AT, Q_AT: 0, POOL: Math.max(stage, own) }
    : { SCORES_AT, Q_AT: stage, POOL: stage + own };
}

/** Bytes of workgroup memory. */
export function unitsBytes(
  heads: Pick<Heads, "headDim" | "kvDtype">,
  units: AttentionUnits,
  tile: Pick<UnitsTile, "queries" | "inRegisters">,
): number {
  const others = tile.queries * (8 + 4 + 16 + 8) + cellsOf(units) * (8 + 4 + 4);
  return 16 * poolOf(heads, units, tile).POOL + others;
}

/** Parameters that attention_units.wgsl and chunk_units.wgsl share. */
export interface UnitsCounts {
  /** Query heads and rows of a workgroup, and queries, with padding. */
  readonly GROUP: number;
  readonly TILE: number;
  readonly QUERIES: number;
  /** Invocations of a workgroup, and of a subgroup. */
  readonly THREADS: number;
  readonly LANES: number;
  /** Rows and columns of a matrix product's result, and its inner dimension. */
  readonly UNIT_M: number;
  readonly UNIT_N: number;
  readonly UNIT_K: number;
  /** Vec8s of a head; invocations that load a query, and their number's binary logarithm. */
  readonly VEC8S: number;
  readonly WIDE: number;
  readonly WIDE_STEPS: number;
  /** Cells of a split, and splits of a workgroup. */
  readonly CELLS: number;
  readonly SPAN: number;
  /** 1 where queries and weights, and where keys and values, are two f16 numbers each; else 0. */
  readonly Q_LOW: number;
  readonly KV_LOW: number;
  /** Invocations of a query's softmax, and their number's binary logarithm. */
  readonly SHARERS: number;
  readonly SHARER_STEPS: number;
  /** Fours and eights of cells of each of those invocations. */
  readonly SHARED_FOURS: number;
  readonly SHARED_EIGHTS: number;
  /** Products along a head, for scores, and along cells, for values. */
  readonly K_STEPS: number;
  readonly C_STEPS: number;
  /** Products of a subgroup along the cells, for scores. */
  readonly OWN_CELLS: number;
  /** Rows of keys or values, and of queries, of which an invocation loads a part. */
  readonly LOADS: number;
  readonly Q_LOADS: number;
  /** Fours of sums of an invocation. */
  readonly SUMS: number;
  /** Fours of f32 of workgroup memory. */
  readonly POOL: number;
}

interface UnitsParameters extends UnitsCounts {
  /** What keys and values are stored as. */
  readonly kv: KvDtype;
  /** Where queries and scores begin in workgroup memory. */
  readonly Q_AT: number;
  readonly SCORES_AT: number;
  /** Subgroups along the queries. */
  readonly GRID_R: number;
  /** Products along the cells, for scores, and along a head, for values; of a subgroup. */
  readonly CELL_TILES: number;
  readonly DIM_TILES: number;
  readonly OWN_DIMS: number;
  /** Which number of eights SHARED_EIGHTS is. */
  readonly SHARED_ONE: boolean;
  readonly SHARED_TWO: boolean;
  readonly SHARED_FOUR: boolean;
  /** Whether values are loaded before the scores are there. */
  readonly EARLY: boolean;
  /** Whether queries are in registers. */
  readonly IN_REGISTERS: boolean;
  /** Whether a workgroup has all splits that its rows see, and writes their output. */
  readonly DIRECT: boolean;
  /** Whether the sums of each split are stored, and not merged. */
  readonly UNMERGED: boolean;
  /** Whether a workgroup has several splits. */
  readonly MANY: boolean;
  /** Workgroups of a tile for the splits with paths. */
  readonly PATH_GROUPS: number;
}

function countsOf(
  heads: Pick<Heads, "headDim" | "kvDtype">,
  units: AttentionUnits,
  tile: UnitsTile,
): Omit<UnitsParameters, "kv"> {
  const {
    queries: QUERIES,
    group: GROUP,
    tile: TILE,
    span: SPAN,
    unmerged,
    direct,
    early,
    inRegisters,
  } = tile;
  const CELLS = cellsOf(units);
  const { threads: THREADS } = tile;
  const { m, n, k, lanes }: MatrixUnit = units.unit;
  const { headDim } = heads;
  const WIDE = wideOf(headDim);
  const subgroups = THREADS / lanes;
  const GRID_R = Math.min(QUERIES / m, subgroups);
  const columns = subgroups / GRID_R;
  const SHARERS = Math.min(CELLS / 8, THREADS / QUERIES);
  const SHARED_EIGHTS = CELLS / SHARERS / 8;
  const LOADS = CELLS * WIDE / THREADS;
  if (!Number.isInteger(LOADS)) throw new Error(`${CELLS} cells are no rows of ${THREADS / WIDE}`);
  return {
    QUERIES,
    GROUP,
    TILE,
    SPAN,
    GRID_R,
    SHARERS,
    WIDE,
    THREADS,
    SHARED_EIGHTS,
    CELLS,
    ...lowOf(heads, units),
    ...poolOf(heads, units, tile),
    UNIT_M: m,
    UNIT_N: n,
    UNIT_K: k,
    LANES: lanes,
    EARLY: early,
    IN_REGISTERS: inRegisters,
    DIRECT: direct,
    UNMERGED: unmerged,
    MANY: SPAN > 1,
    PATH_GROUPS: pathGroups(TILE),
    VEC8S: headDim / 8,
    WIDE_STEPS: Math.log2(WIDE),
    LOADS,
    Q_LOADS: Math.ceil(QUERIES * WIDE / THREADS),
    K_STEPS: headDim / k,
    C_STEPS: CELLS / k,
    CELL_TILES: CELLS / n,
    OWN_CELLS: Math.ceil(CELLS / n / columns),
    DIM_TILES: headDim / n,
    OWN_DIMS: Math.ceil(headDim / n / columns),
    SUMS: Math.ceil(QUERIES * headDim / 4 / THREADS),
    SHARER_STEPS: Math.log2(SHARERS),
    SHARED_FOURS: 2 * SHARED_EIGHTS,
    SHARED_ONE: SHARED_EIGHTS === 1,
    SHARED_TWO: SHARED_EIGHTS === 2,
    SHARED_FOUR: SHARED_EIGHTS === 4,
  };
}

/** Sums of splits of keys. */
export function unitsKernel(heads: Heads, units: AttentionUnits, tile: UnitsTile): Kernel {
  const { m, n, k, lanes } = units.unit;
  const { queries, group, tile: rows, span, unmerged, threads, direct, early, inRegisters } = tile;
  const kind = [
    ...[heads.kvDtype, heads.headDim, `${group}x${rows}`, queries, cellsOf(units), span, threads],
    ...[
      direct ? ["direct"] : [],
      unmerged ? ["unmerged"] : [],
      early ? ["early"] : [],
      inRegisters ? ["registers"] : [],
    ].flat(),
    ...units.precision === "f16" ? ["f16"] : [],
  ];
  const name = `attention_units_${[...kind, m, n, k, lanes].join("_")}`;
  const parameters = { kv: heads.kvDtype, ...countsOf(heads, units, tile) };
  return kernelOf<UnitsParameters>("attention/units/attention_units")(parameters, { name });
}
