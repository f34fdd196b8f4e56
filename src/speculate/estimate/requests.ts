import { added, type Counts, faded, rateOf, tested, type TestedChain } from "./counts.ts";

/** What is known of one request. */
export interface RequestCounts extends Counts {
  readonly id: number;
  /** The round that it was last tested in. */
  readonly seen: number;
}

/** Requests by id, rising: plain data that is cheap to merge with a round's. */
export type Requests = readonly RequestCounts[];

/** A chain of a round, by request. */
export interface RequestChain extends TestedChain {
  readonly id: number;
}

/** Each tested draft multiplies the weight of earlier ones by this. */
const FADE = 0.98;
/**
 * Rounds after which a request that was not tested is forgotten. It has ended, or none of its drafts was
 * verified; in that case it is treated like any other request again and gets another chance.
 */
const FORGET = 64;
/** Weight, in drafts, of what all requests have in common. */
const COMMON = 8;

/** Adds the chains of round number `round`, and forgets those long gone. */
export function countRequests(
  requests: Requests,
  chains: readonly RequestChain[],
  round: number,
): Requests {
  const found = new Map<number, RequestCounts>();
  for (const each of requests) if (round - each.seen <= FORGET) found.set(each.id, each);
  for (const chain of chains) {
    const counts = tested(chain);
    if (counts === undefined) continue;
    const { id } = chain;
    const old = found.get(id);
    const keep = FADE ** (counts.hits + counts.misses);
    const { hits, misses } = old === undefined ? counts : added(faded(old, keep), counts);
    found.set(id, { id, hits, misses, seen: round });
  }
  return [...found.values()];
}

export function fadedRequests(requests: Requests, keep: number): Requests {
  return requests.map((each) => ({ ...each, ...faded(each, keep) }));
}

/**
 * The odds ratio of a request's drafts to those of all requests: odds(alpha_r) / odds(alpha), with alpha_r
 * shrunk towards alpha. 1 for a request about which nothing is known.
 */
export function oddsRatio(counts: Counts | undefined, alpha: number): number {
  if (counts === undefined || !(alpha > 0 && alpha < 1)) return 1;
  const own = Math.min(rateOf(counts, alpha, COMMON), 1 - 1e-9);
  return own / (1 - own) * (1 - alpha) / alpha;
}

/** The chance with these odds times `ratio`. */
export function shifted(rate: number, ratio: number): number {
  return rate >= 1 ? 1 : rate * ratio / (1 - rate + rate * ratio);
}
