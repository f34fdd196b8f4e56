import type { PricedRound } from "../../../speculate/costs/lookup.ts";
import { refineCatchUp, refinePrefill, refineRound } from "../../../speculate/costs/refine.ts";
import type { RoundContext, RoundOutcome } from "../../../speculate/policy.ts";
import { isChain } from "../../../speculate/round_shape.ts";
import type { PrefillSample } from "../../schedule/prefill.ts";
import type { Speculation } from "../../schedule/speculation.ts";
import type { EngineCosts } from "./engine_costs.ts";

/** Wraps the speculation so that costs are refined from its rounds too. */
export function learningCosts(
  speculation: Speculation,
  costs: Pick<EngineCosts, "table" | "refine">,
): Speculation {
  /**
   * Tokens that the draft had missed when it was last picked after rounds without it; 0 while it takes part in every
   * round. A second round that is picked before the first is learned finds none missed, and keeps the number of the
   * first.
   */
  let missed = 0;
  let drafted = true;
  return {
    pick(context) {
      const choice = speculation.pick(context);
      // A lag exists only after rounds without the draft: reading contexts is not free.
      if (costs.table && choice.tier.depth > 0 && !drafted) missed = lagOf(context) || missed;
      return choice;
    },
    holds: (context, unlearned) => speculation.holds(context, unlearned),
    learn(outcome) {
      const { tier, ms } = outcome;
      drafted = tier.depth > 0;
      if (costs.table) {
        const round = pricedRound(outcome);
        costs.refine((table) => {
          const next = round ? refineRound(table, round, ms.round) : table;
          return ms.catchUp > 0 && missed > 0 ? refineCatchUp(next, missed, ms.catchUp) : next;
        });
        if (drafted) missed = 0;
      }
      speculation.learn(outcome);
    },
    get report() {
      return speculation.report;
    },
  };
}

/** What the scheduler reports of prompts, from which the costs are corrected. */
export function learnPrefill(costs: Pick<EngineCosts, "refine">): (forward: PrefillSample) => void {
  return ({ chunks, rows, ms, answers = false }) => {
    if (!answers) costs.refine((table) => refinePrefill(table, chunks, ms, rows));
  };
}

/** Undefined for trees, which have no price. */
function pricedRound(outcome: RoundOutcome): PricedRound | undefined {
  const { tier, batchSize, sequences, roundsPerSync = 1, drafts: verified } = outcome;
  if (!isChain(tier) || sequences.length === 0) return undefined;
  // Nothing is reported of requests that had ended by then: they count like the others.
  const all = batchSize / sequences.length;
  const sum = (of: (sequence: typeof sequences[number]) => number) =>
    all * sequences.reduce((total, sequence) => total + of(sequence), 0);
  const drafts = verified ?? sum(({ depth }) => depth);
  return {
    batch: batchSize,
    steps: tier.depth,
    roundsPerSync,
    ...drafts < batchSize * tier.depth ? { drafts } : {},
    cells: sum(({ position }) => position),
  };
}

function lagOf({ sequences }: RoundContext): number {
  return sequences.reduce((sum, { lag }) => sum + lag, 0);
}
