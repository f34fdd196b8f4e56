import type { Policy } from "../../../../src/speculate/policy.ts";
import { fixed } from "../../../../src/speculate/policies/static.ts";
import { chain } from "../../../../src/speculate/round_shape.ts";
import { type Run, runWorld, type SmallWorld } from "../../small_world.ts";
import { costsOf } from "./costs.ts";

/** A world in which everything is steady, except the given fields. */
export function steady(given: Partial<SmallWorld> = {}): SmallWorld {
  const costs = given.costs ?? costsOf({ row: 0.01 });
  return {
    seed: 1,
    costs,
    told: costs,
    lasts: 1500,
    batch: () => 4,
    alpha: () => 0.8,
    requestSpread: 0.5,
    tokenSpread: 0.5,
    length: 200,
    ranks: false,
    confidenceNoise: 0.5,
    noise: 0.05,
    together: 4,
    ...given,
  };
}

/** Tokens a millisecond. */
export function speed({ tokens, ms }: Run): number {
  return tokens / ms;
}

/** A policy's mean tokens a millisecond over seeds, as a fraction of that of the best static depth. */
export function partOfBest(world: SmallWorld, make: () => Policy, seeds = 3): number {
  const mean = (policy: () => Policy) => {
    const runs = Array.from({ length: seeds }, (_, i) => ({ ...world, seed: i + 1 }));
    return runs.reduce((sum, each) => sum + speed(runWorld(each, policy())), 0) / seeds;
  };
  const best = Math.max(...[0, 1, 2, 3, 5, 7].map((depth) => mean(() => fixed(chain(depth)))));
  return mean(make) / best;
}

/** The fraction of rounds after `from` milliseconds that draft. */
export function drafting(world: SmallWorld, policy: Policy, from: number): number {
  let [all, drafts, ms] = [0, 0, 0];
  const watched: Policy = {
    ...policy,
    learn(state, outcome) {
      ms += outcome.ms.round + outcome.ms.catchUp;
      if (ms > from) {
        all++;
        if (outcome.tier.depth > 0) drafts++;
      }
      return policy.learn(state, outcome);
    },
  };
  runWorld(world, watched);
  return drafts / all;
}
