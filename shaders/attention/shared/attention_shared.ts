/** Attention over rows that share reads of their slots' keys and values, with the bits that attention.wgsl gives. */
import {
  type Dispatch,
  dispatch,
  type Kernel,
  kernel,
  type Operand,
  type Work,
} from "../../../src/gpu/kernel.ts";
import type { Tuning } from "../../../src/gpu/matrix.ts";
import type { Heads } from "../../fragments/heads.ts";
import { loadSlots } from "../../kv/slots.ts";
import { shader } from "../../shader.ts";
import {
  chunkCounts,
  groupOf,
  launchedSplits,
  pathGroups,
  SCORING,
  SPLIT_CELLS,
  THREADS,
} from "../attention_kernels.ts";
import { tileOf } from "../row_blocks.ts";

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

interface Tile {
  /** Query heads. */
  readonly group: number;
  /** Rows. */
  readonly tile: number;
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
    const code = shader("attention/shared/attention_shared", { slots: loadSlots(kvDtype), counts });
    return kernel(name, code, {
      bindings: ["q", "keys", "values", "rows", "pages", "sums", "stats"],
      constants: [
        ...["KV_HEADS", "HEAD_TILES", "TABLE_PAGES", "KV_SPLITS", "PER_SLOT", "FIRST_ROW"],
        ...["PATHS", ...SCORING],
      ],
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

/** Records the partial sums, [rows, heads, splits], of `count` rows. */
export function sharedSums(
  buffers: Readonly<
    Record<"q" | "keys" | "values" | "rows" | "pages" | "sums" | "stats", Operand>
  >,
  shape: Heads & Rows & Tile & {
    readonly window?: number | undefined;
    readonly firstRow: number;
    readonly kept: number;
    /** Of SCORING. */
    readonly constants: Readonly<Record<(typeof SCORING)[number], number>>;
    readonly label: string;
    readonly work: Work;
  },
): Dispatch {
  const { heads, kvHeads, group, tile, perSlot, count, paths, kept, label, work } = shape;
  const groupsBefore = paths ? pathGroups(tile) : 0;
  const tiles = count / perSlot * Math.ceil(perSlot / tile);
  return dispatch(sharedKernel(shape, shape), {
    buffers,
    constants: {
      ...{ KV_HEADS: kvHeads, HEAD_TILES: heads / kvHeads / group },
      ...{ TABLE_PAGES: shape.tablePages, KV_SPLITS: kept },
      // Whole tiles need not know their slot: prompts of all lengths share a pipeline.
      PER_SLOT: perSlot % tile === 0 ? tile : perSlot,
      ...{ FIRST_ROW: shape.firstRow, PATHS: Number(paths), ...shape.constants },
    },
    workgroups: [
      tiles,
      heads / group,
      groupsBefore + launchedSplits(kept, shape, tile),
    ],
    cellsEach: SPLIT_CELLS,
    groupsBefore,
    label,
    work,
  });
}
