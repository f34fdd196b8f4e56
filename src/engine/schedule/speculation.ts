import type {
  Choice,
  Policy,
  PolicyReport,
  RoundContext,
  RoundOutcome,
  TierChange,
} from "../../speculate/policy.ts";
import { chain, isChain, type TierShape, tierText } from "../../speculate/round_shape.ts";

/** Chooses the drafts of each round and learns from what was accepted: a policy and its state. */
export interface Speculation {
  /** How the next round of `context.batchSize` requests is to draft. */
  pick(context: RoundContext): Choice;
  /** How many rounds of them `pick` surely gives the same, the next one included. */
  holds(context: RoundContext): number;
  /** Takes note of a round that was launched. */
  learn(outcome: RoundOutcome): void;
  readonly report: SpeculationReport;
}

/** How rounds are to be drafted. */
export interface SpeculationPlan {
  /** To begin with: that of a request that asks for no number of steps. */
  readonly tier: TierShape;
  /** Every tier that a round may have. */
  readonly tiers: readonly TierShape[];
  /** Those whose programs are made at start; default that to begin with. */
  readonly warmed?: readonly TierShape[];
  /** Whether it goes by what rounds cost. */
  readonly costs?: boolean;
  readonly speculation: Speculation;
}

/** What a policy did so far; the names are those of `--json`. */
export interface SpeculationReport {
  /** Its name. */
  readonly policy: string;
  /** Of the last round. */
  readonly active_num_steps: number;
  readonly rounds: number;
  /** Milliseconds of rounds by tier (`tierText`). */
  readonly tier_ms: Readonly<Record<string, number>>;
  readonly switches: readonly TierSwitch[];
  /** What the policy reports of itself. */
  readonly own: PolicyReport;
}

export interface TierSwitch extends TierChange {
  /** The round after which it happened, from 1. */
  readonly round: number;
}

/** No drafts at all. */
export const NO_DRAFTS: Choice = { tier: chain(0) };

/**
 * Runs a policy. A request may ask for 0 steps: rounds of such requests alone have none, and where
 * they share a round nothing is learned from them. Their draft may lack keys and values, and they do
 * not say what the others' are worth.
 *
 * @param name the policy's, for the report.
 */
export function openSpeculation<State>(name: string, policy: Policy<State>): Speculation {
  const switches: TierSwitch[] = [];
  const tierMs: Record<string, number> = {};
  let rounds = 0;
  let active = 0;
  let state = policy.start;
  return {
    pick: (context) => (
      context.asked.some(drafts) ? checked(policy.pick(state, context), context) : NO_DRAFTS
    ),
    holds: (context) => context.asked.some(drafts) ? policy.holds(state, context) : Infinity,
    learn(outcome) {
      const { tier, ms, sequences } = outcome;
      rounds++;
      active = tier.depth;
      const name = tierText(tier);
      tierMs[name] = (tierMs[name] ?? 0) + ms.round;
      const told = sequences.filter(({ asked }) => drafts(asked));
      // The policy chose none of this round, or none of what it chose for is left.
      if (told.length === 0) return;
      const { state: next, change } = policy.learn(state, { ...outcome, sequences: told });
      state = next;
      if (change) switches.push({ round: rounds, ...change });
    },
    get report(): SpeculationReport {
      return {
        ...{ policy: name, active_num_steps: active, rounds, tier_ms: tierMs, switches },
        own: policy.report(state),
      };
    },
  };
}

/** Does a request that asked for these leave its steps to the policy? */
function drafts(asked: number | undefined): boolean {
  return asked !== 0;
}

/**
 * What the policy chose; a request that asked for no drafts gets none where each has its own depth.
 * A policy that gives depths which no round can have is a bug.
 */
function checked(choice: Choice, { batchSize, asked }: RoundContext): Choice {
  const { tier, depths } = choice;
  if (depths === undefined) return choice;
  const fits = (depth: number) => Number.isInteger(depth) && depth >= 0 && depth <= tier.depth;
  if (!isChain(tier) || depths.length !== batchSize || !depths.every(fits)) {
    const shape = JSON.stringify(tier);
    throw new Error(`a policy gave depths ${depths} to ${batchSize} sequences at ${shape}`);
  }
  return { tier, depths: depths.map((depth, i) => drafts(asked[i]) ? depth : 0) };
}
