import assert from "node:assert/strict";
import { allowedSteps } from "../../src/speculate/asked_steps.ts";
import { policyRandom } from "../../src/speculate/noise.ts";
import { ADAPTATION, type Adaptation, type PolicyKind } from "../../src/speculate/policies/kind.ts";
import { fixed } from "../../src/speculate/policies/static.ts";
import type { Policy, PolicySetup, RoundTimes } from "../../src/speculate/policy.ts";
import { chain } from "../../src/speculate/round_shape.ts";
import { contextOf } from "./rounds.ts";
import { playWorld, throughput, type World, WORLD_SETUP } from "./world.ts";
import { EXHAUSTIVE, exhaustive } from "../exhaustive.ts";

/** A world, and the first round that counts. */
interface Trial {
  readonly world: World;
  readonly from: number;
}

const ROUNDS = 3000;

const STATIONARY: Readonly<Record<string, Trial>> = {
  "batch 1, acceptance 0.8": stationary(1, 0.8),
  "batch 4, acceptance 0.7": stationary(4, 0.7),
  "batch 16, acceptance 0.5": stationary(16, 0.5),
  "batch 96, acceptance 0.7": stationary(96, 0.7),
};

const DRIFT: Trial = {
  world: {
    rounds: 4500,
    batch: () => 8,
    alpha: (round) => round >= 1500 && round < 3000 ? 0.2 : 0.9,
  },
  from: 0,
};

const BURSTY: Trial = {
  world: {
    rounds: 4000,
    batch: (round) => Math.floor(round / 200) % 2 === 0 ? 2 : 96,
    alpha: () => 0.7,
  },
  from: 0,
};

/** A world in which no draft pays for the first 2000 rounds. */
const IMPROVED: Trial = {
  world: { rounds: 4000, batch: () => 4, alpha: (round) => round < 2000 ? 0.05 : 0.9 },
  from: 2500,
};

/** Worlds whose requests all ask for few steps, of which none pays, or the most. */
const ASKED: Readonly<Record<string, Trial>> = {
  "no draft pays": asking(stationary(16, 0.05), 2),
  "the most pay": asking(stationary(4, 0.9), 4),
};

/** A world whose costs are not told to the policy. */
const COLD: Trial = {
  world: { ...stationary(4, 0.7).world, rounds: 200, costsTold: false },
  from: 0,
};
const COLD_SHARE = 0.7;

/** A world with a clock that is wrong now and then. */
const ABSURD: Trial = {
  world: { ...stationary(4, 0.7).world, told: (ms, round) => round % 7 === 3 ? absurd(round) : ms },
  from: ROUNDS / 2,
};
/** Throughput that may be lost in ABSURD, because a policy learns nothing from its absurd rounds. */
const ABSURD_LOSS = 0.1;

/** A world in which one round is told to have been much too short, if `wrong`. */
function misled(wrong: boolean): World {
  const { world } = stationary(1, 0.1);
  if (!wrong) return { ...world, rounds: 2 * ROUNDS };
  const told = (ms: RoundTimes, round: number) =>
    round === 100 ? { ...ms, round: ms.round / 200 } : ms;
  return { ...world, rounds: 2 * ROUNDS, told };
}

const SEEDS = EXHAUSTIVE ? [1, 2, 3] : [1];

/**
 * Compares the throughput of an adapting policy kind, opened with its first example, with every fixed
 * depth of its tiers. Worlds and policies are seeded, so the figures are the same in every run.
 */
