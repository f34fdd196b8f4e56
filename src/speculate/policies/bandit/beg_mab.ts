import type { NumberRange } from "../fields.ts";
import { type PolicyKind, policyKind } from "../kind.ts";
import { argmax, tryOrder } from "./arms.ts";
import { eachBucket, epochPolicy, type EpochRule } from "./epochs.ts";
import { firstSteps, HOLD, type NumberOptions, readNumbers } from "./options.ts";

type Name = "epsilon" | "window" | "hold";
type Options = NumberOptions<Name>;

/** The newest numbers, at most a window of them, and their median. */
interface Recent {
  readonly values: readonly number[];
  /** Median of the values when the last epoch ended; undefined before the first. */
  readonly median: number | undefined;
}

interface Stats {
  /** Tokens a sequence and round by arm, over all batch sizes. */
  readonly lengths: readonly Recent[];
  /** Sequences a millisecond by bucket and arm. */
  readonly speeds: readonly (readonly Recent[])[];
}

const RANGES: Readonly<Record<Name, NumberRange>> = {
  epsilon: { absent: 0.1, min: 0, max: 1 },
  window: { absent: 100, min: 1, max: 1000, integer: true },
  hold: HOLD,
};

const NOTHING: Recent = { values: [], median: undefined };

/**
 * BEG-MAB, the bucketed epsilon-greedy bandit of TLT (mit-han-lab/fastrl, SGLang PR #18284), for each
 * batch bucket:
 *
 *     with chance epsilon  an arm uniformly
 *     else                 argmax_k length_k * speed[bucket, k]
 *
 * length_k is the median number of tokens a sequence gains in a round, over all batch sizes. speed is the median of
 * sequences a millisecond in the bucket. Both are over the newest `window` rounds (300 to 1000 in TLT), so an outlier
 * moves neither. Arms without a round come first. TLT's arms are trees, and each batch size has only some of them,
 * by their verified tokens; here the arms are chains, few enough for every bucket to have all. An arm is kept
 * for `hold` rounds, which are launched together.
 */
export const BEG_MAB: PolicyKind<Options> = policyKind({
  examples: [{}, { steps: [0, 2, 6], epsilon: 0.5, window: 3, hold: 1 }],
  adapts: {
    stationary: 0.68,
    drift: 0.77,
    bursty: 0.75,
    improved: 0.48,
    why:
      "explores a tenth of the epochs uniformly; a median of accepted drafts of small batches is a " +
      "whole number, and forgets only by its window; a switch has no cost",
  },
  check: (given) => readNumbers(given, RANGES),
  make: (options, setup) =>
    epochPolicy({
      steps: options.steps,
      setup,
      rule: begMab(options, setup.buckets, firstSteps(setup.numSteps)),
    }),
});

function begMab(
  { steps, epsilon, window, hold }: Options,
  buckets: readonly number[],
  numSteps: number,
): EpochRule<Stats> {
  const none = steps.map(() => NOTHING);
  const order = tryOrder(steps, numSteps);
  const score = ({ lengths, speeds }: Stats, bucket: number, arm: number) => {
    const [length, speed] = [lengths[arm]?.median, speeds[bucket]?.[arm]?.median];
    return length === undefined || speed === undefined ? undefined : length * speed;
  };
  return {
    start: { lengths: none, speeds: eachBucket(buckets, none) },
    rounds: () => hold,
    choose(stats, { bucket, arms, draw }) {
      const scores = steps.slice(0, arms).map((_, arm) => score(stats, bucket, arm));
      const untried = order.find((arm) => arm < arms && scores[arm] === undefined);
      if (untried !== undefined) return untried;
      if (draw(0) < epsilon) return Math.floor(draw(1) * arms);
      return argmax(scores.map((score) => score ?? 0));
    },
    learn({ lengths, speeds }, { bucket, batch, arm, reward: { tokens, ms, catchUp } }) {
      const sequences = Math.max(1, batch);
      const add = (recents: readonly Recent[], value: number) =>
        recents.with(arm, newest(recents[arm] ?? NOTHING, value, window));
      return {
        lengths: add(lengths, tokens / sequences),
        speeds: speeds.with(bucket, add(speeds[bucket] ?? none, sequences / (ms + catchUp))),
      };
    },
    ended({ lengths, speeds }, { bucket, arm }) {
      const settle = (recents: readonly Recent[]) =>
        recents.with(arm, withMedian(recents[arm] ?? NOTHING));
      return {
        lengths: settle(lengths),
        speeds: speeds.with(bucket, settle(speeds[bucket] ?? none)),
      };
    },
    rate: score,
  };
}

function newest({ values, median }: Recent, value: number, window: number): Recent {
  const kept = values.slice(Math.max(0, values.length - window + 1));
  kept.push(value);
  return { values: kept, median };
}

/** Adds the median; for an even number of values it is the larger of the middle two. */
function withMedian({ values }: Recent): Recent {
  const sorted = values.toSorted((a, b) => a - b);
  return { values, median: sorted[sorted.length >> 1] };
}
