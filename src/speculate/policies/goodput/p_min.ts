import { meanRate, positionRates } from "../../estimate/positions.ts";
import { oddsRatio, type RequestCounts, shifted } from "../../estimate/requests.ts";
import type { Decision, RoundContext } from "../../policy.ts";
import { chain } from "../../round_shape.ts";
import { numberOf, numStepsOf, readOptions } from "../fields.ts";
import { type PolicyKind, policyKind } from "../kind.ts";
import { cutChain } from "./cut_chain.ts";
import type { Evidence } from "./evidence.ts";

export interface PMinOptions {
  /** Most drafts of a request. */
  readonly numSteps: number;
  /** Drafts end before the first whose confidence is below this. */
  readonly pMin: number;
}

/**
 * llama.cpp's `--draft-max` and `--draft-p-min`: a chain ends before the first draft whose highest
 * probability is below `p_min`. llama.cpp then drafts no further; here the chain is drafted whole on
 * the device, and what comes after is not verified. Where the draft does not report its confidence, a
 * request's chain ends before the first position that its history says is accepted less often than
 * that, but not before the first draft, from which it keeps learning.
 */
export const P_MIN: PolicyKind<PMinOptions> = policyKind({
  examples: [{}, { num_steps: 3, p_min: 0.4 }],
  // The threshold is fixed: chains are cut by it, and the depth that is drafted never changes.
  adapts: false,
  check(given) {
    const { num_steps, p_min } = readOptions(given, ["num_steps", "p_min"]);
    return {
      numSteps: numStepsOf(num_steps),
      pMin: numberOf(p_min, "p_min", { absent: 0.75, min: 0, max: 1 }),
    };
  },
  make: ({ numSteps, pMin }, { buckets }) =>
    cutChain(
      { numSteps, buckets },
      (known, context, numSteps) => choose(known, context, { numSteps, pMin }),
    ),
});

function choose(known: Evidence, context: RoundContext, { numSteps, pMin }: PMinOptions): Decision {
  const tier = chain(numSteps);
  const { batchSize, ranks } = context;
  if (batchSize === 0) return { tier };
  if (!ranks) return { tier, depths: depthsByHistory(known, context, { numSteps, pMin }) };
  const intercepts = Array<number>(numSteps).fill(0);
  const drafts = batchSize * numSteps;
  return { tier, verify: { drafts, slope: 1, intercepts, minConfidence: pMin } };
}

function depthsByHistory(
  { positions, requests }: Evidence,
  { sequences }: RoundContext,
  { numSteps, pMin }: PMinOptions,
): number[] {
  const rates = positionRates(positions);
  const alpha = meanRate(positions);
  const known = new Map<number, RequestCounts>(requests.map((each) => [each.id, each]));
  return sequences.map(({ id }) => {
    const ratio = oddsRatio(known.get(id), alpha);
    const end = rates.findIndex((rate) => shifted(rate, ratio) < pMin);
    return Math.min(numSteps, Math.max(1, end < 0 ? numSteps : end));
  });
}
