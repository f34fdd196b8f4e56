import { allowedSteps, stepsWithin } from "../../asked_steps.ts";
import { type RoundTimings, timeRound } from "../../estimate/round_times.ts";
import { type Policy, PolicyError, type RoundContext, type RoundOutcome } from "../../policy.ts";
import { chain, chains } from "../../round_shape.ts";
import { numberOf, readOptions, stepsOf } from "../fields.ts";
import { type PolicyKind, policyKind } from "../kind.ts";
import { timedRound } from "./evidence.ts";
import { type Pricing, pricing } from "./pricing.ts";

export interface ThroughputAwareOptions {
  /** Depths to choose among, 1 and more. */
  readonly steps: readonly number[];
  /** Rounds between decisions. */
  readonly interval: number;
  /** Rounds over which a position's share of accepted drafts is averaged. */
  readonly window: number;
  /** What another depth must promise, as a factor of the one that runs. */
  readonly margin: number;
}

export interface ThroughputAwareState {
  readonly steps: number;
  /** For each position, the share of requests that accepted it in each of the last rounds, the newest last. */
  readonly windows: readonly (readonly number[])[];
  /** Rounds since the last decision. */
  readonly rounds: number;
  readonly timings: RoundTimings;
}

/**
 * SGLang's `throughput_aware` (pull request 28045): means p_k over windows of rounds of the share of
 * requests that accept draft k, and every `interval` rounds
 *
 *     S = argmax of (1 + sum over k < S of p_k) / ms(B, S)
 *
 * Positions that were not drafted lately are extrapolated geometrically from those that were; for this the
 * windows of deeper positions are cleared when the steps decrease. After rounds of 1 step only p_0 is known: p_k is
 * then p_0^(k + 1) here and p_0 in SGLang, as if a second draft were always accepted after the first. 0 steps are not
 * among the choices.
 * `margin` is SGLang's hysteresis helper, 1.1 there and off (1) by default.
 */
export const THROUGHPUT_AWARE: PolicyKind<ThroughputAwareOptions> = policyKind({
  costs: true,
  examples: [{}, { steps: [1, 3], interval: 1, window: 2 }, { margin: 1.1, window: 1 }],
  check(given) {
    const options = readOptions(given, ["steps", "interval", "window", "margin"]);
    const steps = stepsOf(options.steps, [1, 2, 3, 5, 7]);
    if (steps[0] === 0) throw new PolicyError("steps must be 1 or more: it has no 0 steps");
    const count = { min: 1, max: 1000, integer: true } as const;
    return {
      steps,
      interval: numberOf(options.interval, "interval", { ...count, absent: 10 }),
      window: numberOf(options.window, "window", { ...count, absent: 20 }),
      margin: numberOf(options.margin, "margin", { absent: 1, min: 1, max: 10 }),
    };
  },
  make: (options, { buckets, numSteps }) => throughputAware(options, { buckets, numSteps }),
});

function throughputAware(
  options: ThroughputAwareOptions,
  { buckets, numSteps }: {
    readonly buckets: readonly number[];
    readonly numSteps?: number | undefined;
  },
): Policy<ThroughputAwareState> {
  const { steps, interval } = options;
  const prices = pricing({ buckets });
  const middle = steps[Math.floor(steps.length / 2)] as number;
  const first = numSteps !== undefined && steps.includes(numSteps) ? numSteps : middle;
  const windows = Array.from({ length: steps.at(-1) as number }, () => []);
  return {
    tiers: chains(steps),
    start: { steps: first, windows, rounds: 0, timings: [] },
    pick(state, context) {
      const current = stepsWithin(state.steps, steps, context.asked);
      const decides = isDue(state, current, options) && context.batchSize > 0;
      const allowed = { ...options, steps: allowedSteps(steps, context.asked), prices };
      return {
        tier: chain(decides ? bestSteps({ ...state, steps: current }, context, allowed) : current),
      };
    },
    holds: (state, { asked }) =>
      isDue(state, stepsWithin(state.steps, steps, asked), options)
        ? interval
        : Math.max(1, interval - state.rounds),
    learn: (state, outcome) => ({ state: learned(state, outcome, { options, buckets }) }),
    report: ({ steps, windows }) => {
      const shares = accepted(windows, steps);
      return {
        json: { num_steps: steps, acceptance: shares },
        rows: [["acceptance", shares.map((each) => each.toFixed(2)).join(" ") || "none yet"]],
      };
    },
  };
}

/** Whether the next round is chosen again: windows of all positions that run are full. */
function isDue(
  { rounds, windows }: ThroughputAwareState,
  steps: number,
  { interval, window }: ThroughputAwareOptions,
): boolean {
  return rounds >= interval && windows.slice(0, steps).every(({ length }) => length >= window);
}

/** Means of the windows that have rounds, and how they go on, [depth]; empty without any. */
function accepted(windows: readonly (readonly number[])[], depth: number): number[] {
  const end = windows.findIndex(({ length }) => length === 0);
  const known = windows.slice(0, end < 0 ? windows.length : end)
    .map((window) => window.reduce((sum, share) => sum + share, 0) / window.length);
  if (known.length === 0) return [];
  const [first, last] = [known[0] as number, known.at(-1) as number];
  const ratio = known.length === 1 ? first : (last / first) ** (1 / (known.length - 1));
  const less = Number.isFinite(ratio) ? Math.min(1, ratio) : 0;
  return Array.from({ length: depth }, (_, k) => known[k] ?? last * less ** (k + 1 - known.length));
}

function bestSteps(
  { steps: current, windows, timings }: ThroughputAwareState,
  context: RoundContext,
  { steps, margin, prices }: Pick<ThroughputAwareOptions, "steps" | "margin"> & {
    readonly prices: Pricing;
  },
): number {
  const shares = accepted(windows, steps.at(-1) as number);
  const priced = prices(context, timings);
  const rate = (depth: number) => {
    const tokens = shares.slice(0, depth).reduce((sum, share) => sum + share, 1);
    return tokens / (priced.budget(depth).whole * priced.factor(depth));
  };
  const best = steps.reduce((best, depth) => rate(depth) > rate(best) ? depth : best);
  return rate(best) > rate(current) * margin ? best : current;
}

function learned(
  state: ThroughputAwareState,
  outcome: RoundOutcome,
  { options, buckets }: {
    readonly options: ThroughputAwareOptions;
    readonly buckets: readonly number[];
  },
): ThroughputAwareState {
  const { depth } = outcome.tier;
  const timings = timeRound(state.timings, timedRound(outcome, buckets));
  const counts = outcome.sequences.map(({ accepted }) => accepted)
    .filter((count) => Number.isInteger(count) && count >= 0);
  // Fewer steps than the current ones were chosen, or are what the requests allow: windows as deep must be full.
  const ran = Math.min(depth, state.steps);
  const decides = isDue(state, ran, options) && options.steps.includes(depth);
  const steps = decides ? depth : state.steps;
  const windows = state.windows.map((window, k) => {
    if (k >= steps && steps < state.steps) return [];
    if (k >= depth || counts.length === 0) return window;
    const share = counts.filter((count) => count > k).length / counts.length;
    return [...window, share].slice(-options.window);
  });
  return { steps, windows, timings, rounds: decides ? 1 : state.rounds + 1 };
}
