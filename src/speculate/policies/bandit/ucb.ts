import { type PolicyKind, policyKind } from "../kind.ts";
import { addTerm, argmax, tryOrder } from "./arms.ts";
import { eachBucket, epochPolicy, type EpochRule } from "./epochs.ts";
import { firstSteps, HOLD, NO_DISCOUNT, type NumberOptions, readNumbers } from "./options.ts";
import { wallRate } from "./reward.ts";

type Options = NumberOptions<"bonus" | "hold" | "discount">;

/** State of one bucket. */
interface Pulls {
  readonly rounds: readonly number[];
  /** Sums of tokens a millisecond, by arm. */
  readonly rates: readonly number[];
  /** The most tokens a millisecond of any round so far. */
  readonly most: number;
}

/**
 * BanditSpec's UCBSpec (Hou et al., arXiv 2505.15141), read as UCB1 (Auer et al. 2002) for each batch
 * bucket. With r a round's tokens a millisecond over the largest so far, n_k its rounds and t all:
 *
 *     argmax_k mean(r_k) + bonus * sqrt(2 ln t / n_k)
 *
 * Depths without a round come first. The released code divides by t in place of n_k, which is greedy.
 * The arm is kept for `hold` rounds, which are launched together. `discount` below 1 makes all sums
 * forget, as in discounted UCB (Garivier and Moulines 2011).
 */
export const UCB: PolicyKind<Options> = policyKind({
  examples: [{}, { steps: [0, 2, 5], bonus: 1, hold: 1 }, { discount: 0.99, hold: 7 }],
  adapts: { bursty: 0.8, why: "each batch bucket tries every depth; a switch has no cost" },
  check: (given) =>
    readNumbers(given, {
      bonus: { absent: 0.3, min: 0, max: 100 },
      hold: HOLD,
      discount: NO_DISCOUNT,
    }),
  make: (options, setup) =>
    epochPolicy({
      steps: options.steps,
      setup,
      rule: ucb(options, setup.buckets, firstSteps(setup.numSteps)),
    }),
});

function ucb(
  { steps, bonus, hold, discount }: Options,
  buckets: readonly number[],
  numSteps: number,
): EpochRule<readonly Pulls[]> {
  const none = steps.map(() => 0);
  const order = tryOrder(steps, numSteps);
  const at = (stats: readonly Pulls[], bucket: number) => stats[bucket] as Pulls;
  return {
    start: eachBucket(buckets, { rounds: none, rates: none, most: 0 }),
    rounds: () => hold,
    choose(stats, { bucket, arms }) {
      const { rounds, rates, most } = at(stats, bucket);
      const untried = order.find((arm) => arm < arms && !((rounds[arm] ?? 0) > 0));
      if (untried !== undefined) return untried;
      const log = Math.log(Math.max(1, rounds.reduce((sum, count) => sum + count, 0)));
      return argmax(
        rounds.slice(0, arms).map((count, arm) => (
          (rates[arm] ?? 0) / count / most + bonus * Math.sqrt(2 * log / count)
        )),
      );
    },
    learn(stats, { bucket, arm, reward }) {
      const { rounds, rates, most } = at(stats, bucket);
      const rate = wallRate(reward);
      return stats.with(bucket, {
        rounds: addTerm(rounds, { arm, term: 1, discount }),
        rates: addTerm(rates, { arm, term: rate, discount }),
        most: Math.max(most, rate),
      });
    },
    rate(stats, bucket, arm) {
      const { rounds, rates } = at(stats, bucket);
      return rounds[arm] ? (rates[arm] ?? 0) / rounds[arm] : undefined;
    },
  };
}
