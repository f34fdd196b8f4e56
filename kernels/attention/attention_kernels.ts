import { type Kernel } from "../../src/gpu/kernel.ts";
import type { Heads } from "../lib/heads.ts";
import { kernelOf } from "../shader.ts";

/** Cells of a split of attention.wgsl. */
export const SPLIT_CELLS = 64;
/** Of 16 cells, PAGE in rows.wgsl. */
const PAGES_PER_SPLIT = SPLIT_CELLS / 16;
/** Invocations of its workgroup. */
export const THREADS = 128;
/** Most parts of a split whose sums are added one after the other. */
export const MOST_PARTS = 16;
/** Most invocations of a workgroup of attention_combine.wgsl. */
const COMBINE_THREADS = 256;
/** Its lanes. */
export const COMBINE_LANES = 16;

/** Constants of soft_cap.wgsl and visible.wgsl, and the scale. */
export const SCORING = ["SCALE", "CAP", "WINDOW"] as const;

/** Lanes that norm a head vector, of norm_rope_store.wgsl too. */
export const NORM_LANES = 32;

/** Sums of a split of keys for `tile` rows and `group` heads at a time. */
export function chunkKernel(
  { headDim, kvDtype }: Heads,
  { group, tile }: { readonly group: number; readonly tile: number },
): Kernel {
  const name = `attention_${kvDtype}_${headDim}_${group}x${tile}`;
  const counts = chunkCounts(headDim, group, tile);
  return kernelOf("attention/attention", { kv: kvDtype, ...counts }, {
    name,
    bindings: ["q", "keys", "values", "rows", "pages", "sums", "stats"],
    constants: [
      "KV_HEADS",
      "HEAD_TILES",
      "TABLE_PAGES",
      "KV_SPLITS",
      "PER_SLOT",
      "FIRST_ROW",
      "PATHS",
      ...SCORING,
    ],
  });
}

/** Invocations of a workgroup of attention_row.wgsl. */
export const ROW_THREADS = 256;

/** Floats between lanes of a query's dots there: STRIDE. */
const DOT_STRIDE = SPLIT_CELLS + 4;

/** Vectors of four floats for dots, and then for parts of the values' sums. */
export function rowPool(headDim: number, group: number): number {
  const { LANES, PARTS } = chunkCounts(headDim, group, 1);
  const even = 2 * Math.ceil(group / 2);
  return Math.max(Math.ceil(group * LANES * DOT_STRIDE / 4), PARTS * even * headDim / 4);
}

/** The same of rows alone, whose heads are turned and stored there, and normed where the model does. */
export function rowKernel(
  { headDim, kvDtype }: Heads,
  { group, normed, words }: {
    readonly group: number;
    readonly normed: boolean;
    /** Of q, k and v where the same dispatch makes them; default: it does not. */
    readonly words?: number | undefined;
  },
): Kernel {
  const kinds = [...normed ? ["normed"] : [], ...words === undefined ? [] : ["relayed", words]];
  const name = ["attention_row", kvDtype, headDim, group, ...kinds].join("_");
  const { VEC8S, LANES, STEPS, PARTS, CELLS } = chunkCounts(headDim, group, 1);
  const pairs = Math.ceil(group / 2);
  const SETS = Math.min(pairs, Math.floor(ROW_THREADS / (PARTS * headDim / 4)));
  const parameters = {
    kv: kvDtype,
    NORMED: normed,
    RELAYED: words !== undefined,
    GROUP: group,
    SETS,
    PAIRS_EACH: Math.ceil(pairs / SETS),
    PAIRS_OF_QUERIES: pairs,
    VEC8S,
    LANES,
    STEPS,
    PARTS,
    CELLS,
    THREADS: ROW_THREADS,
    PASSES: Math.ceil(SPLIT_CELLS * LANES / ROW_THREADS),
    NORM_LANES,
    NORM_QUADS: NORM_LANES / 4,
    PAIRS: Math.ceil(headDim / 2 / NORM_LANES),
    POOL: rowPool(headDim, group),
    RANGE: words ?? 0,
  };
  return kernelOf("attention/attention_row", parameters, {
    name,
    bindings: [
      ...words === undefined ? ["qkv"] : [],
      ...["keys", "values", "rows", "pages", "sums", "stats", "rope"],
      ...normed ? ["norm_weight"] : [],
      ...words === undefined ? [] : ["relay"],
    ],
    constants: [
      ...normed ? ["EPS"] : [],
      ...words === undefined ? [] : ["TURNS", "MAKERS", "RANGES"],
      ...["KV_HEADS", "HEAD_TILES", "TABLE_PAGES", "KV_SPLITS", "FIRST_ROW"],
      ...SCORING,
    ],
  });
}

