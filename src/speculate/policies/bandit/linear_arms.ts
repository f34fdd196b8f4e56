import { argmax, tryOrder } from "./arms.ts";
import type { Epoch, EpochRule } from "./epochs.ts";
import { HOLD, NO_DISCOUNT, type NumberOptions } from "./options.ts";
import { observe, type Regression, ridge, type Vector } from "./linear.ts";
import { wallRate } from "./reward.ts";
import type { NumberRange } from "../fields.ts";

/** A regression for each arm, over all batch sizes. */
export interface LinearStats {
  readonly arms: readonly Regression[];
  readonly rounds: readonly number[];
  /** The largest reward so far. */
  readonly most: number;
}

export type LinearName = "lambda" | "hold" | "discount";

export const LINEAR_RANGES: Readonly<Record<LinearName, NumberRange>> = {
  lambda: { absent: 1, min: 1e-6, max: 1e6 },
  hold: HOLD,
  discount: NO_DISCOUNT,
};

/**
 * Linear bandits over batch sizes: each arm's expected reward is theta . x with
 *
 *     x = [1, log2 B, (log2 B)^2],  reward = tokens a millisecond a sequence
 *
 * Nightjar's comparison uses the single feature B, which makes the rate proportional to the batch.
 * `score` rates an arm from its regression and x, in units of the largest reward. Arms without a round
 * come first.
 */
export function linearRule(
  { steps, lambda, hold, discount, numSteps }: NumberOptions<LinearName> & {
    readonly numSteps: number;
  },
  score: (arm: {
    readonly regression: Regression;
    readonly x: Vector;
    /** 1 / the largest reward. */
    readonly scale: number;
    /** From 0 to 1, the latter excluded. @param purpose 0 to 3. */
    readonly draw: (purpose: number) => number;
  }) => number,
): EpochRule<LinearStats> {
  const order = tryOrder(steps, numSteps);
  return {
    start: { arms: steps.map(() => ridge(lambda)), rounds: steps.map(() => 0), most: 0 },
    rounds: () => hold,
    choose({ arms, rounds, most }, { context, arms: allowed, draw }: Epoch) {
      const untried = order.find((arm) => arm < allowed && rounds[arm] === 0);
      if (untried !== undefined) return untried;
      const x = features(context.batchSize);
      return argmax(
        arms.slice(0, allowed).map((regression, arm) =>
          score({ regression, x, scale: 1 / most, draw: (purpose) => draw(arm * 4 + purpose) })
        ),
      );
    },
    learn({ arms, rounds, most }, { arm, batch, reward }) {
      const value = wallRate(reward) / Math.max(1, batch);
      const x = features(batch);
      const next = observe(arms[arm] as Regression, { x, reward: value, discount, lambda });
      return {
        arms: arms.with(arm, next),
        rounds: rounds.with(arm, (rounds[arm] ?? 0) + 1),
        most: Math.max(most, value),
      };
    },
    rate: () => undefined,
  };
}

/** The features x of a batch size, which is taken to be at least 1. */
export function features(batch: number): Vector {
  const log = Math.log2(Math.max(1, batch));
  return [1, log, log * log];
}
