import { slicePartialCount, slicePartials } from "../../../kernels/sample/slice_partials.ts";
import {
  canStorePartials,
  matmulPartialCount,
  matmulPartials,
} from "../../../kernels/matmul/matmul_partials.ts";
import { normedRows } from "../../../kernels/matmul/hold/hold.ts";
import type { NormInput } from "../../../kernels/norm/rms_norm.ts";
import type { GreedyChoice } from "../../../kernels/round/round.ts";
import type { Dispatch } from "../../gpu/kernel.ts";
import { type BranchInput, enterBranch } from "./branch_input.ts";
import { type Target, targetHead, targetNorm } from "./target.ts";

/**
 * Most partial results of all rows. One workgroup looks through those of a sequence, and rows share what a head
 * gains that stores no logits: on an H200 8 rows of Qwen3-0.6B's take 134 us with it and the choice, 130 without.
 */
const MOST_PARTIALS = 40_000;

/** The largest logits of parts of the columns, for who chooses nothing but the largest. */
export interface GreedyHead {
  readonly plan: Dispatch[];
  readonly choice: GreedyChoice;
}

/** Rows whose greedy choices are wanted. */
interface GreedyRows {
  readonly count: number;
  /** The residual stream before the final norm; absent: `final` has its rows. */
  readonly stream: NormInput | undefined;
}

/**
 * The head of rows that all choose greedily: it stores no logits where a few partial results stand for them,
 * which then are in their place.
 */
export function greedyHead(target: Target, of: GreedyRows): GreedyHead {
  return partialHead(target, of) ?? slicedHead(target, of);
}

function partialHead(target: Target, { count: rows, stream }: GreedyRows) {
  const { weights: { head: matrix }, config: { vocabSize: vocab, logitCap } } = target;
  const { logits: partials, tuning } = target;
  // A cap may make logits equal that were not, and the lowest token the largest.
  if (logitCap !== undefined || !canStorePartials(matrix, tuning)) return;
  const { plan, x, norm } = headInput(target, rows, stream);
  const hold = norm && normedRows(norm, { cols: matrix.cols, rows });
  const use = { rows, tuning, hold };
  const count = matmulPartialCount(matrix, use);
  if (rows * count > MOST_PARTIALS) return;
  const of = { ...use, kind: "argmax", vocab, label: "head" } as const;
  return {
    plan: [...plan, ...matmulPartials({ matrix, x, partials }, of)],
    choice: { partials, count, lanes: tuning.rowLanes },
  };
}

/** The rows that the head reads, normed by itself where that is worth it. */
function headInput(
  target: Target,
  rows: number,
  stream: NormInput | undefined,
): Pick<BranchInput, "x" | "norm"> & { readonly plan: Dispatch[] } {
  const { weights: { head: matrix, norm: weight }, final } = target;
  if (stream === undefined) return { plan: [], x: final };
  // Each shard would norm all rows anew.
  const first = matrix.shards.length === 1 ? { matrix, bound: 0, lowers: false } : undefined;
  const { plan, input } = enterBranch(target, { from: stream, weight, first }, rows, "norm");
  return { ...input, plan };
}

function slicedHead(target: Target, { count: rows, stream }: GreedyRows): GreedyHead {
  const { weights: { head }, config: { vocabSize: vocab }, logits, partials, tuning } = target;
  const { rowLanes: lanes } = tuning;
  const of = { kind: "argmax", rows, vocab, stride: head.rows, lanes, label: "choose" } as const;
  return {
    plan: [
      ...stream ? targetNorm(target, stream, rows) : [],
      ...targetHead(target, rows),
      slicePartials({ logits, partials }, of),
    ],
    choice: { partials, count: slicePartialCount(vocab), lanes },
  };
}
