import type {
  Decision,
  Policy,
  PolicySetup,
  RoundContext,
  RoundOutcome,
  SequenceOutcome,
} from "../../policy.ts";
import { allowedSteps } from "../../asked_steps.ts";
import { chains } from "../../round_shape.ts";
import { addTime, type MeanTime } from "../../estimate/round_times.ts";
import { armReport } from "./report.ts";
import { type Reward, rewardOf } from "./reward.ts";

/**
 * A bandit whose arms are draft depths. It plays an arm for an epoch of rounds, which may be launched
 * together, and then chooses again. Each bucket (a batch size that programs are compiled for, to which
 * batches are padded) has its own epochs. Arms and buckets are given by their index.
 */
export interface EpochRule<Stats> {
  readonly start: Stats;
  /** Chooses the arm of a new epoch. */
  choose(stats: Stats, epoch: Epoch): number;
  /** The number of rounds of a new epoch, 1 or more. */
  rounds(stats: Stats, bucket: number): number;
  /** Learns a round of the current arm. */
  learn(stats: Stats, round: ArmRound): Stats;
  /** Called when an epoch is over and all its rounds are learned. */
  ended?(stats: Stats, epoch: EndedEpoch): Stats;
  /** Tokens a millisecond that an arm is thought to give, for the report; undefined where unknown. */
  rate(stats: Stats, bucket: number, arm: number): number | undefined;
}

/** The most random numbers that an epoch may draw. */
const PURPOSES = 128;

/** An epoch to come. */
export interface Epoch {
  readonly bucket: number;
  readonly context: RoundContext;
  /** The arm is one of the first so many: others are deeper than the requests ask for. */
  readonly arms: number;
  /** From 0 to 1, the latter excluded. @param purpose below PURPOSES. */
  draw(purpose: number): number;
}

/** An epoch that is over. */
export interface EndedEpoch {
  readonly bucket: number;
  readonly arm: number;
  /** As in the epoch to come. */
  readonly arms: number;
}

export interface ArmRound {
  readonly bucket: number;
  readonly batch: number;
  readonly arm: number;
  readonly reward: Reward;
}

export interface EpochState<Stats> {
  readonly stats: Stats;
  readonly epochs: readonly BucketEpoch[];
}

/** State of one bucket. */
export interface BucketEpoch {
  /** The arm that is played while rounds are `left`. */
  readonly arm: number;
  readonly left: number;
  /** Epochs that are over. */
  readonly count: number;
  /** Rounds by arm. */
  readonly played: readonly number[];
  /** Usual milliseconds of a round by arm; undefined before its first. */
  readonly times: readonly (MeanTime | undefined)[];
}

/** The policy that follows a rule. `steps`: the depth of each arm, rising. */
export function epochPolicy<Stats>(
  { steps, setup, rule }: {
    readonly steps: readonly number[];
    readonly setup: PolicySetup;
    readonly rule: EpochRule<Stats>;
  },
): Policy<EpochState<Stats>> {
  const { buckets } = setup;
  const tiers = chains(steps);
  const choices: readonly Decision[] = tiers.map((tier) => ({ tier }));
  const fresh: BucketEpoch = {
    arm: 0,
    left: 0,
    count: 0,
    played: steps.map(() => 0),
    times: steps.map(() => undefined),
  };

  /** Whether an epoch goes on. One whose arm is deeper than requests ask for ends early. */
  const goesOn = ({ left, arm }: BucketEpoch, arms: number) => left > 0 && arm < arms;

  function armOf({ stats, epochs }: EpochState<Stats>, context: RoundContext): number {
    const bucket = bucketOf(buckets, context.batchSize);
    const epoch = epochs[bucket] ?? fresh;
    const arms = allowedSteps(steps, context.asked).length;
    if (goesOn(epoch, arms)) return epoch.arm;
    const draw = (purpose: number) =>
      setup.random(epoch.count, bucket * PURPOSES + purpose) / 2 ** 32;
    return rule.choose(stats, { bucket, context, arms, draw });
  }

  /** Learns a round. A round of another arm was launched before the epoch began and is dropped. */
  function learn(state: EpochState<Stats>, outcome: RoundOutcome): EpochState<Stats> {
    const bucket = bucketOf(buckets, outcome.batchSize);
    const old = state.epochs[bucket] ?? fresh;
    const arm = steps.indexOf(outcome.tier.depth);
    if (arm < 0) return state;
    // The request that allowed this depth may have ended.
    const arms = Math.max(arm + 1, allowedSteps(steps, outcome.sequences.map(askedOf)).length);
    const continues = goesOn(old, arms);
    if (continues && arm !== old.arm) return state;
    const left = (continues ? old.left : rule.rounds(state.stats, bucket)) - 1;
    const reward = rewardOf(outcome);
    // A wrong time would stay in a bandit's sums and in the largest rate for long.
    const time = reward && addTime(old.times[arm], reward.ms);
    const usual = reward && time && { ...reward, ms: time.clamped };
    const epoch: BucketEpoch = {
      arm,
      left,
      count: left === 0 ? old.count + 1 : old.count,
      played: old.played.with(arm, (old.played[arm] ?? 0) + 1),
      times: time ? old.times.with(arm, time.mean) : old.times,
    };
    const learned = usual === undefined
      ? state.stats
      : rule.learn(state.stats, { bucket, batch: outcome.batchSize, arm, reward: usual });
    const stats = left === 0 ? rule.ended?.(learned, { bucket, arm, arms }) ?? learned : learned;
    return { stats, epochs: state.epochs.with(bucket, epoch) };
  }

  return {
    tiers,
    start: { stats: rule.start, epochs: atLeastOne(buckets).map(() => fresh) },
    pick: (state, context) => choices[armOf(state, context)] as Decision,
    holds({ stats, epochs }, { batchSize, asked }) {
      const bucket = bucketOf(buckets, batchSize);
      const epoch = epochs[bucket] ?? fresh;
      const continues = goesOn(epoch, allowedSteps(steps, asked).length);
      return continues ? epoch.left : rule.rounds(stats, bucket);
    },
    learn: (state, outcome) => ({ state: learn(state, outcome) }),
    report: ({ stats, epochs }) =>
      armReport(epochs.map(({ played }, bucket) => ({
        batchSize: buckets[bucket] ?? 1,
        arms: played.map((rounds, arm) => (
          { steps: steps[arm] ?? 0, rounds, rate: rule.rate(stats, bucket, arm) }
        )),
      }))),
  };
}

function askedOf({ asked }: SequenceOutcome): number | undefined {
  return asked;
}

/** The first bucket that holds the batch, the last one for batches beyond all. */
export function bucketOf(buckets: readonly number[], batch: number): number {
  const index = buckets.findIndex((bucket) => bucket >= batch);
  return index >= 0 ? index : Math.max(0, buckets.length - 1);
}

/** The same start for every bucket. */
export function eachBucket<T>(buckets: readonly number[], start: T): T[] {
  return atLeastOne(buckets).map(() => start);
}

function atLeastOne(buckets: readonly number[]): readonly number[] {
  return buckets.length > 0 ? buckets : [1];
}
