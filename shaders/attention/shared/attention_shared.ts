/** Attention over rows that share reads of their slots' keys and values, with the bits that attention.wgsl gives. */
import { type Dispatch, dispatch, type Kernel, kernel } from "../../../src/gpu/kernel.ts";
import type { Tuning } from "../../../src/gpu/matrix.ts";
import type { Heads } from "../../fragments/heads.ts";
import { loadSlots } from "../../kv/slots.ts";
import { shader } from "../../shader.ts";
import {
  chunkCounts,
  groupOf,
  pathGroups,
  SCORING,
  SPLIT_CELLS,
  THREADS,
} from "../attention_kernels.ts";
import { tileOf } from "../row_blocks.ts";
import {
  SPLIT_CONSTANTS,
  type SplitBuffers,
  splitLaunch,
  type SplitRows,
  type Tile,
} from "../split_launch.ts";

/** Most queries of a workgroup, and fewer where those would make too few workgroups. */
const QUERIES = [16, 8] as const;
/** Of attention.wgsl, which takes what would have no more. */
const FEW_QUERIES = 4;
/**
 * Workgroups that are enough, for each split. On an H200, behind 512 tokens of the 8B shape, 16 rows of a slot take
 * 12.1 us as 32 of them for each split, 10.8 as 64; 32 rows 16.5 as 64, 18.6 as 128.
 */
const ENOUGH = 64;

interface Rows {
  readonly count: number;
  readonly perSlot: number;
  readonly paths: boolean;
  readonly tuning: Pick<Tuning, "software">;
}

/** What a workgroup takes of a forward's rows; undefined where attention.wgsl is faster. */
export function sharedTile(shape: Heads & Rows): Tile | undefined {
  const { heads, kvHeads, headDim, count, perSlot, tuning } = shape;
  if (tuning.software || perSlot === 1 || ![64, 128].includes(headDim)) return undefined;
  return QUERIES.map((most) => {
    const group = groupOf(heads / kvHeads, most);
    return { group, tile: tileOf(perSlot, most / group) };
  }).find(({ group, tile }) => {
    const workgroups = count / perSlot * Math.ceil(perSlot / tile) * heads / group;
    return group * tile > FEW_QUERIES && workgroups >= ENOUGH;
  });
}

const kernels = new Map<string, Kernel>();

function sharedKernel({ headDim, kvDtype }: Heads, { group, tile }: Tile): Kernel {
  const name = `attention_shared_${kvDtype}_${headDim}_${group}x${tile}`;
  return kernels.getOrInsertComputed(name, () => {
    const counts = sharedCounts(headDim, { group, tile });
    const slots = { ...loadSlots(kvDtype), row_seen: "attention/shared/seen" };
    const code = shader("attention/shared/attention_shared", { slots, counts });
    return kernel(name, code, {
      bindings: ["q", "keys", "values", "rows", "pages", "sums", "stats"],
      constants: [...SPLIT_CONSTANTS, "KV_SPLITS", "PATHS", ...SCORING],
    });
  });
}

/** How attention_shared.wgsl is unrolled. */
function sharedCounts(headDim: number, { group, tile }: Tile): Record<string, number> {
  const { VEC8S, LANES, STEPS, PARTS, CELLS } = chunkCounts(headDim, group, tile);
  const most = QUERIES[0];
  return {
    ...{ GROUP: group, TILE: tile, PATH_GROUPS: pathGroups(tile), QUERIES: most },
    ...{ VEC8S, LANES, STEPS, PARTS, CELLS, TWO: 2, FOUR: 4 },
    PASSES: SPLIT_CELLS * LANES / THREADS,
    TURNS: most * PARTS / THREADS,
    LINES: CELLS / 4,
  };
}

/** Records the partial sums of rows. */
export function sharedSums(buffers: SplitBuffers, rows: SplitRows, tile: Tile): Dispatch {
  const { constants, ...launch } = splitLaunch(rows, tile);
  return dispatch(sharedKernel(rows, tile), {
    buffers,
    constants: { ...constants, KV_SPLITS: rows.kept, PATHS: Number(rows.paths) },
    ...launch,
  });
}
