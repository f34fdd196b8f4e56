import { maxAsked } from "../../asked_steps.ts";
import type { Decision, Policy, RoundContext } from "../../policy.ts";
import { chain } from "../../round_shape.ts";
import { type Evidence, learnRound, noEvidence } from "./evidence.ts";
import { aged, decided, type DecisionInterval } from "./interval.ts";
import { acceptanceReport } from "./report.ts";

/**
 * A policy that drafts a chain of `numSteps` in each round, or of as many as the requests ask for. `choose` says how
 * many of its drafts are verified, from the evidence at the last decision.
 */
export function cutChain(
  { numSteps, buckets }: { readonly numSteps: number; readonly buckets: readonly number[] },
  choose: (known: Evidence, context: RoundContext, numSteps: number) => Decision,
): Policy<DecisionInterval<Evidence>> {
  return {
    tiers: [chain(numSteps)],
    start: decided(noEvidence(numSteps)),
    confident: true,
    packed: true,
    pick: ({ known }, context) =>
      choose(known, context, Math.min(numSteps, maxAsked(context.asked))),
    holds: ({ left }) => left,
    mayLag: () => true,
    learn: (state, outcome) => ({
      state: aged(state, learnRound(state.live, outcome, { buckets }), outcome.ms.round),
    }),
    report: ({ live }) => acceptanceReport(live),
  };
}
