/**
 * A small pure world to try policies in, with a batch size and an acceptance chance for each round, a cost
 * table and noise. Two policies in one world meet the same luck: whether draft j of a sequence would be
 * accepted in a round does not depend on how many were drafted.
 */
import { catchUpMs, roundMs } from "../../src/speculate/costs/lookup.ts";
import { COST_FORMAT, type CostTable } from "../../src/speculate/costs/table.ts";
import { hash32 } from "../../src/speculate/noise.ts";
import type { Decision, Policy, RoundTimes } from "../../src/speculate/policy.ts";
import { chain } from "../../src/speculate/round_shape.ts";
import { contextOf, outcomeOf } from "./rounds.ts";

export interface World {
  readonly rounds: number;
  /** Sequences in a round. */
  readonly batch: (round: number) => number;
  /** Chance that a draft is accepted if the drafts before it were. */
  readonly alpha: (round: number) => number;
  /** The most steps that each request asks for; default: any. */
  readonly asked?: number | undefined;
  /** Whether policies see the cost table; default true. */
  readonly costsTold?: boolean;
  /** The times of a round that the policy is told; default: the actual times. */
  readonly told?: (ms: RoundTimes, round: number) => RoundTimes;
  /** Default 1. */
  readonly seed?: number;
}

/** The results of one round. */
export interface Played {
  readonly depth: number;
  readonly tokens: number;
  /** Milliseconds, including the catch-up before the round. */
  readonly ms: number;
}

const BUCKETS = [1, 2, 4, 8, 16, 32, 64, 96];
const ROWS = [1, 8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024];

/** A round of up to 64 rows costs 1 ms plus 0.05 ms a draft level. Above, verification is proportional to rows. */
export const WORLD_COSTS: CostTable = {
  format: COST_FORMAT,
  adapter: "world",
  model: "world",
  draft: "world",
  buckets: BUCKETS,
  level: BUCKETS.map((at) => ({ at, ms: 0.05 * (1 + at / 128) })),
  verify: ROWS.map((at) => ({ at, ms: (1 + (at / 64) ** 4) ** 0.25 })),
  perCell: 1e-6,
  extend: ROWS.map((at) => ({ at, ms: 0.05 + at / 2500 })),
  catchUp: [1, 64, 1024, 8192].map((at) => ({ at, ms: 0.2 + at / 500 })),
  prefill: [1, 64, 1024, 8192].map((at) => ({ at, ms: 1 + at / 50 })),
  host: 0.1,
  fitError: 0,
};

/** The most rounds that are launched together. */
const GROUP = 4;
/** Tokens stored by each sequence when the world begins, and by which rounds are priced all the time. */
const STORED = 500;

/** The setup of a policy for the world, except for its random source. */
export const WORLD_SETUP: { readonly buckets: readonly number[] } = { buckets: BUCKETS };

export function playWorld<State>(policy: Policy<State>, world: World): Played[] {
  const { rounds, batch, asked, costsTold = true, told = (ms) => ms } = world;
  const played: Played[] = [];
  const lag: number[] = Array(Math.max(...BUCKETS)).fill(0);
  const recent: { depth: number | undefined; accepted: readonly number[] }[] = lag.map(() => (
    { depth: undefined, accepted: [] }
  ));
  let state = policy.start;
  let together = 1;
  while (played.length < rounds) {
    const batchSize = batch(played.length);
    const context = contextOf(batchSize, {
      asked: Array(batchSize).fill(asked),
      sequences: recent.slice(0, batchSize).map(({ depth, accepted }, id) => (
        { id, position: STORED, depth, accepted, lag: lag[id] ?? 0 }
      )),
      costs: costsTold ? WORLD_COSTS : undefined,
      roundsPerSync: together,
    });
    const choice = limited(policy.pick(state, context), asked);
    together = groupSize(policy.holds(state, context), world, played.length);
    const depths = choice.depths ?? Array<number>(batchSize).fill(choice.tier.depth);
    for (let i = 0; i < together; i++) {
      const round = played.length;
      const accepted = depths.map((depth, id) => drawAccepted(world, { round, id, depth }));
      const tokens = accepted.reduce((sum, count) => sum + count + 1, 0);
      const missed = lag.slice(0, batchSize).reduce((sum, count) => sum + count, 0);
      const catchUp = choice.tier.depth > 0 ? catchUpMs(WORLD_COSTS, missed) : 0;
      const ms = timesOf(choice, { world, round, batchSize, together, catchUp });
      for (const [id, count] of accepted.entries()) {
        lag[id] = choice.tier.depth > 0 ? 0 : (lag[id] ?? 0) + count + 1;
        const before = recent[id]?.accepted ?? [];
        recent[id] = { depth: depths[id], accepted: [...before, count].slice(-8) };
      }
      played.push({ depth: choice.tier.depth, tokens, ms: ms.round + catchUp });
      const outcome = outcomeOf({
        batchSize,
        numSteps: choice.tier.depth,
        accepted,
        ms: told(ms, round),
      });
      const sequences = outcome.sequences.map((sequence, id) => (
        { ...sequence, asked, depth: depths[id] ?? 0, position: STORED }
      ));
      state = policy.learn(state, { ...outcome, sequences }).state;
    }
  }
  return played;
}

/** The choice with at most the steps that all requests ask for, as the engine limits it. */
function limited({ tier, depths }: Decision, asked = Infinity): Decision {
  return {
    tier: chain(Math.min(tier.depth, asked)),
    ...depths && { depths: depths.map((depth) => Math.min(depth, asked)) },
  };
}

/** Tokens a millisecond of rounds from `from` on, up to `to`. */
export function throughput(
  played: readonly Played[],
  from = 0,
  to: number = played.length,
): number {
  const part = played.slice(from, to);
  const sum = (of: (round: Played) => number) => part.reduce((sum, round) => sum + of(round), 0);
  return sum(({ tokens }) => tokens) / sum(({ ms }) => ms);
}

/** Rounds in a group. A group has one batch size and does not pass the last round. */
function groupSize(holds: number, { batch, rounds }: World, first: number): number {
  let count = 1;
  while (
    count < Math.min(holds, GROUP, rounds - first) && batch(first + count) === batch(first)
  ) count++;
  return count;
}

/** Drafts accepted before the first rejection, from one uniform number for each sequence and round. */
function drawAccepted(
  { alpha, seed = 1 }: World,
  { round, id, depth }: { readonly round: number; readonly id: number; readonly depth: number },
): number {
  const uniform = (hash32(seed, round, id) + 0.5) / 2 ** 32;
  return Math.min(depth, Math.floor(Math.log(uniform) / Math.log(alpha(round))));
}

function timesOf(
  { tier, depths }: Decision,
  { world: { seed = 1 }, round, batchSize, together, catchUp }: {
    readonly world: World;
    readonly round: number;
    readonly batchSize: number;
    readonly together: number;
    readonly catchUp: number;
  },
): RoundTimes {
  const exact = roundMs(WORLD_COSTS, {
    batch: batchSize,
    steps: tier.depth,
    cells: batchSize * STORED,
    ...depths && { drafts: depths.reduce((sum, depth) => sum + depth, 0) },
    roundsPerSync: together,
  });
  // Within 5 %.
  const noise = 0.95 + 0.1 * hash32(seed, round, 1 << 20) / 2 ** 32;
  const ms = exact * noise;
  return { round: ms, catchUp };
}
