import { allowedSteps } from "../../asked_steps.ts";
import { breakEven } from "../../break_even.ts";
import { added, type Counts, faded, NO_COUNTS, rateOf, tested } from "../../estimate/counts.ts";
import { type RoundTimings, timeRound } from "../../estimate/round_times.ts";
import type { Policy, RoundContext, RoundOutcome } from "../../policy.ts";
import { chain, chains } from "../../round_shape.ts";
import { numberOf, readOptions, stepsOf } from "../fields.ts";
import { type PolicyKind, policyKind } from "../kind.ts";
import { timedRound } from "./evidence.ts";
import { aged, decided, type DecisionInterval } from "./interval.ts";
import { pricing } from "./pricing.ts";

export interface DsdOptions {
  /** Depths to choose among. */
  readonly steps: readonly number[];
  /** Factor on the goodput of 0 steps, which drafting has to beat. */
  readonly margin: number;
  /** Rounds at 0 steps after which the shallowest depth is tried; 0: never. */
  readonly probe: number;
}

interface Known {
  /** Tested drafts of all requests. */
  readonly counts: Counts;
  readonly timings: RoundTimings;
  /** Rounds in a row without drafts. */
  readonly rested: number;
}

/**
 * SmartSpec, "dsd" of vLLM V0 (Liu et al. 2024, arXiv 2406.14066): one acceptance rate for all
 * requests and positions, priced rounds, and
 *
 *     K = argmax of B (1 - alpha^(K + 1)) / (1 - alpha) / ms(B, K),    goodput(0) times the margin
 *
 * As published, nothing is learned at 0 steps, so the policy never leaves 0 while the batch size stays the
 * same ("decision deadlock"). `probe` cures this; it is off by default so that the published policy can be
 * compared. alpha is the maximum-likelihood estimate hits / (hits + misses), not accepted / drafted.
 */
export const DSD: PolicyKind<DsdOptions> = policyKind({
  costs: true,
  adapts: { improved: 0, why: "learns nothing at 0 steps, and so stays there (as published)" },
  examples: [{}, { probe: 20 }, { steps: [0, 2, 4], margin: 1, probe: 1 }],
  check(given) {
    const { steps, margin, probe } = readOptions(given, ["steps", "margin", "probe"]);
    return {
      steps: stepsOf(steps),
      margin: numberOf(margin, "margin", { absent: 1.1, min: 0, max: 10 }),
      probe: numberOf(probe, "probe", { absent: 0, min: 0, max: 1e6, integer: true }),
    };
  },
  make: (options, { buckets }) => dsd(options, buckets),
});

/** The acceptance rate before any draft was tested, and the weight of this prior in drafts. */
const FIRST_ALPHA = 0.7;
const FIRST_WEIGHT = 2;
/** Each round multiplies the weight of earlier tested drafts by this. */
const FADE = 0.98;

const { tokens } = breakEven();

function dsd(
  options: DsdOptions,
  buckets: readonly number[],
): Policy<DecisionInterval<Known>> {
  const { steps, probe } = options;
  const prices = pricing({ buckets });
  return {
    tiers: chains(steps),
    start: decided({ counts: NO_COUNTS, timings: [], rested: 0 }),
    pick({ known }, context) {
      const best = bestSteps(known, context, { options, prices });
      const tries = best === 0 && probe > 0 && known.rested >= probe && context.batchSize > 0;
      const shallowest = allowedSteps(steps, context.asked).find((each) => each > 0);
      return { tier: chain(tries ? shallowest ?? 0 : best) };
    },
    holds: ({ left }) => left,
    // A choice that may lag is used for one more group than its interval, which would make probes longer.
    mayLag: () => probe === 0,
    learn: (state, outcome) => ({
      state: aged(state, learned(state.live, outcome, buckets), outcome.ms.round),
    }),
    report: ({ live: { counts } }) => {
      const alpha = alphaOf(counts);
      return { json: { alpha }, rows: [["alpha", alpha.toFixed(3)]] };
    },
  };
}

function alphaOf(counts: Counts): number {
  return rateOf(counts, FIRST_ALPHA, FIRST_WEIGHT);
}

/** The fewest steps among the best. */
function bestSteps(
  { counts, timings }: Known,
  context: RoundContext,
  { options: { steps, margin }, prices }: {
    readonly options: DsdOptions;
    readonly prices: ReturnType<typeof pricing>;
  },
): number {
  const { batchSize, asked } = context;
  if (batchSize === 0) return steps[0] as number;
  const alpha = alphaOf(counts);
  const priced = prices(context, timings);
  let best = steps[0] as number;
  let most = -Infinity;
  for (const depth of allowedSteps(steps, asked)) {
    const ms = priced.budget(depth).whole * priced.factor(depth);
    const goodput = batchSize * tokens(alpha, depth) / ms * (depth === 0 ? margin : 1);
    if (goodput > most) [best, most] = [depth, goodput];
  }
  return best;
}

function learned(
  { counts, timings, rested }: Known,
  outcome: RoundOutcome,
  buckets: readonly number[],
): Known {
  const found = outcome.sequences.map(tested).filter((each) => each !== undefined);
  return {
    counts: found.length === 0 ? counts : found.reduce(added, faded(counts, FADE)),
    timings: timeRound(timings, timedRound(outcome, buckets)),
    rested: outcome.tier.depth > 0 ? 0 : rested + 1,
  };
}
