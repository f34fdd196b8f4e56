/** Policies that choose whatever is allowed: texts must not depend on it. */
import { hash32 } from "../../src/speculate/noise.ts";
import type { Decision, Policy } from "../../src/speculate/policy.ts";
import { chain, chains } from "../../src/speculate/round_shape.ts";

/** Uniform in 0 to `most`, by turn and purpose. */
function drawn(turn: number, purpose: number, most: number): number {
  return hash32(turn, purpose, 11) % (most + 1);
}

/** Chooses anew for every two rounds, and at times before the last ones are learned. */
function policyOf(
  depths: readonly number[],
  confident: boolean,
  pick: (turn: number, batchSize: number, ranks: boolean) => Decision,
): Policy<number> {
  return {
    tiers: chains(depths),
    start: 0,
    confident,
    packed: confident,
    pick: (round, { batchSize, ranks }) => pick(round >> 1, batchSize, ranks),
    holds: (round) => 2 - round % 2,
    mayLag: (round) => drawn(round >> 1, 4, 2) > 0,
    learn: (round) => ({ state: round + 1 }),
    report: () => ({ json: {}, rows: [] }),
  };
}

/** Another depth every turn for some time, then none: the draft must catch up, or may leave the GPU. */
export function restless(depth: number): Policy<number> {
  const depths = [...new Set([0, 1, depth])].toSorted((a, b) => a - b);
  return policyOf(depths, false, (turn) => ({
    tier: chain(turn % 6 < 2 ? depths[drawn(turn, 1, depths.length - 1)] as number : 0),
  }));
}

/** Verifies a drawn number of drafts of each sequence. */
export function cut(depth: number): Policy<number> {
  return policyOf([depth], true, (turn, batchSize) => ({
    tier: chain(depth),
    depths: Array.from({ length: batchSize }, (_, i) => drawn(turn, 100 + i, depth)),
  }));
}

/** Leaves it to the device which drafts are verified, by a drawn budget. */
export function budget(depth: number): Policy<number> {
  return policyOf([depth], true, (turn, batchSize, ranks) => ({
    tier: chain(depth),
    ...ranks && turn % 4 > 0
      ? {
        verify: {
          drafts: drawn(turn, 1, batchSize * depth),
          slope: 0.25 + drawn(turn, 2, 4) / 4,
          intercepts: Array.from({ length: depth }, (_, k) => drawn(turn, 10 + k, 4) / 4 - 0.5),
          minConfidence: drawn(turn, 3, 2) / 5,
        },
      }
      : {},
  }));
}
