import {
  type Dispatch,
  dispatch,
  type Kernel,
  kernel,
  type Operand,
} from "../../src/gpu/kernel.ts";
import { shader } from "../shader.ts";

/** Most candidates of a node. */
export const MOST_WIDTH = 16;
/** Invocations of a workgroup. */
const LANES = 64;

/** The tree of each sequence of a round. */
export interface TreeShape {
  readonly batch: number;
  /** Draft levels. */
  readonly depth: number;
  /** Candidates of each node, and nodes that each level goes on from; 1 to MOST_WIDTH. */
  readonly width: number;
  /** Verify rows a sequence, at most `poolSize` + 1. */
  readonly rows: number;
}

/**
 * Candidates that a tree chooses its nodes from: width + (depth - 1) width^2 (EAGLE-2; SGLang
 * `organize_draft_results`).
 */
export function poolSize({ depth, width }: Pick<TreeShape, "depth" | "width">): number {
  return width + (depth - 1) * width * width;
}

/** What the levels of a round's trees write. */
export interface TreeBuffers {
  /** (token, bits of its score), u32 [batch, poolSize, 2] */
  readonly pool: Operand;
  /** Places in the pool, u32 [batch, depth, width]. */
  readonly frontier: Operand;
}

const levelKernels = new Map<boolean, Kernel>();

function levelKernel(first: boolean): Kernel {
  return levelKernels.getOrInsertComputed(first, () => {
    const name = `tree_level_${first ? "first" : "next"}`;
    const code = shader("tree/tree_level", {
      slots: { candidates: `tree/${name}` },
      counts: { MOST: MOST_WIDTH * MOST_WIDTH },
    });
    return kernel(name, code, {
      bindings: ["batch_slots", "slots", "top", "pool", "frontier", "rows", "hidden"],
      constants: [
        ...["WIDTH", "LEVEL", "LEVELS", "POOL", "GOES_ON", "LANES"],
        ...first ? ["KEPT"] : [],
      ],
    });
  });
}

const selectKernels = new Map<number, Kernel>();

function selectKernel(words: number): Kernel {
  return selectKernels.getOrInsertComputed(words, () => {
    const code = shader("tree/tree_select", { counts: { WORDS: words } });
    return kernel(`tree_select_${words}`, code, {
      bindings: ["batch_slots", "pool", "frontier", "drafts"],
      constants: ["WIDTH", "ROWS", "POOL", "LEVELS", "LANES", "MOST_ROWS"],
    });
  });
}

/**
 * Records a level of each sequence's tree: its candidates into the pool and, where a further level
 * follows, that level's rows.
 *
 * @param buffers.top level 0: what `topTokens` stored for each slot, [slots, kept, 2]; else for the
 * rows of the forward before, [batch width, width, 2].
 * @param buffers.rows `Row`s of the level that follows, [batch, width].
 * @param buffers.hidden u32 [batch, width]: the hidden row that each of them feeds, a slot at level 0
 * and else a row of the forward before.
 */
export function treeLevel(
  { batchSlots, tree: { pool, frontier }, ...others }: {
    /** Slot of each sequence, u32 [batch]. */
    readonly batchSlots: Operand;
    readonly slots: Operand;
    readonly top: Operand;
    readonly tree: TreeBuffers;
    readonly rows: Operand;
    readonly hidden: Operand;
  },
  { batch, depth, width, level, kept }: TreeShape & {
    readonly level: number;
    /** Tokens that `topTokens` kept for each slot. */
    readonly kept: number;
  },
): Dispatch {
  return dispatch(levelKernel(level === 0), {
    buffers: { ...others, batch_slots: batchSlots, pool, frontier },
    constants: {
      ...{ WIDTH: width, LEVEL: level, LEVELS: depth, POOL: poolSize({ depth, width }) },
      ...{ GOES_ON: Number(level + 1 < depth), LANES },
      ...level === 0 ? { KEPT: kept } : {},
    },
    workgroups: [batch],
    label: `tree_level.${level}`,
  });
}

/** Records the choice of what is verified of each tree, as tokens and parents into its slot's drafts. */
export function treeSelect(
  { batchSlots, tree, drafts }: {
    readonly batchSlots: Operand;
    readonly tree: TreeBuffers;
    /** What is drafted for each slot, [slots, draftWords(mostRows)]. */
    readonly drafts: Operand;
  },
  { batch, depth, width, rows, mostRows }: TreeShape & { readonly mostRows: number },
): Dispatch {
  const POOL = poolSize({ depth, width });
  return dispatch(selectKernel(Math.ceil(POOL / 32)), {
    buffers: { batch_slots: batchSlots, ...tree, drafts },
    constants: { WIDTH: width, ROWS: rows, POOL, LEVELS: depth, LANES, MOST_ROWS: mostRows },
    workgroups: [batch],
    label: "tree_select",
  });
}
