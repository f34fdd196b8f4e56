/** Drafts that were accepted and not, weighted by age: the counts of a Beta distribution. */
export interface Counts {
  readonly hits: number;
  readonly misses: number;
}

export const NO_COUNTS: Counts = { hits: 0, misses: 0 };

/** A chain that was verified. */
export interface TestedChain {
  /** Drafts verified. */
  readonly depth: number;
  /** Drafts accepted. */
  readonly accepted: number;
}

/**
 * What the verification of a chain says: draft j is tested only if all before it were accepted. So
 * `accepted` drafts are hits, the one after them is a miss, and later ones say nothing. A chain that
 * is accepted whole has no miss: it says "at least this deep" (it is censored).
 *
 * The maximum-likelihood estimate of a constant chance is then hits / (hits + misses), while accepted /
 * drafted tends to (alpha + ... + alpha^K) / K. Undefined for invalid counts.
 */
export function tested({ depth, accepted }: TestedChain): Counts | undefined {
  if (!Number.isInteger(depth) || !Number.isInteger(accepted) || accepted < 0) return undefined;
  const hits = Math.min(accepted, depth);
  return depth > 0 ? { hits, misses: hits < depth ? 1 : 0 } : undefined;
}

/** Multiplies the counts by `keep`, 0 to 1. */
export function faded({ hits, misses }: Counts, keep: number): Counts {
  return { hits: hits * keep, misses: misses * keep };
}

export function added(a: Counts, b: Counts): Counts {
  return { hits: a.hits + b.hits, misses: a.misses + b.misses };
}

/** The mean of Beta(weight prior + hits, weight (1 - prior) + misses). */
export function rateOf({ hits, misses }: Counts, prior: number, weight: number): number {
  const all = hits + misses + weight;
  return all > 0 ? (hits + prior * weight) / all : prior;
}
