import { rankDrafts, shareOut } from "../../estimate/budget.ts";
import type { Decision, RoundContext } from "../../policy.ts";
import { chain } from "../../round_shape.ts";
import { numberOf, numStepsOf, readOptions } from "../fields.ts";
import { type PolicyKind, policyKind } from "../kind.ts";
import { cutChain } from "./cut_chain.ts";
import type { Evidence } from "./evidence.ts";
import { survivalByHistory } from "./survival.ts";

export interface TetrisOptions {
  /** Drafts of each request. */
  readonly numSteps: number;
  /** Drafts verified over all requests. */
  readonly capacity: number;
}

/**
 * TETRIS (Wu et al. 2025, arXiv 2502.15197): every request drafts `num_steps` tokens, and of all of
 * them the `capacity` with the largest products of the draft's probabilities are verified. The
 * capacity does not go by what rows cost.
 *
 * The published product is over the probabilities of the sampled tokens. That changes the output
 * distribution under rejection sampling, so this product is over the highest probability at each position,
 * which depends only on the tokens before it. If the draft does not report that, drafts are ranked by the
 * requests' history of acceptance.
 */
export const TETRIS: PolicyKind<TetrisOptions> = policyKind({
  examples: [{}, { num_steps: 3, capacity: 4 }],
  check(given) {
    const { num_steps, capacity } = readOptions(given, ["num_steps", "capacity"]);
    return {
      numSteps: numStepsOf(num_steps),
      capacity: numberOf(capacity, "capacity", { absent: 64, min: 1, max: 1e6, integer: true }),
    };
  },
  make: ({ numSteps, capacity }, { buckets }) =>
    cutChain(
      { numSteps, buckets },
      (known, context, numSteps) => choose(known, context, { numSteps, capacity }),
    ),
});

function choose(
  known: Evidence,
  context: RoundContext,
  { numSteps, capacity }: TetrisOptions,
): Decision {
  const tier = chain(numSteps);
  const all = context.batchSize * numSteps;
  if (capacity >= all) return { tier };
  if (context.ranks) {
    const intercepts = Array<number>(numSteps).fill(0);
    return { tier, verify: { drafts: capacity, slope: 1, intercepts, minConfidence: 0 } };
  }
  const ranked = rankDrafts(survivalByHistory(known, context, { depth: numSteps }), numSteps);
  return { tier, depths: shareOut(ranked, { drafts: capacity, depth: numSteps }) };
}
