import { type Counts, faded, NO_COUNTS, rateOf, tested, type TestedChain } from "./counts.ts";

/**
 * How often draft j is accepted where all before it were, over all requests: counts by position,
 * [most drafts].
 */
export type PositionCounts = readonly Counts[];

/** How fast earlier counts lose weight. */
interface Fading {
  /** Each chain multiplies the weight of earlier chains by this. */
  readonly fade: number;
  /** The least weight that one round leaves, however many its chains. */
  readonly minKept: number;
}

const FADING: Fading = { fade: 0.98, minKept: 0.85 };
/** The chance of the first draft where nothing is known, and the weight of that in drafts. */
const PRIOR = { rate: 0.7, weight: 2 };
/** The weight, in drafts, of the previous position's rate in the rate of a position. */
const NEIGHBOUR = 4;

export function noPositions(depth: number): PositionCounts {
  return Array.from({ length: depth }, () => NO_COUNTS);
}

/** Adds the chains of one round. Positions that no chain reached are forgotten with the others. */
export function countPositions(
  counts: PositionCounts,
  chains: readonly TestedChain[],
  { fade, minKept }: Fading = FADING,
): PositionCounts {
  const hits: number[] = counts.map(() => 0);
  const misses: number[] = counts.map(() => 0);
  let observed = 0;
  for (const chain of chains) {
    const found = tested(chain);
    if (found === undefined) continue;
    observed++;
    const deepest = Math.min(found.hits, counts.length);
    for (let k = 0; k < deepest; k++) hits[k] = (hits[k] ?? 0) + 1;
    if (found.misses > 0 && found.hits < counts.length) {
      misses[found.hits] = (misses[found.hits] ?? 0) + 1;
    }
  }
  if (observed === 0) return counts;
  const keep = Math.max(fade ** observed, minKept);
  return counts.map((old, k) => ({
    hits: old.hits * keep + (hits[k] ?? 0),
    misses: old.misses * keep + (misses[k] ?? 0),
  }));
}

export function fadedPositions(counts: PositionCounts, keep: number): PositionCounts {
  return counts.map((each) => faded(each, keep));
}

/**
 * The chance of each position, conditional on all before it:
 *
 *     c_k = (hits_k + w c_(k-1)) / (hits_k + misses_k + w),    c_(-1) the prior
 *
 * Positions that were never verified get the rate of the deepest one that was.
 */
export function positionRates(counts: PositionCounts): number[] {
  let before = PRIOR.rate;
  return counts.map((each, k) => before = rateOf(each, before, k === 0 ? PRIOR.weight : NEIGHBOUR));
}

/** Over all positions. */
export function meanRate(counts: PositionCounts): number {
  const sum = counts.reduce(
    (sum, { hits, misses }) => ({ hits: sum.hits + hits, misses: sum.misses + misses }),
    NO_COUNTS,
  );
  return rateOf(sum, PRIOR.rate, PRIOR.weight);
}
