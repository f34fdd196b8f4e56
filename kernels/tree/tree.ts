import { type Dispatch, dispatch, type Kernel, type Operand } from "../../src/gpu/kernel.ts";
import { kernelOf } from "../shader.ts";

/** Invocations of a workgroup. */
const LANES = 64;

/** The tree of each sequence of a round. */
interface TreeShape {
  readonly batch: number;
  /** Draft levels. */
  readonly depth: number;
  /** Candidates of each node, and nodes that each level goes on from. */
  readonly width: number;
  /** Verify rows a sequence, at most `pool` + 1. */
  readonly rows: number;
  /** Candidates that the nodes are chosen from, see lib/tree_pool.wgsl. */
  readonly pool: number;
}

/** What the levels of a round's trees write. */
export interface TreeBuffers {
  /** (token, bits of its score), u32 [batch, pool, 2] */
  readonly pool: Operand;
  /** Places in the pool, u32 [batch, depth, width]. */
  readonly frontier: Operand;
}

interface LevelParameters {
  /** Whether candidates are those of the roots. */
  readonly FIRST_LEVEL: boolean;
  /** Candidates of the level, of a sequence. */
  readonly CANDIDATES: number;
}

interface SelectParameters {
  /** u32 words that have a bit for each candidate of a pool. */
  readonly WORDS: number;
}

function levelKernel(first: boolean, candidates: number): Kernel {
  const name = `tree_level_${first ? "first" : "next"}`;
  return kernelOf<LevelParameters>("tree/tree_level")({
    FIRST_LEVEL: first,
    CANDIDATES: candidates,
  }, {
    name: `${name}_${candidates}`,
  });
}

function selectKernel(words: number): Kernel {
  return kernelOf<SelectParameters>("tree/tree_select")({ WORDS: words }, {
    name: `tree_select_${words}`,
    bindings: ["batch_slots", "pool", "frontier", "drafts"],
    constants: ["WIDTH", "ROWS", "POOL", "LEVELS", "LANES", "MAX_ROWS"],
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
  { batch, depth, width, pool: POOL, level, kept }: TreeShape & {
    readonly level: number;
    /** Tokens that `topTokens` kept for each slot. */
    readonly kept: number;
  },
): Dispatch {
  return dispatch(levelKernel(level === 0, level === 0 ? width : width * width), {
    buffers: { ...others, batch_slots: batchSlots, pool, frontier },
    constants: {
      WIDTH: width,
      LEVEL: level,
      LEVELS: depth,
      POOL,
      GOES_ON: Number(level + 1 < depth),
      LANES,
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
    /** What is drafted for each slot, [slots, draftWords(maxRows)]. */
    readonly drafts: Operand;
  },
  { batch, depth, width, rows, pool: POOL, maxRows }: TreeShape & { readonly maxRows: number },
): Dispatch {
  return dispatch(selectKernel(Math.ceil(POOL / 32)), {
    buffers: { batch_slots: batchSlots, ...tree, drafts },
    constants: { WIDTH: width, ROWS: rows, POOL, LEVELS: depth, LANES, MAX_ROWS: maxRows },
    workgroups: [batch],
    label: "tree_select",
  });
}
