import { stepsWithin } from "../asked_steps.ts";
import { roundsToDecision, type SlotState, startSlot, updateSlot } from "../adaptive.ts";
import {
  type AdaptiveConfig,
  middleSteps,
  parseAdaptiveConfig,
  tierOf,
  unionTiers,
  withInitialSteps,
} from "../adaptive_config.ts";
import { AdaptiveConfigError } from "../adaptive_fields.ts";
import type { Policy, PolicyReport, PolicyUpdate, RoundOutcome } from "../policy.ts";
import { slotIndex } from "../batch_bracket.ts";
import { EMA_GENERATIONS } from "./ema_generations.ts";
import { wordOf } from "./fields.ts";
import { type PolicyKind, policyKind } from "./kind.ts";

/** One state for each bracket, in the config's order. Brackets share nothing. */
export type EmaState = readonly SlotState[];

export interface EmaOptions {
  /** The num_steps that a bracket starts with if it is one of its candidates. */
  readonly initialSteps: number;
  /** Batch sizes that the engine pads to. */
  readonly buckets?: readonly number[];
}

/** A bracket in the report. */
export interface SlotReport {
  /** Smallest batch of the bracket. */
  readonly batch_size: number;
  readonly num_steps: number;
  readonly ema_accept_len: number;
}

/**
 * SGLang's `--speculative-adaptive`; its options are a `--speculative-adaptive-config`. Without batch
 * sizes they are those of a `generation`, "main" or "doc" (ema_generations.ts), with the global keys
 * that are given: {"generation": "doc", "ema_alpha": 0.1}.
 */
export const EMA: PolicyKind<AdaptiveConfig> = policyKind({
  examples: [
    {},
    { "1": { candidate_steps: [1, 3, 5, 7] }, "8": { candidate_steps: [0, 1, 3] } },
    {
      ema_alpha: 1,
      warmup_batches: 0,
      update_interval: 1,
      "1": { candidate_steps: [0, 1, 3] },
      "4": { candidate_steps: [0, 7] },
    },
    { candidate_steps: [1, 3, 7], update_interval: 2, warmup_batches: 1, up_hysteresis: -1.5 },
    { generation: "doc", update_interval: 3 },
  ],
  adapts: {
    stationary: 0.8,
    drift: 0.8,
    why: "knows no costs, and a depth's accepted drafts are cut off at the depth",
  },
  check: (given) => parseAdaptiveConfig(ofGeneration(given)),
  make: (config, { numSteps, buckets }) =>
    ema(config, { initialSteps: numSteps ?? middleSteps(config), buckets }),
});

/**
 * SGLang's adaptive controller and router: each batch size has a bracket, which walks along its
 * candidates by a moving average of the accepted drafts.
 *
 * @throws AdaptiveConfigError when the config has no bracket.
 */
export function ema(
  config: AdaptiveConfig,
  { initialSteps, buckets }: EmaOptions,
): Policy<EmaState> {
  const { slots } = withInitialSteps(config, initialSteps);
  if (slots.length === 0) {
    throw new AdaptiveConfigError("an adaptive config needs at least one batch size");
  }
  const routing = { slots, buckets };
  return {
    tiers: unionTiers({ slots }),
    start: slots.map((slot) => startSlot(slot, initialSteps)),
    pick: (state, { batchSize, asked }) => {
      const { slot, current } = at(state, slotIndex(routing, batchSize));
      return { tier: tierOf(slot, stepsWithin(current, slot.candidateSteps, asked)) };
    },
    holds: (state, { batchSize }) => roundsToDecision(at(state, slotIndex(routing, batchSize))),
    learn: (state, outcome) => learn(state, slotIndex(routing, outcome.batchSize), outcome),
    report,
  };
}

/** Expands options without batch sizes and candidates to the config of a generation, with the given numbers. */
function ofGeneration(given: unknown): unknown {
  if (typeof given !== "object" || given === null || Array.isArray(given)) return given;
  const { generation, ...config } = { generation: undefined, ...given };
  const whole = Object.keys(config).some((key) => key === "candidate_steps" || /^\d+$/.test(key));
  if (whole && generation === undefined) return given;
  const table = EMA_GENERATIONS[wordOf(generation, "generation", ["main", "doc"])];
  if (!whole) return { ...config, ...table };
  throw new AdaptiveConfigError("a generation has its own batch sizes and candidate_steps");
}

/** SGLang's log line for a change. */
export function changeText(
  { from, to, ema }: { readonly from: number; readonly to: number; readonly ema: number },
): string {
  return `Adaptive spec params updated: steps ${from} -> ${to} ` +
    `(ema_accept_len=${ema.toFixed(2)})`;
}

/** Learns a round. One that was launched before a change is dropped: it says nothing about the current steps. */
function learn(
  state: EmaState,
  index: number,
  { tier, sequences }: RoundOutcome,
): PolicyUpdate<EmaState> {
  const old = at(state, index);
  const asked = sequences.map((each) => each.asked);
  const ran = stepsWithin(old.current, old.slot.candidateSteps, asked);
  if (tier.depth !== old.current && tier.depth !== ran) return { state };
  // An invalid count (NaN) would stay in the average for ever.
  const accepted = sequences.map((sequence) => sequence.accepted)
    .filter((count) => Number.isSafeInteger(count) && count >= 0);
  const slot = updateSlot(old, accepted, tier.depth);
  const next = state.with(index, slot);
  if (slot.current === old.current) return { state: next };
  const [from, to] = [old.current, slot.current];
  const reason = changeText({ from, to, ema: slot.ema });
  return { state: next, change: { from, to, slot: slot.slot.batchSize, reason } };
}

function report(state: EmaState): PolicyReport {
  const slots = state.map(({ slot, current, ema }) => (
    { batch_size: slot.batchSize, num_steps: current, ema_accept_len: ema } satisfies SlotReport
  ));
  const texts = slots.map(({ batch_size, num_steps, ema_accept_len }) =>
    `from batch ${batch_size}: ${num_steps} steps, ema ${ema_accept_len.toFixed(2)}`
  );
  return { json: { slots }, rows: [["slots", texts.join("; ")]] };
}

function at(state: EmaState, index: number): SlotState {
  const slot = state[index];
  if (slot === undefined) throw new Error(`Cannot read slot ${index}: there are ${state.length}`);
  return slot;
}
