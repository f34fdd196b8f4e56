import type { NumberRange } from "../fields.ts";
import { type PolicyKind, policyKind } from "../kind.ts";
import { addRound, argmax, type ArmSums, noSums } from "./arms.ts";
import { type BinClock, binSize, exploreChance, FIRST_BIN, nextBin } from "./bins.ts";
import { eachBucket, epochPolicy, type EpochRule } from "./epochs.ts";
import { type ExploringOptions, HOLD, readExploring } from "./options.ts";
import { lagOf, type PriorRound, priorRounds, tableCatchUpMs } from "./prior.ts";

type Name = "alpha" | "prior" | "hold" | "max_bin" | "max_bins" | "stay" | "discount" | "focus";
type Options = ExploringOptions<Name>;

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
  focus: { absent: 4, min: 0, max: 100 },
  max_bin: { absent: 8, min: 1, max: 4096, integer: true },
  stay: { absent: 16, min: 1, max: 65536, integer: true },
  max_bins: { absent: 32, min: 1, max: 4096, integer: true },
  discount: { absent: 0.99, min: 0.5, max: 1 },
};

/** Weight of the newest prefill in their average. */
const NEWEST = 0.2;

/**
 * Nightjar (arXiv 2512.22420) as it must be read to work; `nightjar-printed` is its Algorithm 1 to the
 * letter. For each batch bucket, bin b of a block (bins.ts):
 *
 *     with chance 1 / b  the bin's arm is drawn, K with weight (l_least / l_K) ^ focus
 *     else               argmin_K l_K
 *     l_K = ms_K / tokens_K + I(lag > 0 and K > 0) c_switch(lag) / (stay n_K)
 *
 * - The probability 1 / b is v3's; `exploration` "inverse-sqrt" is v1's 1 / sqrt(b), with which most rounds explore.
 *   An arm is kept for its bin (v3), between `hold` and `max_bin` rounds. Blocks grow to at most `max_bins`
 *   bins, because the first bins of a block explore most and so detect a change.
 * - ms_K and tokens_K are sums, multiplied by `discount` at each round of the bucket. The printed mean of
 *   rates over all time neither is the throughput nor follows a drift.
 * - Both sums begin with `prior` rounds of the cost table at acceptance `alpha`. As measured rounds fade, the
 *   prior gains weight again, so an arm that was bad once is tried again.
 * - Exploration prefers arms that are estimated to be near the best, as the authors' code weighs arms by a
 *   prior. With the printed uniform draw, a large batch would pay two or three times for each round. Without
 *   a table the draw is uniform, and arms without a round come first, by rising depth.
 * - The switching cost, the draft's catch-up prefill, is spread over the tokens of the rounds that it is
 *   expected to serve: `stay` rounds, or the bin if that is longer, with n_K tokens each. Eq. 3 divides it by
 *   K, which is not a number of tokens of a batch. Without a table the average of measured prefills is used.
 */
export const NIGHTJAR: PolicyKind<Options> = policyKind({
  costs: true,
  examples: [
    {},
    { steps: [0, 3], exploration: "inverse-sqrt", prior: 0, hold: 1 },
    { discount: 0.9, alpha: 0.2, max_bin: 2 },
  ],
  adapts: {
    bursty: 0.8,
    why: "each batch bucket explores for itself, and what large batches explore is dear",
  },
  check: (given) => readExploring(given, RANGES, ["inverse", "inverse-sqrt"]),
  make: (options, setup) =>
    epochPolicy({ steps: options.steps, setup, rule: nightjar(options, setup.buckets) }),
});

function nightjar(options: Options, buckets: readonly number[]): EpochRule<Stats> {
  const { steps, hold, stay, max_bin, max_bins, discount, exploration, focus, alpha, prior } =
    options;
  const at = ({ buckets }: Stats, bucket: number) => buckets[bucket] as Bins;
  const binRounds = (stats: Stats, bucket: number) =>
    Math.max(hold, Math.min(max_bin, binSize(at(stats, bucket).clock)));
  return {
    start: {
      buckets: eachBucket(buckets, { clock: FIRST_BIN, sums: noSums(steps.length) }),
      catchUp: 0,
    },
    rounds: binRounds,
    choose(stats, { bucket, context, arms, draw }) {
      const { clock, sums } = at(stats, bucket);
      const before = priorRounds(context, steps, alpha);
      const rounds = estimates(sums, before, prior).slice(0, arms);
      const untried = rounds.findIndex(({ ms }) => ms === 0);
      if (untried >= 0) return untried;
      const { total } = lagOf(context);
      const switching = total > 0 ? tableCatchUpMs(context, total) ?? stats.catchUp : 0;
      const rates = ratesOf(steps, rounds, switching / Math.max(stay, binRounds(stats, bucket)));
      const explores = draw(0) < exploreChance(clock, exploration);
      return explores ? drawn(rates, before ? focus : 0, draw(1)) : argmax(rates);
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
      const next = { clock: nextBin(clock, max_bins), sums };
      return { ...stats, buckets: stats.buckets.with(bucket, next) };
    },
    rate(stats, bucket, arm) {
      const { tokens, ms } = at(stats, bucket).sums;
      return ms[arm] ? (tokens[arm] ?? 0) / ms[arm] : undefined;
    },
  };
}

/** The mean round of each arm, from its sums and the prior; 0 ms if nothing is known. */
function estimates(
  sums: ArmSums,
  before: readonly PriorRound[] | undefined,
  prior: number,
): PriorRound[] {
  const weight = before === undefined ? 0 : prior;
  return sums.rounds.map((count, arm) => {
    const { tokens, ms } = before?.[arm] ?? { tokens: 0, ms: 0 };
    const rounds = count + weight || 1;
    return {
      tokens: ((sums.tokens[arm] ?? 0) + weight * tokens) / rounds,
      ms: ((sums.ms[arm] ?? 0) + weight * ms) / rounds,
    };
  });
}

/** Tokens a millisecond by arm, where drafting takes `switching` ms a round more. */
function ratesOf(
  steps: readonly number[],
  rounds: readonly PriorRound[],
  switching: number,
): number[] {
  return rounds.map(({ tokens, ms }, arm) => (
    tokens / (ms + ((steps[arm] ?? 0) > 0 ? switching : 0))
  ));
}

/** An arm by chance, in proportion to (rate / the largest) ^ focus. */
function drawn(rates: readonly number[], focus: number, uniform: number): number {
  const most = Math.max(...rates);
  const weights = rates.map((rate) => (rate / most) ** focus);
  let left = uniform * weights.reduce((sum, weight) => sum + weight, 0);
  const arm = weights.findIndex((weight) => (left -= weight) < 0);
  return arm < 0 ? rates.length - 1 : arm;
}

function average(old: number, newest: number): number {
  return old === 0 ? newest : old + NEWEST * (newest - old);
}
