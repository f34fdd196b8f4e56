import {
  bestBudget,
  type Budget,
  expectedAccepted,
  rankBatches,
  rankDrafts,
  type RankedDrafts,
  shareOut,
} from "../../estimate/budget.ts";
import type { Decision, RoundContext } from "../../policy.ts";
import { chain } from "../../round_shape.ts";
import type { Evidence } from "./evidence.ts";
import type { RoundPrices } from "./pricing.ts";
import { anchored, survivalByConfidence, survivalByHistory } from "./survival.ts";

/** Drafts that a round may verify. */
export interface Candidates {
  readonly batches: readonly [RankedDrafts, ...RankedDrafts[]];
  /** True: the last chains, ranked by confidence. False: this round's requests, ranked by history. */
  readonly byConfidence: boolean;
}

/** The most chains that are ranked for a choice; in a larger batch they are a sample of all. */
const MANY_CHAINS = 32;

/** Ranks drafts by the draft's confidence if confidences were observed, else by the requests' history. */
export function candidates(
  evidence: Evidence,
  context: RoundContext,
  depth: number,
): Candidates {
  const byConfidence = context.ranks && evidence.chains.length > 0;
  const stride = Math.ceil(context.batchSize / MANY_CHAINS);
  const survivals = byConfidence
    ? survivalByConfidence(evidence, depth)
    : survivalByHistory(evidence, context, { depth, stride });
  const [first, ...others] = rankBatches(survivals, { depth, batch: context.batchSize });
  return { batches: [first as RankedDrafts, ...others], byConfidence };
}

/** A depth with its best budget. */
export interface Option extends Budget {
  readonly steps: number;
  /** Tokens a millisecond. */
  readonly rate: number;
  /** Milliseconds of a round that verifies all. */
  readonly whole: number;
}

/** Each depth with the number of verified drafts that gives the most tokens a millisecond. */
export function optionsOf(
  steps: readonly number[],
  { batches }: Candidates,
  prices: RoundPrices,
): Option[] {
  return steps.map((depth) => {
    const priced = prices.budget(depth);
    const budget = bestBudget(expectedAccepted(batches, priced), priced);
    const factor = prices.factor(depth);
    const ms = budget.ms * factor;
    return { ...budget, steps: depth, ms, rate: budget.tokens / ms, whole: priced.whole * factor };
  });
}

/**
 * The round that verifies the most likely drafts. The device selects them if it ranks drafts by confidence;
 * otherwise they are selected here by the requests' history.
 */
export function choiceOf(
  { steps, drafts }: { readonly steps: number; readonly drafts: number },
  { byConfidence }: Candidates,
  { evidence, context }: { readonly evidence: Evidence; readonly context: RoundContext },
): Decision {
  const tier = chain(steps);
  const { batchSize, ranks } = context;
  // Until the first confidences are observed, every draft is verified.
  if (drafts >= batchSize * steps || ranks && !byConfidence) return { tier };
  if (!ranks) {
    const ranked = rankDrafts(survivalByHistory(evidence, context, { depth: steps }), steps);
    return { tier, depths: shareOut(ranked, { drafts, depth: steps }) };
  }
  const { slope, intercepts } = anchored(evidence);
  const verify = { drafts, slope, intercepts: intercepts.slice(0, steps), minConfidence: 0 };
  return { tier, verify };
}