/** Cells from a row's `base` on to its own, at most: of rows.wgsl. */
const PATH_CELLS = 16;

/**
 * Splits that a tile's rows can see: `all`, or those that their windows touch. Rows of a chain are a cell
 * apart; those of trees are at most as far as their paths are long.
 */
export function launchedSplits(
  all: number,
  { window, paths }: { readonly window?: number | undefined; readonly paths: boolean },
  tile: number,
): number {
  if (window === undefined) return all;
  const cells = window + Math.max(tile - 1, paths ? PATH_CELLS : 0);
  return Math.min(all, 1 + Math.ceil((cells - 1) / SPLIT_CELLS));
}

/** Workgroups of a tile of rows for the splits with paths: a path ends in the split after its first at most. */
export function pathGroups(tile: number): number {
  return tile === 1 ? 0 : 2 * tile;
}

/** How attention.wgsl is unrolled. */
export function chunkCounts(
  headDim: number,
  group: number,
  tile: number,
):
  & Record<"VEC8S" | "LANES" | "STEPS" | "PARTS" | "CELLS", number>
  & Record<string, number> {
  const VEC8S = headDim / 8;
  const QUADS = Math.ceil(tile * group / 4);
  const QUERIES = Math.min(4, tile * group);
  // A split's cells times the lanes of each are at least the workgroup.
  const LANES = VEC8S >= 8 ? 8 : VEC8S >= 4 ? 4 : 2;
  const PARTS = Math.min(MOST_PARTS, Math.floor(THREADS / VEC8S));
  const CELLS = Math.ceil(SPLIT_CELLS / PARTS);
  // All or none: where registers allow.
  const EARLY = QUADS === 1 && CELLS <= 8 ? CELLS : 0;
  return {
    GROUP: group,
    TILE: tile,
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
    OUTS: Math.ceil(4 * VEC8S / THREADS),
    HALVES: Math.ceil(QUERIES / 2),
    QUERIES,
    UNUSED: 4 - QUERIES,
  };
}

/** Workgroups that share a head where the splits of a row are added. */
export function combineTiles(headDim: number): number {
  return headDim / 4 / combineQuads(headDim);
}

/** As many as keep COMBINE_LANES lanes within a workgroup. */
function combineQuads(headDim: number): number {
  const most = COMBINE_THREADS / COMBINE_LANES;
  const quads = headDim / 4;
  return Math.max(...Array.from({ length: most }, (_, i) => i + 1).filter((n) => quads % n === 0));
}

/** Adds the splits of a row. @param noted whether the rows' scales are noted. */
export function combineKernel(headDim: number, noted: boolean): Kernel {
  const parameters = {
    NOTED: noted,
    HEAD: headDim / 4,
    QUADS: combineQuads(headDim),
    LANES: COMBINE_LANES,
    PREFETCH: 8,
  };
  const name = `attention_combine_${headDim}${noted ? "_scale" : ""}`;
  return kernelOf("attention/attention_combine", parameters, {
    name,
    bindings: ["sums", "stats", "rows", "out", ...noted ? ["scales"] : []],
    constants: [
      ...["HEADS", "KV_SPLITS", "FIRST_ROW", "WINDOW"],
      ...noted ? ["NOTED_FIRST"] : [],
    ],
  });
}

/** Invocations of a workgroup of combine_rows.wgsl. */
export const COMBINE_ROWS_THREADS = 256;

/** Adds the splits of many rows. */
export function combineRowsKernel(headDim: number, noted: boolean): Kernel {
  const name = `attention_combine_rows_${headDim}${noted ? "_scale" : ""}`;
  const parameters = { NOTED: noted, HEAD: headDim / 4, PREFETCH: 4 };
  return kernelOf("attention/combine_rows", parameters, {
    name,
    bindings: ["sums", "stats", "rows", "out", ...noted ? ["scales"] : []],
    constants: ["HEADS", "KV_SPLITS", "FIRST_ROW", "WINDOW", ...noted ? ["NOTED_FIRST"] : []],
  });
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
