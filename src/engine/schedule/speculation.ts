import type { AdaptiveState } from "../../speculate/policies/adaptive.ts";
import { changeText } from "../../speculate/policies/adaptive.ts";
import type { Policy, RoundContext, RoundOutcome } from "../../speculate/policy.ts";

/** What the requests of a round asked for, a `GenerateRequest.numSteps` each. */
export type AskedSteps = readonly (number | undefined)[];

/** Chooses the draft steps of each round and learns from what was accepted. */
export interface Speculation {
  /** `num_steps` of the next round of `batch` requests: asked is [batch]. */
  pick(batch: number, asked: AskedSteps): number;
  /** How many rounds of them `pick` surely gives the same, the next one included. */
  holds(batch: number, asked: AskedSteps): number;
  /**
   * Takes note of a round that was launched for `batch` requests.
   *
   * @param accepted drafts accepted by each request that it brought tokens for, the bonus not
   * counted: at most [batch].
   * @param round.asked what these requests asked for, in the same order.
   */
  learn(batch: number, accepted: readonly number[], round: LaunchedRound): void;
  readonly report: SpeculationReport;
}

/** A round that is over. */
export interface LaunchedRound {
  readonly numSteps: number;
  readonly ms: number;
  readonly asked: AskedSteps;
}

/** How rounds are to be drafted. */
export interface SpeculationPlan {
  /** Draft steps to begin with: those of a request that asks for none in particular. */
  readonly numSteps: number;
  /** Every `num_steps` that a round may have. */
  readonly steps: readonly number[];
  readonly speculation: Speculation;
}

/** What a policy did so far; the names are those of `--json`. */
export interface SpeculationReport {
  readonly policy: "static" | "adaptive";
  /** Of the last round. */
  readonly active_num_steps: number;
  readonly rounds: number;
  readonly switches: readonly TierSwitch[];
  /** Milliseconds of rounds by number of steps. */
  readonly tier_ms: Readonly<Record<number, number>>;
  /** The adaptive controller's slots. */
  readonly slots: readonly SlotReport[];
}

export interface TierSwitch {
  /** The round after which it happened, from 1. */
  readonly round: number;
  readonly from: number;
  readonly to: number;
  /** Smallest batch of the slot. */
  readonly slot: number;
  /** SGLang's log line. */
  readonly reason: string;
}

export interface SlotReport {
  /** Smallest batch of the slot. */
  readonly batch_size: number;
  readonly num_steps: number;
  readonly ema_accept_len: number;
}

type AdaptivePolicy = Policy<AdaptiveState, RoundContext, RoundOutcome>;

/** Every round as deep as the deepest of its requests; `numSteps` are those of one that is silent. */
export function asAsked(numSteps: number): Speculation {
  const ledger = openLedger();
  return {
    pick: (_, asked) => Math.max(...asked.map((steps = numSteps) => steps)),
    holds: () => Infinity,
    learn: (_batch, _accepted, round) => ledger.add(round),
    get report(): SpeculationReport {
      return { policy: "static", ...ledger.report(), switches: [], slots: [] };
    },
  };
}

/**
 * SGLang's adaptive controller. A request may ask for 0 steps and no others: rounds of such requests
 * alone have none, and where they share a round nothing is learned from them. Their draft may lack
 * keys and values, and they do not say what the others' are worth.
 */
export function adaptively(policy: AdaptivePolicy): Speculation {
  const ledger = openLedger();
  const switches: TierSwitch[] = [];
  let state = policy.start;
  return {
    pick: (batchSize, asked) => asked.some(drafts) ? policy.pick(state, { batchSize }) : 0,
    holds: (batchSize, asked) => (
      asked.some(drafts) ? policy.holds(state, { batchSize }) : Infinity
    ),
    learn(batchSize, accepted, round) {
      ledger.add(round);
      const { numSteps, asked } = round;
      const told = accepted.filter((_, row) => drafts(asked[row]));
      // The controller chose none of this round, or none of what it chose for is left.
      if (told.length === 0) return;
      const learned = policy.learn(state, { batchSize, numSteps, accepted: told });
      state = learned.state;
      if (!learned.change) return;
      const { from, to, slot } = learned.change;
      const reason = changeText(learned.change);
      switches.push({ round: ledger.report().rounds, from, to, slot, reason });
    },
    get report(): SpeculationReport {
      const slots = state.map(({ slot, current, ema }) => (
        { batch_size: slot.batchSize, num_steps: current, ema_accept_len: ema }
      ));
      return { policy: "adaptive", ...ledger.report(), switches, slots };
    },
  };
}

/** Does a request that asked for these leave its steps to the policy? */
function drafts(asked: number | undefined): boolean {
  return asked !== 0;
}

function openLedger() {
  const tierMs: Record<number, number> = {};
  let rounds = 0;
  let active = 0;
  return {
    add({ numSteps, ms }: { readonly numSteps: number; readonly ms: number }): void {
      rounds++;
      active = numSteps;
      tierMs[numSteps] = (tierMs[numSteps] ?? 0) + ms;
    },
    report: () => ({ active_num_steps: active, rounds, tier_ms: tierMs }),
  };
}
