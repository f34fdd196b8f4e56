/** Attention over rows that share reads of their slots' keys and values, with the bits that attention.wgsl gives. */
import { type Dispatch, dispatch, type Kernel } from "../../src/gpu/kernel.ts";
import type { Heads } from "../lib/heads.ts";
import { kernelOf } from "../shader.ts";
import { chunkCounts, pathGroups, SCORING, SPLIT_CELLS, THREADS } from "./attention_kernels.ts";
import {
  SPLIT_CONSTANTS,
  type SplitBuffers,
  splitLaunch,
  type SplitRows,
  type Tile,
} from "./split_launch.ts";
import { MOST_QUERIES, type SharedTile } from "./shared_tiles.ts";

function sharedKernel({ headDim, kvDtype }: Heads, { group, tile }: Tile): Kernel {
  const name = `attention_shared_${kvDtype}_${headDim}_${group}x${tile}`;
  const counts = sharedCounts(headDim, { group, tile });
  return kernelOf("attention/attention_shared", { kv: kvDtype, ...counts }, {
    name,
    bindings: ["q", "keys", "values", "rows", "pages", "sums", "stats"],
    constants: [...SPLIT_CONSTANTS, "KV_SPLITS", "PATHS", ...SCORING],
  });
}

/** How attention_shared.wgsl is unrolled. */
function sharedCounts(headDim: number, { group, tile }: Tile): Record<string, number> {
  const { VEC8S, LANES, STEPS, PARTS, CELLS } = chunkCounts(headDim, group, tile);
  return {
    GROUP: group,
    TILE: tile,
    PATH_GROUPS: pathGroups(tile),
    QUERIES: MOST_QUERIES,
    VEC8S,
    LANES,
    STEPS,
    PARTS,
    CELLS,
    PASSES: SPLIT_CELLS * LANES / THREADS,
    TURNS: MOST_QUERIES * PARTS / THREADS,
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
