import type { AdaptiveState } from "../speculate/policies/adaptive.ts";
import { changeText } from "../speculate/policies/adaptive.ts";
import type { Policy, RoundContext, RoundOutcome } from "../speculate/policy.ts";

/** Chooses the draft steps of each round and learns from what was accepted. */
export interface Speculation {
  /** `num_steps` of the next round of `batch` requests; `wanted` is the most they asked for. */
  pick(batch: number, wanted: number): number;
  /** Takes note of a round: drafts accepted by each request, the bonus not counted. */
  learn(
    batch: number,
    accepted: readonly number[],
    round: { readonly numSteps: number; readonly ms: number },
  ): void;
  readonly report: SpeculationReport;
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

/** Every round as deep as its requests ask. */
export function asAsked(): Speculation {
  const ledger = openLedger();
  return {
    pick: (_, wanted) => wanted,
    learn: (_batch, _accepted, round) => ledger.add(round),
    get report(): SpeculationReport {
      return { policy: "static", ...ledger.report(), switches: [], slots: [] };
    },
  };
}

/** SGLang's adaptive controller; requests that ask for no draft at all get none. */
export function adaptively(policy: AdaptivePolicy): Speculation {
  const ledger = openLedger();
  const switches: TierSwitch[] = [];
  let state = policy.start;
  return {
    pick: (batchSize, wanted) => wanted === 0 ? 0 : policy.pick(state, { batchSize }),
    learn(batchSize, accepted, round) {
      ledger.add(round);
      const learned = policy.learn(state, { batchSize, numSteps: round.numSteps, accepted });
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
