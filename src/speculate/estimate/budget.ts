/**
 * Drafts of the chains of one batch by their chance to be reached and accepted (their survival), the
 * most likely first.
 */
export interface RankedDrafts {
  /** chain << POSITION_BITS | position, [chains * depth]. */
  readonly order: Int32Array;
  /** Survival probabilities of the drafts, in this order. */
  readonly survivals: Float64Array;
  readonly chains: number;
  readonly depth: number;
}

/** Survivals that differ by less than one part in this many are ranked alike. */
const RANKS = 1024;
/** No chain is as deep as 2 to the power of this. */
const POSITION_BITS = 5;
const POSITION = (1 << POSITION_BITS) - 1;

/**
 * Sorts drafts by survival with a counting sort, in linear time. Among drafts of equal rank shallow ones come
 * first, so the first N drafts are always prefixes of their chains.
 *
 * @param survivals of draft j of chain i at [i * depth + j], falling with j.
 */
export function rankDrafts(survivals: Float64Array, depth: number): RankedDrafts {
  const chains = depth > 0 ? survivals.length / depth : 0;
  const ends = new Int32Array(RANKS + 1);
  const rank = (at: number) => RANKS - Math.floor((survivals[at] as number) * RANKS);
  for (let at = 0; at < survivals.length; at++) {
    const its = rank(at);
    ends[its] = (ends[its] as number) + 1;
  }
  let sum = 0;
  for (let r = 0; r <= RANKS; r++) ends[r] = sum += ends[r] as number;
  const order = new Int32Array(survivals.length);
  const sorted = new Float64Array(survivals.length);
  for (let j = depth - 1; j >= 0; j--) {
    for (let chain = chains - 1; chain >= 0; chain--) {
      const its = rank(chain * depth + j);
      const last = (ends[its] as number) - 1;
      ends[its] = last;
      order[last] = chain << POSITION_BITS | j;
      sorted[last] = survivals[chain * depth + j] as number;
    }
  }
  return { order, survivals: sorted, chains, depth };
}

/**
 * Splits the chains, a sample of future ones, into batches of `batch` chains and ranks each batch by itself:
 * drafts are chosen within a round, so sure drafts of one round do not help another. If there are fewer
 * chains than that, they form one batch.
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
 * For each N, the expected number of accepted drafts among the N most likely ones of the first `depth`
 * levels, averaged over the batches: [batch * depth + 1]. If a batch has fewer than `batch` chains, each chain
 * stands for several.
 */
export function expectedAccepted(
  batches: readonly RankedDrafts[],
  { depth, batch }: { readonly depth: number; readonly batch: number },
): Float64Array {
  const curve = new Float64Array(batch * depth + 1);
  for (const ranked of batches) {
    const share = batch / ranked.chains;
    if (Number.isInteger(share)) addWhole(curve, ranked, { depth, share });
    else addParts(curve, ranked, { depth, share });
  }
  const part = 1 / batches.length;
  let sum = 0;
  for (let n = 1; n < curve.length; n++) {
    sum += (curve[n] as number) * part;
    curve[n] = sum;
  }
  return curve;
}

/** Adds the survival of each draft to the next `share` places. */
function addWhole(
  curve: Float64Array,
  { order, survivals }: RankedDrafts,
  { depth, share }: { readonly depth: number; readonly share: number },
): void {
  let n = 0;
  for (let at = 0; at < order.length; at++) {
    if (((order[at] as number) & POSITION) >= depth) continue;
    const survival = survivals[at] as number;
    for (const end = n + share; n < end;) {
      n++;
      curve[n] = (curve[n] as number) + survival;
    }
  }
}

/** The same for a `share` that is not a whole number: a draft adds its fraction to each place. */
function addParts(
  curve: Float64Array,
  { order, survivals }: RankedDrafts,
  { depth, share }: { readonly depth: number; readonly share: number },
): void {
  let drafts = 0;
  for (let at = 0; at < order.length; at++) {
    if (((order[at] as number) & POSITION) >= depth) continue;
    const survival = survivals[at] as number;
    const end = Math.min(drafts + share, curve.length - 1);
    while (end - drafts > 1e-9) {
      const slot = Math.floor(drafts + 1e-9);
      const part = Math.min(end, slot + 1) - drafts;
      curve[slot + 1] = (curve[slot + 1] as number) + survival * part;
      drafts += part;
    }
  }
}

/** What rounds of one depth cost. */
export interface BudgetPrices {
  /** Requests, each of which has a row and gets a token without a draft. */
  readonly batch: number;
  /** Draft levels: later drafts are not there. */
  readonly depth: number;
  /** Fewest drafts that are to be verified. */
  readonly least: number;
  /** Milliseconds of all that does not depend on the rows. */
  readonly fixed: number;
  /** Milliseconds of the forwards over the verify rows, by rows, [batch * (depth + 1) + 1] at least. */
  readonly verify: readonly number[];
  /** Milliseconds that each row adds for the keys and values that it attends to. */
  readonly perRow: number;
  /** Milliseconds of a round that verifies every draft. */
  readonly whole: number;
}

/** How many drafts to verify, and what a round then comes to. */
export interface Budget {
  readonly drafts: number;
  /** Tokens of all requests. */
  readonly tokens: number;
  readonly ms: number;
  /** Tokens of all requests if every draft is verified. */
  readonly tokensOfAll: number;
}

/**
 * The drafts that give most tokens a millisecond:
 *
 *     argmax over N >= least of (batch + accepted[N]) / (fixed + verify(batch + N) + (batch + N) perRow)
 *
 * All drafts are verified if that is worse by at most `near`, because such a round does not have to be packed.
 */
export function bestBudget(
  accepted: Float64Array,
  { batch, least, fixed, verify, perRow, whole }: BudgetPrices,
  near = 0.005,
): Budget {
  const all = accepted.length - 1;
  let drafts = all;
  let ms = whole;
  let rate = (batch + (accepted[all] as number)) / whole * (1 + near);
  for (let n = least; n < all; n++) {
    const takes = fixed + (verify[batch + n] as number) + (batch + n) * perRow;
    const tokens = batch + (accepted[n] as number);
    if (tokens > rate * takes) {
      rate = tokens / takes;
      ms = takes;
      drafts = n;
    }
  }
  const tokens = (n: number) => batch + (accepted[n] as number);
  return { drafts, tokens: tokens(drafts), ms, tokensOfAll: tokens(all) };
}

/**
 * Drafts of each chain among the `drafts` most likely ones of the first `depth` levels, [chains].
 */
export function shareOut(
  { order, chains }: RankedDrafts,
  { drafts, depth }: { readonly drafts: number; readonly depth: number },
): number[] {
  const depths = Array<number>(chains).fill(0);
  let left = drafts;
  for (let at = 0; at < order.length && left > 0; at++) {
    const place = order[at] as number;
    if ((place & POSITION) >= depth) continue;
    const chain = place >> POSITION_BITS;
    depths[chain] = (depths[chain] as number) + 1;
    left--;
  }
  return depths;
}
