import { type PolicyKind, policyKind } from "../kind.ts";
import { eachBucket, epochPolicy, type EpochRule } from "./epochs.ts";
import { HOLD, type NumberOptions, readNumbers } from "./options.ts";
import { type Reward, wallRate } from "./reward.ts";

type Options = NumberOptions<"rate" | "hold">;

/** State of one bucket. */
interface Weights {
  /** For each arm the sum of its losses, each divided by the probability that the arm had. */
  readonly losses: readonly number[];
  /** Epochs that were learned. */
  readonly epochs: number;
  /** Tokens and milliseconds of the running epoch. */
  readonly tokens: number;
  readonly ms: number;
  /** The most tokens a millisecond of any round so far. */
  readonly most: number;
}

/** Lower bound of the probability that a loss is divided by, so that the quotient stays finite. */
const MIN_CHANCE = 1e-6;

/**
 * BanditSpec's EXP3Spec (Hou et al., arXiv 2505.15141), for each batch bucket: exponential weights on
 * importance-weighted losses (Auer et al. 2002). In epoch t of K arms
 *
 *     arm ~ p,  p_k ~ exp(-eta_t L_k),  eta_t = rate * sqrt(ln K / (K t))
 *     L_arm += (1 - r) / p_arm
 *
 * with r the epoch's tokens a millisecond over the largest of a round so far. An epoch is `hold`
 * rounds, which are launched together.
 */
export const EXP3: PolicyKind<Options> = policyKind({
  examples: [{}, { steps: [0, 1, 3], hold: 1 }, { rate: 3, hold: 16 }],
  adapts: {
    stationary: 0.78,
    bursty: 0.77,
    why: "made for adversaries: it keeps drawing every arm, less and less by sqrt(ln K / (K t))",
  },
  check: (given) => readNumbers(given, { rate: { absent: 1, min: 0, max: 100 }, hold: HOLD }),
  make: (options, setup) =>
    epochPolicy({ steps: options.steps, setup, rule: exp3(options, setup.buckets) }),
});

function exp3(
  { steps, rate, hold }: Options,
  buckets: readonly number[],
): EpochRule<readonly Weights[]> {
  const empty = { tokens: 0, ms: 0 };
  const at = (stats: readonly Weights[], bucket: number) => stats[bucket] as Weights;
  const start: Weights = { losses: steps.map(() => 0), epochs: 0, most: 0, ...empty };
  return {
    start: eachBucket(buckets, start),
    rounds: () => hold,
    choose(stats, { bucket, arms, draw }) {
      const drawn = draw(0);
      let below = 0;
      const chances = chancesOf(at(stats, bucket), { rate, arms });
      const arm = chances.findIndex((chance) => (below += chance) > drawn);
      return arm < 0 ? chances.length - 1 : arm;
    },
    learn(stats, { bucket, reward }) {
      return stats.with(bucket, addRound(at(stats, bucket), reward));
    },
    ended(stats, { bucket, arm, arms }) {
      const old = at(stats, bucket);
      if (old.ms === 0) return stats;
      const chance = Math.max(MIN_CHANCE, chancesOf(old, { rate, arms })[arm] ?? 0);
      const loss = Math.max(0, 1 - old.tokens / old.ms / old.most) / chance;
      const losses = old.losses.with(arm, (old.losses[arm] ?? 0) + loss);
      return stats.with(bucket, { ...old, ...empty, losses, epochs: old.epochs + 1 });
    },
    rate: () => undefined,
  };
}

function addRound(old: Weights, reward: Reward): Weights {
  return {
    ...old,
    tokens: old.tokens + reward.tokens,
    ms: old.ms + reward.ms + reward.catchUp,
    most: Math.max(old.most, wallRate(reward)),
  };
}

/** The probabilities of the first so many arms. */
function chancesOf(
  { losses: all, epochs }: Weights,
  { rate, arms }: { readonly rate: number; readonly arms: number },
): number[] {
  const losses = all.slice(0, arms);
  const eta = rate * Math.sqrt(Math.log(arms) / (arms * (epochs + 1)));
  const least = Math.min(...losses);
  const weights = losses.map((loss) => Math.exp(-eta * (loss - least)));
  const sum = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight) => weight / sum);
}
