/** The kernels of attention on matrix units, and which shapes they take. */
import { type Kernel, kernel } from "../../src/gpu/kernel.ts";
import type { AttentionUnits } from "../../src/gpu/matrix.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { pathGroups, SCORING, SPLIT_CELLS } from "../attention/attention_kernels.ts";
import type { Heads } from "../fragments/heads.ts";
import { shader } from "../shader.ts";

/** Invocations of a workgroup, where nothing says otherwise. */
const LEAST_THREADS = 128;
/** Invocations of a query's softmax, at most: eight cells each. */
const MOST_SHARERS = 8;
/** Splits of keys that are merged in order before others are: 1,024 cells. */
export const SEGMENT_SPLITS = 16;
/** Invocations of a workgroup of combine_units.wgsl, and segments at a time. */
const COMBINE_THREADS = 256;
const COMBINE_LANES = 16;

/** A workgroup of attention_units.wgsl. No number of these changes a bit of what it computes. */
export interface UnitsTile {
  /** With padding: a multiple of the unit's rows. */
  readonly queries: number;
  /** Query heads. */
  readonly group: number;
  /** Rows of a slot. */
  readonly tile: number;
  /** Splits of keys: 1, or SEGMENT_SPLITS. */
  readonly span: number;
  /** Its rows see no splits of other workgroups: it writes their output. */
  readonly direct: boolean;
  /** Values are asked for with the keys: they wait in registers. */
  readonly early: boolean;
  /** Invocations of the workgroup. */
  readonly threads?: number;
}

/** Why a shape stays with the other kernels; undefined where the units take it, at any number of rows. */
export function whyNotUnits(
  heads: Pick<Heads, "headDim" | "kvDtype">,
  units: AttentionUnits,
): string | undefined {
  const { unit, limits } = units;
  const { headDim } = heads;
  if (LEAST_THREADS % unit.lanes !== 0 || unit.k > 16 || unit.m > 16 || unit.n > 16) {
    return `attention: units of ${unit.m}x${unit.n}x${unit.k}`;
  }
  if (headDim % 16 !== 0 || headDim < 32 || headDim > 128 || wideOf(headDim) > unit.lanes) {
    return `attention: heads of ${headDim}`;
  }
  const least = unitsBytes(heads, units, 16);
  const fits = least <= limits.maxComputeWorkgroupStorageSize &&
    LEAST_THREADS <= limits.maxComputeInvocationsPerWorkgroup;
  return fits ? undefined : `attention: ${least} bytes of workgroup memory`;
}

/** Invocations that bring a row, a power of two: two of its vec8s each, some none. */
function wideOf(headDim: number): number {
  return 2 ** Math.ceil(Math.log2(headDim / 16));
}

/** Whether the lower halves of queries and weights, of keys and values are there. */
function lowOf({ kvDtype }: Pick<Heads, "kvDtype">, { precision }: AttentionUnits) {
  const Q_LOW = Number(precision !== "f16");
  return { Q_LOW, KV_LOW: Number(Q_LOW === 1 && kvDtype === "f32") };
}

/** vec4s of its pool, and where scores begin. */
function poolOf(heads: Pick<Heads, "headDim" | "kvDtype">, units: AttentionUnits, queries: number) {
  const { Q_LOW, KV_LOW } = lowOf(heads, units);
  const vec8s = heads.headDim / 8;
  const SCORES_AT = (1 + KV_LOW) * SPLIT_CELLS * (vec8s + 1);
  const POOL = Math.max(
    SCORES_AT + queries * (SPLIT_CELLS / 4 + 1),
    queries * (2 * vec8s + 1),
    (1 + Q_LOW) * queries * (vec8s + 1),
  );
  return { SCORES_AT, POOL };
}

/** Bytes of workgroup memory. */
export function unitsBytes(
  heads: Pick<Heads, "headDim" | "kvDtype">,
  units: AttentionUnits,
  queries: number,
): number {
  const apart = queries * (8 + 4 + 16 + 8) + SPLIT_CELLS * (8 + 4 + 4);
  return 16 * poolOf(heads, units, queries).POOL + apart;
}

