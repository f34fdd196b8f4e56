import { expand } from "../../src/gpu/expand.ts";
import { type Kernel, kernel } from "../../src/gpu/kernel.ts";
import combine from "./attention_combine.wgsl" with { type: "text" };
import lanes from "./attention_lanes.wgsl" with { type: "text" };
import chunked from "./attention.wgsl" with { type: "text" };
import type { Heads } from "../fragments/heads.ts";
import { KV_LOAD } from "../fragments/kv.ts";
import rowsCode from "../fragments/rows.wgsl" with { type: "text" };
import softCap from "../fragments/soft_cap.wgsl" with { type: "text" };
import visible from "./visible.wgsl" with { type: "text" };

/** Cells of a chunk of attention.wgsl. */
export const CHUNK = 64;
/** Invocations of its workgroup. */
const THREADS = 128;
/** Most parts of a chunk whose sums are added one after the other. */
const MOST_PARTS = 16;
/** Most invocations of a workgroup of attention_combine.wgsl, and its lanes. */
const COMBINE_THREADS = 256;
const COMBINE_LANES = 16;

/** Constants of soft_cap.wgsl and visible.wgsl, and the scale. */
const SCORING = ["SCALE", "CAP", "WINDOW"] as const;

const kernels = new Map<string, Kernel>();

/** Sums of a chunk of keys for `tile` rows and `group` heads at a time. */
export function chunkKernel({ headDim, kvDtype }: Heads, group: number, tile: number): Kernel {
  return kernelOf(`attention_${kvDtype}_${headDim}_${group}x${tile}`, () => {
    const code = expand(chunked, chunkCounts(headDim, group, tile));
    return kernel("attention", join(softCap, KV_LOAD[kvDtype], code), {
      bindings: ["q", "keys", "values", "rows", "pages", "sums", "stats"],
      constants: [
        "KV_HEADS",
        "HEAD_TILES",
        "TABLE_PAGES",
        "CHUNKS",
        "PER_SLOT",
        "FIRST_ROW",
        "PATHS",
        ...SCORING,
      ],
    });
  });
}

/** Workgroups of a tile of rows for the chunks with paths: a path ends in the chunk after its first at most. */
export function pathGroups(tile: number): number {
  return tile === 1 ? 0 : 2 * tile;
}

/** How attention.wgsl is unrolled. */
function chunkCounts(headDim: number, group: number, tile: number): Record<string, number> {
  const EIGHTS = headDim / 8;
  const QUADS = Math.ceil(tile * group / 4);
  // A chunk's cells times the lanes of each are at least the workgroup.
  const LANES = EIGHTS >= 8 ? 8 : EIGHTS >= 4 ? 4 : 2;
  const PARTS = Math.min(MOST_PARTS, Math.floor(THREADS / EIGHTS));
  const CELLS = Math.ceil(CHUNK / PARTS);
  const EARLY = QUADS === 1 && CELLS <= 8 ? 1 : 0;
  return {
    GROUP: group,
    TILE: tile,
    PATH_GROUPS: pathGroups(tile),
    QUADS,
    EIGHTS,
    LANES,
    STEPS: Math.ceil(EIGHTS / LANES),
    PASSES: CHUNK * LANES / THREADS,
    PARTS,
    CELLS,
    EARLY,
    LATE: 1 - EARLY,
    TURNS: Math.ceil(QUADS * CHUNK / THREADS),
    OUTS: Math.ceil(4 * EIGHTS / THREADS),
    HALVES: 2,
    FOUR: 4,
    EIGHT: 8,
  };
}

/** Workgroups that share a head where the chunks of a row are added. */
export function combineTiles(headDim: number): number {
  return headDim / 4 / combineQuads(headDim);
}

/** As many as keep COMBINE_LANES lanes within a workgroup. */
function combineQuads(headDim: number): number {
  const most = COMBINE_THREADS / COMBINE_LANES;
  const quads = headDim / 4;
  return Math.max(...Array.from({ length: most }, (_, i) => i + 1).filter((n) => quads % n === 0));
}

/** Adds the chunks of a row. */
export function combineKernel(headDim: number): Kernel {
  const counts = {
    HEAD: headDim / 4,
    QUADS: combineQuads(headDim),
    LANES: COMBINE_LANES,
    AHEAD: 8,
  };
  return kernelOf(`attention_combine_${headDim}`, () => {
    return kernel("attention_combine", join(expand(combine, counts)), {
      bindings: ["sums", "stats", "rows", "out"],
      constants: ["HEADS", "CHUNKS", "FIRST_ROW", "WINDOW"],
    });
  });
}

/** A row and a group of heads at once, in registers. */
export function lanesKernel({ heads, kvHeads, headDim, kvDtype }: Heads): Kernel {
  const counts = { GROUP: heads / kvHeads, EIGHTS: headDim / 8 };
  return kernelOf(`attention_lanes_${kvDtype}_${counts.GROUP}_${counts.EIGHTS}`, () => {
    return kernel("attention_lanes", join(softCap, KV_LOAD[kvDtype], expand(lanes, counts)), {
      bindings: ["q", "keys", "values", "rows", "pages", "out"],
      constants: ["KV_HEADS", "TABLE_PAGES", "PATHS", ...SCORING],
    });
  });
}

function join(...code: string[]): string {
  return [rowsCode, visible, ...code].join("\n");
}

/** The kernel of a variant; `make`'s name is completed to the variant's, which programs go by. */
function kernelOf(name: string, make: () => Kernel): Kernel {
  return kernels.getOrInsertComputed(name, () => ({ ...make(), name }));
}
