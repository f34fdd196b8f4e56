import { slicePartialCount, slicePartials } from "../../../shaders/partial/slice_partials.ts";
import {
  canStorePartials,
  matmulPartialCount,
  matmulPartials,
} from "../../../shaders/matmul/matmul_partials.ts";
import type { GreedyChoice } from "../../../shaders/round/round.ts";
import type { Dispatch } from "../../gpu/kernel.ts";
import { type Target, targetHead } from "./target.ts";

/** Most partial results of a sequence's rows: one workgroup looks through them all. */
const MOST_PARTIALS = 40_000;

/** Most rows that are worth a head of their own. */
const MOST_ROWS = 16;

/** The largest logits of parts of the columns, for who chooses nothing but the largest. */
export interface GreedyHead {
  readonly plan: Dispatch[];
  readonly choice: GreedyChoice;
}

/**
 * The head of rows that all choose greedily, of the first `count` rows of `final`: it stores no logits where a
 * few partial results stand for them, which then are in their place.
 *
 * @param of.perSlot rows of a sequence.
 */
export function greedyHead(
  target: Target,
  { count: rows, perSlot }: { readonly count: number; readonly perSlot: number },
): GreedyHead {
  const { weights: { head: matrix }, config: { vocabSize: vocab, logitCap }, tuning } = target;
  const { logits, partials, final: x } = target;
  const { rowLanes: lanes } = tuning;
  const use = { rows, tuning };
  // A cap may make logits equal that were not, and the lowest token the largest.
  if (rows <= MOST_ROWS && logitCap === undefined && canStorePartials(matrix, tuning)) {
    const count = matmulPartialCount(matrix, use);
    if (perSlot * count <= MOST_PARTIALS) {
      const of = { ...use, kind: "argmax", vocab, label: "head" } as const;
      return {
        plan: matmulPartials({ matrix, x, partials: logits }, of),
        choice: { partials: logits, count, lanes },
      };
    }
  }
  const of = { kind: "argmax", rows, vocab, stride: matrix.rows, lanes, label: "choose" } as const;
  return {
    plan: [...targetHead(target, rows), slicePartials({ logits, partials }, of)],
    choice: { partials, count: slicePartialCount(vocab), lanes },
  };
}
