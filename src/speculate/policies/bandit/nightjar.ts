import type { NumberRange } from "../fields.ts";
import { type PolicyKind, policyKind } from "../kind.ts";
import { addRound, argmax, type ArmSums, noSums } from "./arms.ts";
import { type BinClock, binSize, exploreChance, FIRST_BIN, nextBin } from "./bins.ts";
import { eachBucket, type Epoch, epochPolicy, type EpochRule } from "./epochs.ts";
import { HOLD, type LawOptions, readWithLaw } from "./options.ts";
import { lagOf, priorRounds, tableCatchUpMs } from "./prior.ts";

type Name = "alpha" | "prior" | "hold" | "most_bin" | "discount";
type Options = LawOptions<Name>;

interface Stats {
  readonly buckets: readonly Bins[];
  /** Average of the draft's prefills that were measured, in ms; 0 before the first. */
  readonly catchUp: number;
}

interface Bins {
  readonly clock: BinClock;
  readonly sums: ArmSums;
}

const RANGES: Readonly<Record<Name, NumberRange>> = {
  alpha: { absent: 0.7, min: 0, max: 0.999 },
  prior: { absent: 2, min: 0, max: 1000 },
  hold: HOLD,
  most_bin: { absent: 64, min: 1, max: 4096, integer: true },
  discount: { absent: 0.995, min: 0.5, max: 1 },
};

/** Weight of the newest prefill in their average. */
const NEWEST = 0.2;

/**
 * Nightjar (arXiv 2512.22420) as it must be read to work; `nightjar-printed` is its Algorithm 1 to the
 * letter. For each batch bucket, bin b of a block (bins.ts):
 *
 *     with chance 1 / b  the bin's arm is uniform over all (v3; `law` "inverse-sqrt" is v1's)
 *     else               argmin_K  1 / g_K + I(lag > 0 and K > 0) c_switch(lag) / (stay n_K)
 *
 * - g_K is the rate of sums of tokens and milliseconds, which forget by `discount` a round of the
 *   bucket: the printed mean of rates over all time neither is the throughput nor follows a drift.
 * - Both sums begin with `prior` rounds of the cost table at acceptance `alpha`; as the others fade it
 *   returns, so that an arm which once was bad is tried again. Without a table arms without a round
 *   come first, rising.
 * - The arm is kept for its bin, or for `hold` rounds where that is more (v3: "bin-locked"). A bin has
 *   at most `most_bin` rounds.
 * - The switch, a prefill of what the draft has missed, is spread over the tokens that the arm emits
 *   in its bin: stay rounds of n_K. Eq. 3 divides it by K, which is no number of tokens of a batch.
 *   Without a table it costs what such prefills did.
 */
export const NIGHTJAR: PolicyKind<Options> = policyKind({
  examples: [
    {},
    { steps: [0, 3], law: "inverse-sqrt", prior: 0, hold: 1 },
    { discount: 0.9, alpha: 0.2, most_bin: 2 },
  ],
  check: (given) => readWithLaw(given, RANGES, ["inverse", "inverse-sqrt"]),
  make: (options, setup) =>
    epochPolicy({ steps: options.steps, setup, rule: nightjar(options, setup.buckets) }),
});

function nightjar(options: Options, buckets: readonly number[]): EpochRule<Stats> {
  const { steps, hold, most_bin, discount, law } = options;
  const at = ({ buckets }: Stats, bucket: number) => buckets[bucket] as Bins;
  const rounds = (stats: Stats, bucket: number) => Math.max(hold, binSize(at(stats, bucket).clock));
  return {
    start: {
      buckets: eachBucket(buckets, { clock: FIRST_BIN, sums: noSums(steps.length) }),
      catchUp: 0,
    },
    rounds,
    choose(stats, epoch) {
      const { clock, sums } = at(stats, epoch.bucket);
      if (epoch.draw(0) < exploreChance(clock, law)) {
        return Math.floor(epoch.draw(1) * steps.length);
      }
      const stay = rounds(stats, epoch.bucket);
      return cheapest(options, { sums, epoch, stay, catchUp: stats.catchUp });
    },
    learn(stats, { bucket, arm, reward }) {
      const { clock, sums: old } = at(stats, bucket);
      const { tokens, ms, catchUp } = reward;
      const sums = addRound(old, { arm, discount, tokens, ms });
      return {
        buckets: stats.buckets.with(bucket, { clock, sums }),
        catchUp: catchUp > 0 ? average(stats.catchUp, catchUp) : stats.catchUp,
      };
    },
    ended(stats, { bucket }) {
      const { clock, sums } = at(stats, bucket);
      const next = { clock: nextBin(clock, most_bin), sums };
      return { ...stats, buckets: stats.buckets.with(bucket, next) };
    },
    rate(stats, bucket, arm) {
      const { tokens, ms } = at(stats, bucket).sums;
      return ms[arm] ? (tokens[arm] ?? 0) / ms[arm] : undefined;
    },
  };
}

/** The arm of the fewest milliseconds a token; the shallower of equal ones. */
function cheapest(
  { steps, alpha, prior }: Options,
  { sums, epoch: { context }, stay, catchUp }: {
    readonly sums: ArmSums;
    readonly epoch: Epoch;
    readonly stay: number;
    readonly catchUp: number;
  },
): number {
  const before = prior > 0 ? priorRounds(context, steps, alpha) : undefined;
  const arms = steps.map((depth, arm) => {
    const weight = before === undefined ? 0 : prior;
    const rounds = (sums.rounds[arm] ?? 0) + weight;
    const tokens = (sums.tokens[arm] ?? 0) + weight * (before?.[arm]?.tokens ?? 0);
    const ms = (sums.ms[arm] ?? 0) + weight * (before?.[arm]?.ms ?? 0);
    return { depth, rounds, tokens, ms };
  });
  const untried = arms.findIndex(({ rounds }) => rounds === 0);
  if (untried >= 0) return untried;
  const { total } = lagOf(context);
  const switching = total > 0 ? tableCatchUpMs(context, total) ?? catchUp : 0;
  return argmax(arms.map(({ depth, rounds, tokens, ms }) => {
    const spread = depth > 0 ? switching / (stay * tokens / rounds) : 0;
    return -(ms / tokens + spread);
  }));
}

function average(old: number, newest: number): number {
  return old === 0 ? newest : old + NEWEST * (newest - old);
}
