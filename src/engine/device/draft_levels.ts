/** What drafting level by level has in common, whatever model drafts. */
import { treeLevel, treeSelect } from "../../../kernels/tree/tree.ts";
import type { Dispatch, Operand } from "../../gpu/kernel.ts";
import type { TreeScratch } from "../../model/graph/draft.ts";
import { isChain, type RoundShape } from "../../speculate/round_shape.ts";
import { poolSize } from "../../speculate/trees.ts";
import type { RoundBuffers } from "./buffers.ts";

/** A forward of the draft for each level after the first. */
export interface LevelForwards {
  /** Stores draft token `level + 1` of each sequence. */
  chain(level: number): Dispatch[];
  /** Over the nodes that the level continues from, `tree.rows`: stores their most probable tokens in `tree.top`. */
  tree(tree: TreeScratch, level: number): Dispatch[];
}

/**
 * Draft tokens 1 to depth - 1 of each sequence. A chain has a token a level; a tree, where the draft has room for
 * one, has a level of the nodes whose paths are most probable, and then those of all levels that are verified.
 */
export function draftLevels(
  { tree, maxRows }: { readonly tree?: TreeScratch | undefined; readonly maxRows: number },
  { batchSlots, slots, drafts }: RoundBuffers,
  shape: RoundShape,
  forwards: LevelForwards,
): Dispatch[] {
  const levels = Array.from({ length: Math.max(0, shape.depth - 1) }, (_, level) => level);
  if (!tree || isChain(shape)) return levels.flatMap((level) => forwards.chain(level));
  const of = { ...shape, pool: poolSize(shape) };
  const { rows, index } = tree;
  const add = (level: number, top: Operand) =>
    treeLevel({ batchSlots, slots, top, tree, rows, hidden: index }, {
      ...of,
      level,
      kept: tree.width,
    });
  return [
    add(0, tree.first),
    ...levels.flatMap((level) => [...forwards.tree(tree, level), add(level + 1, tree.top)]),
    treeSelect({ batchSlots, tree, drafts }, { ...of, maxRows }),
  ];
}
