import { roundsToDecision, type SlotState, startSlot, updateSlot } from "../adaptive.ts";
import {
  type AdaptiveConfig,
  AdaptiveConfigError,
  unionSteps,
  withInitialSteps,
} from "../adaptive_config.ts";
import type { Learned, Policy, RoundContext, RoundOutcome, TierChange } from "../policy.ts";
import { slotIndex } from "../router.ts";

/** One state a slot, in the config's order: slots share nothing. */
export type AdaptiveState = readonly SlotState[];

export interface AdaptiveOptions {
  /** num_steps at which the slots start that have it among their candidates. */
  readonly initialSteps: number;
  /** Batch sizes that the engine pads to. */
  readonly buckets?: readonly number[];
}

/**
 * SGLang's `--speculative-adaptive` (its `AdaptiveController` and router): each batch size has a
 * slot, and each slot walks along its candidates by a moving average of the accepted drafts.
 *
 * @throws AdaptiveConfigError when the config has no slot.
 */
export function adaptive(
  config: AdaptiveConfig,
  { initialSteps, buckets }: AdaptiveOptions,
): Policy<AdaptiveState, RoundContext, RoundOutcome> {
  const { slots } = withInitialSteps(config, initialSteps);
  if (slots.length === 0) {
    throw new AdaptiveConfigError("adaptive step router requires at least one BS slot");
  }
  const routing = { slots, buckets };
  return {
    tiers: unionSteps({ slots }),
    start: slots.map((slot) => startSlot(slot, initialSteps)),
    pick: (state, { batchSize }) => at(state, slotIndex(routing, batchSize)).current,
    holds: (state, { batchSize }) => roundsToDecision(at(state, slotIndex(routing, batchSize))),
    learn: (state, outcome) => learn(state, slotIndex(routing, outcome.batchSize), outcome),
  };
}

/** SGLang's log line for a change. */
export function changeText({ from, to, ema }: TierChange): string {
  return `Adaptive spec params updated: steps ${from} -> ${to} ` +
    `(ema_accept_len=${ema.toFixed(2)})`;
}

/** A round that was launched before a change says nothing of the steps that run now: it is dropped. */
function learn(
  state: AdaptiveState,
  index: number,
  { numSteps, accepted }: RoundOutcome,
): Learned<AdaptiveState> {
  const old = at(state, index);
  if (numSteps !== old.current) return { state };
  const slot = updateSlot(old, accepted);
  const next = state.with(index, slot);
  if (slot.current === old.current) return { state: next };
  const { batchSize } = slot.slot;
  const change = { from: old.current, to: slot.current, slot: batchSize, ema: slot.ema };
  return { state: next, change };
}

function at(state: AdaptiveState, index: number): SlotState {
  const slot = state[index];
  if (slot === undefined) throw new Error(`Cannot read slot ${index}: there are ${state.length}`);
  return slot;
}
