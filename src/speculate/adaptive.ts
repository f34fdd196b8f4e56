import type { AdaptiveSlot } from "./adaptive_config.ts";
import { AdaptiveConfigError } from "./adaptive_fields.ts";

/** What one batch-size bracket has learned (SGLang `AdaptiveSpeculativeParams`). */
export interface SlotState {
  readonly slot: AdaptiveSlot;
  /** The active num_steps, one of the bracket's candidates. */
  readonly current: number;
  /** Moving average of the accepted drafts a request and round, the bonus not counted. */
  readonly ema: number;
  /** Rounds seen. */
  readonly batchCount: number;
}

/** The middle candidate where `initialSteps` is none. @throws AdaptiveConfigError without any. */
export function startSlot(slot: AdaptiveSlot, initialSteps: number): SlotState {
  const { candidateSteps } = slot;
  const middle = candidateSteps[Math.floor(candidateSteps.length / 2)];
  if (middle === undefined) {
    throw new AdaptiveConfigError("candidate_steps must have at least 1 value");
  }
  const current = candidateSteps.includes(initialSteps) ? initialSteps : middle;
  return { slot, current, ema: current - 1, batchCount: 0 };
}

/**
 * Adds one round:
 *
 *     ema = (1 - alpha) * ema + alpha * mean(accepted)
 *
 * in this order of float64 operations, which is Python's. It decides every `update_interval` rounds
 * once `warmup_batches` are over. At 0 steps there is nothing to measure and the average stays as it is.
 * @param accepted Drafts accepted by each request of the batch, the bonus not counted.
 * @param ran The candidate that the round ran with: fewer steps than the active ones if its requests asked for fewer.
 */
export function updateSlot(
  state: SlotState,
  accepted: readonly number[],
  ran: number = state.current,
): SlotState {
  if (accepted.length === 0) return state;
  const { emaAlpha, warmupBatches, updateInterval } = state.slot;
  const mean = accepted.reduce((sum, count) => sum + count, 0) / accepted.length;
  const ema = ran > 0 ? (1 - emaAlpha) * state.ema + emaAlpha * mean : state.ema;
  const batchCount = state.batchCount + 1;
  const next = { ...state, ema, batchCount };
  const decided = batchCount - warmupBatches;
  return decided > 0 && decided % updateInterval === 0 ? decide({ ...next, current: ran }) : next;
}

/** Rounds until `updateSlot` decides again, the deciding one included; Infinity without a choice. */
export function roundsToDecision({ slot, batchCount }: SlotState): number {
  const { candidateSteps, warmupBatches, updateInterval } = slot;
  if (candidateSteps.length < 2) return Infinity;
  const decided = batchCount - warmupBatches;
  return updateInterval - (decided > 0 ? decided % updateInterval : decided);
}

/** Several candidates may be passed in one decision. */
function decide(state: SlotState): SlotState {
  const { slot: { candidateSteps, flat }, current } = state;
  if (current === 0) return leaveZero(state);
  const old = candidateSteps.indexOf(current);
  const fallen = fall(state, old);
  const risen = fallen === old || flat ? rise(state, fallen) : fallen;
  return { ...state, current: candidateSteps[limit(state, old, risen)] ?? current };
}

/** At 0 steps nothing is measured, so every decision leaves 0 to probe what drafts are worth. */
function leaveZero(state: SlotState): SlotState {
  const probe = state.slot.candidateSteps[1];
  if (probe === undefined) return state;
  return { ...state, current: probe, ema: state.ema < 0 ? probe - 1 : state.ema };
}

/** Falls while `ema <= below - 0.5 + down_hysteresis`; below = 0 counts as 1. */
function fall({ slot, ema }: SlotState, from: number): number {
  const { candidateSteps, downHysteresis } = slot;
  let index = from;
  while (index > 0) {
    const below = candidateSteps[index - 1] ?? NaN;
    if (!(ema <= (below === 0 ? 0.5 : below - 0.5) + downHysteresis)) break;
    index -= 1;
  }
  return index;
}

/** Rises while `ema > here - 0.5 + up_hysteresis`: nearly every draft of the tier is accepted. */
function rise({ slot, ema }: SlotState, from: number): number {
  const { candidateSteps, upHysteresis } = slot;
  let index = from;
  while (index < candidateSteps.length - 1) {
    if (!(ema > (candidateSteps[index] ?? NaN) - 0.5 + upHysteresis)) break;
    index += 1;
  }
  return index;
}

/** Limits steps that did not rise to at most `max(1, ceil(ema * ceiling_coeff))`. */
function limit({ slot, ema }: SlotState, old: number, target: number): number {
  const { candidateSteps, ceilingCoeff } = slot;
  if (ceilingCoeff <= 0 || target > old) return target;
  const ceiling = Math.max(1, Math.ceil(ema * ceilingCoeff));
  let index = target;
  while (index > 0 && (candidateSteps[index] ?? NaN) > ceiling) index -= 1;
  return index;
}