export function adaptationContract(
  name: string,
  { examples: [options], open, adapts }: PolicyKind<unknown>,
): void {
  let drawn = false;
  const make = (seed: number) => {
    const random: PolicySetup["random"] = (...of) => {
      drawn = true;
      return policyRandom(seed)(...of);
    };
    return open(options, { ...WORLD_SETUP, random });
  };
  /** A policy that has drawn nothing at random does the same with any seed, so one seed is enough. */
  const seeds = { make, more: () => drawn };

  Deno.test(`policy contract: ${name} begins with a depth it has, without costs and history`, () => {
    const policy = make(1);
    for (const batchSize of [1, 2, 3, 8, 33, 96, 128]) {
      const { tier, depths } = policy.pick(policy.start, contextOf(batchSize));
      assert(policy.tiers.some(({ depth }) => depth === tier.depth), `${tier.depth}`);
      assert(depths === undefined || depths.every((depth) => depth <= tier.depth));
    }
  });
  if (adapts === false) return;
  const least: Adaptation = { ...ADAPTATION, ...adapts };

  for (const [what, trial] of Object.entries(STATIONARY)) {
    const { test } = what.startsWith("batch 4,") ? Deno : exhaustive;
    test(`policy contract: ${name} converges at ${what}`, () => {
      atLeast(seeds, trial, least.stationary, "stationary");
    });
  }
  Deno.test(`policy contract: ${name} follows acceptance that falls and rises`, () => {
    atLeast(seeds, DRIFT, least.drift, "drift");
  });
  Deno.test(`policy contract: ${name} follows bursts of requests`, () => {
    atLeast(seeds, BURSTY, least.bursty, "bursty");
  });
  Deno.test(`policy contract: ${name} drafts again when drafts pay again`, () => {
    atLeast(seeds, IMPROVED, least.improved, "improved");
  });
  for (const [what, trial] of Object.entries(ASKED)) {
    Deno.test(`policy contract: ${name} learns where requests ask for few steps: ${what}`, () => {
      atLeast(seeds, trial, least.stationary, "stationary");
    });
  }
  Deno.test(`policy contract: ${name} does not begin badly where costs are unknown`, () => {
    atLeast(seeds, COLD, COLD_SHARE);
  });
  Deno.test(`policy contract: ${name} is not misled by one time that is much too short`, () => {
    const [usual = NaN, found = NaN] = [false, true]
      .map((wrong) => throughput(playWorld(make(1), misled(wrong)), ROUNDS));
    assert(found > 0.97 * usual, `${found} tokens a millisecond, without the time ${usual}`);
  });
  Deno.test(`policy contract: ${name} converges though some times are absurd`, () => {
    atLeast(seeds, ABSURD, least.stationary - ABSURD_LOSS, "stationary");
  });
}

/**
 * Asserts the least share of the best fixed depth's throughput, for several seeds of the policy.
 *
 * @param field of `Adaptation`, which a kind's `adapts` may set lower.
 */
function atLeast(
  { make, more }: { readonly make: (seed: number) => Policy; readonly more: () => boolean },
  { world, from }: Trial,
  least: number,
  field?: keyof Adaptation,
): void {
  const may = field === undefined ? "" : `; its kind's \`adapts\` may say why ${field} is less`;
  const fixedBest = Math.max(
    ...allowedSteps(make(1).tiers.map(({ depth }) => depth), [world.asked])
      .map((depth) => Math.min(depth, world.asked ?? Infinity))
      .map((depth) => throughput(playFixed(depth, world), from)),
  );
  for (const seed of SEEDS) {
    const played = playWorld(make(seed), world);
    const share = throughput(played, from) / fixedBest;
    const found = `seed ${seed}: ${share.toFixed(3)} of the best fixed depth, < ${least}`;
    assert(share >= least, found + may);
    if (!more()) return;
  }
}

const fixedPlays = new Map<World, ReturnType<typeof playWorld>[]>();

/** Plays each depth once per world, because all policies are compared with the same plays. */
function playFixed(depth: number, world: World): ReturnType<typeof playWorld> {
  const plays = fixedPlays.get(world) ?? [];
  fixedPlays.set(world, plays);
  return plays[depth] ??= playWorld(fixed(chain(depth)), { ...world, asked: undefined });
}

function stationary(batch: number, alpha: number): Trial {
  return { world: { rounds: ROUNDS, batch: () => batch, alpha: () => alpha }, from: ROUNDS / 2 };
}

/** All requests ask for at most so many steps. */
function asking({ world, from }: Trial, asked: number): Trial {
  return { world: { ...world, asked }, from };
}

function absurd(round: number): RoundTimes {
  const times = [NaN, Infinity, -Infinity, -1, 0, 1e308, 1e-300];
  const ms = times[Math.floor(round / 7) % times.length] ?? NaN;
  return { round: ms, catchUp: ms };
}