function countsOf(
  heads: Pick<Heads, "headDim" | "kvDtype">,
  units: AttentionUnits,
  tile: UnitsTile,
): Record<string, number> {
  const { queries: QUERIES, group: GROUP, tile: TILE, span: SPAN, direct, early } = tile;
  const { threads: THREADS = LEAST_THREADS } = tile;
  const { m, n, k, lanes }: MatrixUnit = units.unit;
  const { headDim } = heads;
  const WIDE = wideOf(headDim);
  const subgroups = THREADS / lanes;
  const GRID_R = Math.min(QUERIES / m, subgroups);
  const columns = subgroups / GRID_R;
  const SHARERS = Math.min(MOST_SHARERS, THREADS / QUERIES);
  const SHARED_EIGHTS = SPLIT_CELLS / SHARERS / 8;
  const EARLY = Number(early);
  return {
    ...{ QUERIES, GROUP, TILE, SPAN, GRID_R, SHARERS, WIDE, THREADS, EARLY, SHARED_EIGHTS },
    ...lowOf(heads, units),
    ...poolOf(heads, units, QUERIES),
    ...{ UNIT_M: m, UNIT_N: n, UNIT_K: k, LANES: lanes },
    LATE: 1 - EARLY,
    DIRECT: Number(direct),
    MANY: Number(SPAN > 1),
    PATH_GROUPS: pathGroups(TILE),
    VEC8S: headDim / 8,
    WIDE_STEPS: Math.log2(WIDE),
    LOADS: SPLIT_CELLS * WIDE / THREADS,
    Q_LOADS: Math.ceil(QUERIES * WIDE / THREADS),
    K_STEPS: headDim / k,
    C_STEPS: SPLIT_CELLS / k,
    OWN_CELLS: SPLIT_CELLS / n / columns,
    DIM_TILES: headDim / n,
    OWN_DIMS: Math.ceil(headDim / n / columns),
    SUMS: Math.ceil(QUERIES * headDim / 4 / THREADS),
    SHARER_STEPS: Math.log2(SHARERS),
    SHARED_FOURS: 2 * SHARED_EIGHTS,
    SHARED_ONE: Number(SHARED_EIGHTS === 1),
    SHARED_TWO: Number(SHARED_EIGHTS === 2),
    SHARED_FOUR: Number(SHARED_EIGHTS === 4),
  };
}

const kernels = new Map<string, Kernel>();

/** Sums of splits of keys. */
export function unitsKernel(heads: Heads, units: AttentionUnits, tile: UnitsTile): Kernel {
  const { m, n, k, lanes } = units.unit;
  const { queries, group, tile: rows, span, direct, early, threads = LEAST_THREADS } = tile;
  const kind = [
    ...[heads.kvDtype, heads.headDim, `${group}x${rows}`, queries, span, threads],
    ...[direct ? ["direct"] : [], early ? ["early"] : []].flat(),
    ...units.precision === "f16" ? ["f16"] : [],
  ];
  const name = `attention_units_${[...kind, m, n, k, lanes].join("_")}`;
  return kernels.getOrInsertComputed(name, () => {
    const slots = {
      kv_load: `fragments/kv_load_${heads.kvDtype}`,
      out: `attention_units/sums_${direct ? "out" : "kept"}`,
    };
    const counts = countsOf(heads, units, tile);
    return kernel(name, shader("attention_units/attention_units", { slots, counts }), {
      bindings: [
        ...["q", "keys", "values", "rows", "pages"],
        ...direct ? ["out"] : ["sums", "stats"],
      ],
      constants: [
        ...["KV_HEADS", "HEAD_TILES", "TABLE_PAGES", "PER_SLOT", "FIRST_ROW", "PATHS"],
        ...direct ? [] : ["KEPT"],
        ...SCORING,
      ],
    });
  });
}

/** Fours of a head that a workgroup of combine_units.wgsl has: as many as keep its lanes within it. */
function combineQuads(headDim: number): number {
  const most = COMBINE_THREADS / COMBINE_LANES;
  const quads = headDim / 4;
  return Math.max(...Array.from({ length: most }, (_, i) => i + 1).filter((n) => quads % n === 0));
}

/** Workgroups that share a head where its splits are merged. */
export function combineTiles(headDim: number): number {
  return headDim / 4 / combineQuads(headDim);
}

/** Merges partial sums of `span` splits each. @param noted whether the rows' scales are noted. */
export function combineUnitsKernel(headDim: number, span: number, noted: boolean): Kernel {
  const name = `combine_units_${headDim}_${span}${noted ? "_scale" : ""}`;
  return kernels.getOrInsertComputed(name, () => {
    const slots = { note: `attention/note_${noted ? "scale" : "nothing"}` };
    const counts = {
      EACH: span,
      SEGMENT: SEGMENT_SPLITS / span,
      HEAD: headDim / 4,
      QUADS: combineQuads(headDim),
      LANES: COMBINE_LANES,
    };
    return kernel(name, shader("attention_units/combine_units", { slots, counts }), {
      bindings: ["sums", "stats", "rows", "out", ...noted ? ["scales"] : []],
      constants: ["HEADS", "KEPT", "FIRST_ROW", "WINDOW", ...noted ? ["NOTED_FIRST"] : []],
    });
  });
}
