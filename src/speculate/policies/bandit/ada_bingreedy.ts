import { type PolicyKind, policyKind } from "../kind.ts";
import { addRate, argmax, type ArmMeans, noMeans } from "./arms.ts";
import { type BinClock, binSize, exploreChance, FIRST_BIN, nextBin } from "./bins.ts";
import { eachBucket, epochPolicy, type EpochRule } from "./epochs.ts";
import { type ExploringOptions, HOLD, readExploring } from "./options.ts";
import { wallRate } from "./reward.ts";

type Options = ExploringOptions<"hold">;

/** State of one bucket. */
interface Bins {
  readonly clock: BinClock;
  readonly means: ArmMeans;
}

/**
 * Greedy choice with exploring bins: the basis of Nightjar, and Nightjar without its switching cost. The name
 * is from Luo et al. (COLT 2018); Nightjar leaves out their tests for change and restarts. In bin b of a
 * block (bins.ts), for each batch bucket:
 *
 *     with chance 1 / sqrt(b)  the bin's arm is uniform over all
 *     else                     argmax_k mean of tokens a millisecond of its rounds, 0 without any
 *
 * The mean is over all time, each round with one vote. An arm is kept for its bin, or for `hold`
 * rounds where that is more. `exploration` is "inverse" for 1 / b.
 */
export const ADA_BINGREEDY: PolicyKind<Options> = policyKind({
  examples: [{}, { steps: [0, 4], exploration: "inverse", hold: 3 }],
  adapts: {
    stationary: 0.66,
    drift: 0.8,
    bursty: 0.7,
    why: "explores uniformly in a third of the rounds; means over all time; a switch has no cost",
  },
  check: (given) =>
    readExploring(given, { hold: { ...HOLD, absent: 1 } }, ["inverse-sqrt", "inverse"]),
  make: (options, setup) =>
    epochPolicy({ steps: options.steps, setup, rule: binGreedy(options, setup.buckets) }),
});

function binGreedy(
  { steps, hold, exploration }: Options,
  buckets: readonly number[],
): EpochRule<readonly Bins[]> {
  const at = (stats: readonly Bins[], bucket: number) => stats[bucket] as Bins;
  return {
    start: eachBucket(buckets, { clock: FIRST_BIN, means: noMeans(steps.length) }),
    rounds: (stats, bucket) => Math.max(hold, binSize(at(stats, bucket).clock)),
    choose(stats, { bucket, arms, draw }) {
      const { clock, means } = at(stats, bucket);
      if (draw(0) < exploreChance(clock, exploration)) return Math.floor(draw(1) * arms);
      return argmax(means.mean.slice(0, arms));
    },
    learn(stats, { bucket, arm, reward }) {
      const { clock, means } = at(stats, bucket);
      return stats.with(bucket, { clock, means: addRate(means, arm, wallRate(reward)) });
    },
    ended(stats, { bucket }) {
      const { clock, means } = at(stats, bucket);
      return stats.with(bucket, { clock: nextBin(clock), means });
    },
    rate(stats, bucket, arm) {
      const { rounds, mean } = at(stats, bucket).means;
      return rounds[arm] ? mean[arm] : undefined;
    },
  };
}
