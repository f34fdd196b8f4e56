/**
 * Drafts of the chains of one batch by their chance to be reached and accepted (their survival), the
 * most likely last: one number each.
 */
export interface RankedDrafts {
  readonly keys: Float64Array;
  readonly chains: number;
  readonly depth: number;
}

/** Survivals are told apart to one part in so many. */
const FINENESS = 2 ** 24;
/** More than any chain's depth. */
const POSITIONS = 32;

/**
 * @param survivals of draft j of chain i at [i * depth + j], falling with j.
 */
export function rankDrafts(survivals: Float64Array, depth: number): RankedDrafts {
  const chains = depth > 0 ? survivals.length / depth : 0;
  const places = chains * POSITIONS;
  const keys = new Float64Array(survivals.length);
  for (let at = 0, chain = 0; chain < chains; chain++) {
    for (let j = 0; j < depth; j++, at++) {
      const part = Math.floor((survivals[at] as number) * FINENESS);
      keys[at] = part * places + chain * POSITIONS + j;
    }
  }
  return { keys: keys.sort(), chains, depth };
}

/**
 * Chains that stand for those of batches to come, as so many batches of that size, each ranked by
 * itself: drafts are chosen within a round, so that one round's sure drafts are of no use to
 * another's. One batch where there are fewer chains.
 */
export function rankBatches(
  survivals: Float64Array,
  { depth, batch }: { readonly depth: number; readonly batch: number },
): RankedDrafts[] {
  const chains = depth > 0 ? survivals.length / depth : 0;
  if (chains <= batch) return [rankDrafts(survivals, depth)];
  return Array.from(
    { length: Math.floor(chains / batch) },
    (_, i) => rankDrafts(survivals.subarray(i * batch * depth, (i + 1) * batch * depth), depth),
  );
}

/**
 * Drafts expected to be accepted of the N most likely ones of the first `depth` levels, the mean of
 * the batches: [batch * depth + 1], by N. Where a batch has fewer chains, each stands for several.
 */
export function expectedAccepted(
  batches: readonly RankedDrafts[],
  { depth, batch }: { readonly depth: number; readonly batch: number },
): Float64Array {
  const curve = new Float64Array(batch * depth + 1);
  for (const { keys, chains, depth: deepest } of batches) {
    const places = chains * POSITIONS;
    const share = batch / chains;
    let drafts = 0;
    for (let at = keys.length - 1; at >= 0; at--) {
      const key = keys[at] as number;
      if (depth < deepest && key % POSITIONS >= depth) continue;
      const survival = Math.floor(key / places) / FINENESS;
      const end = Math.min(drafts + share, batch * depth);
      // The increments; a draft that stands for several has its part in each.
      while (end - drafts > 1e-9) {
        const slot = Math.floor(drafts + 1e-9);
        const part = Math.min(end, slot + 1) - drafts;
        curve[slot + 1] = (curve[slot + 1] as number) + survival * part;
        drafts += part;
      }
    }
  }
  for (let n = 1; n < curve.length; n++) {
    curve[n] = (curve[n] as number) / batches.length + (curve[n - 1] as number);
  }
  return curve;
}

/** What rounds of one depth cost. */
export interface BudgetPrices {
  /** Requests, each of which has a row and gets a token without a draft. */
  readonly batch: number;
  /** Draft levels: later drafts are not there. */
  readonly depth: number;
  /** Milliseconds of all but the verify forward. */
  readonly fixed: number;
  /** Milliseconds of the verify forward by rows, [batch * (depth + 1) + 1] at least. */
  readonly verify: readonly number[];
  /** Of a round that verifies every draft. */
  readonly whole: number;
}

/** How many drafts to verify, and what a round then comes to. */
export interface Budget {
  readonly drafts: number;
  /** Tokens of all requests. */
  readonly tokens: number;
  readonly ms: number;
}

/**
 * The drafts that give most tokens a millisecond:
 *
 *     argmax over N of (batch + accepted[N]) / (fixed + verify(batch + N))
 *
 * All drafts are verified where that is at most `near` worse, because such rounds need no rows of
 * their own.
 */
export function bestBudget(
  accepted: Float64Array,
  { batch, fixed, verify, whole }: BudgetPrices,
  near = 0.005,
): Budget {
  const all = accepted.length - 1;
  let drafts = all;
  let ms = whole;
  let rate = (batch + (accepted[all] as number)) / whole * (1 + near);
  for (let n = 0; n < all; n++) {
    const takes = fixed + (verify[batch + n] as number);
    const tokens = batch + (accepted[n] as number);
    if (tokens > rate * takes) {
      rate = tokens / takes;
      ms = takes;
      drafts = n;
    }
  }
  return { drafts, tokens: batch + (accepted[drafts] as number), ms };
}

/**
 * Drafts of each chain among the `drafts` most likely ones of the first `depth` levels, [chains].
 * Survival falls with the position, so that they are prefixes.
 */
export function shareOut(
  { keys, chains, depth: deepest }: RankedDrafts,
  { drafts, depth }: { readonly drafts: number; readonly depth: number },
): number[] {
  const places = chains * POSITIONS;
  const depths = Array<number>(chains).fill(0);
  let left = drafts;
  for (let at = keys.length - 1; at >= 0 && left > 0; at--) {
    const place = (keys[at] as number) % places;
    if (depth < deepest && place % POSITIONS >= depth) continue;
    const chain = Math.floor(place / POSITIONS);
    depths[chain] = (depths[chain] as number) + 1;
    left--;
  }
  return depths;
}
