/** What a round costs, in units of one plain decoding step. */
export interface RoundCosts {
  /** c: one drafted token. */
  readonly draft: number;
  /** v: the verification of all drafts. */
  readonly verify: number;
}

/** The equation at one number of draft steps. */
export interface BreakEvenRow {
  /** K: drafted tokens a round. */
  readonly steps: number;
  /** n: tokens that a round gains, the bonus included. */
  readonly tokens: number;
  /** K c + v */
  readonly cost: number;
  /** S = n / (K c + v), over plain decoding. */
  readonly speedup: number;
  /** The alpha at which S = 1; null where S < 1 for every alpha. */
  readonly minAlpha: number | null;
}

/** What `breakEven` returns. `alpha`: probability that a draft is accepted after those before it. */
export interface BreakEven {
  /** n = (1 - alpha^(K+1)) / (1 - alpha); K + 1 at alpha 1. */
  tokens(alpha: number, steps: number): number;
  /** n of endless drafts: 1 / (1 - alpha). */
  limit(alpha: number): number;
  row(alpha: number, steps: number, costs: RoundCosts): BreakEvenRow;
  /** The fastest row, the first of equal ones; undefined where none is faster than plain decoding. */
  best(rows: readonly BreakEvenRow[]): BreakEvenRow | undefined;
  /** The fewest and the most steps with S > 1, the most Infinity where there is no end. */
  paying(alpha: number, costs: RoundCosts): readonly [first: number, last: number] | undefined;
  /** The draft cost c at which S = 1; below 0 where even free drafts do not pay. */
  maxDraftCost(alpha: number, steps: number, verify: number): number;
}

/**
 * The break-even of speculative decoding with chains (Leviathan et al. 2023, theorem 3.8): drafts
 * are accepted one after the other, each with probability alpha, independent of those before.
 *
 * A closed function, which uses no name from outside: the page of `eyrie breakeven` has its source.
 */
export function breakEven(): BreakEven {
  // More steps than this count as endless.
  const MAX_STEPS = 2 ** 40;

  // expm1 and log1p keep the digits that 1 - alpha^(K+1) loses near alpha 1.
  const tokens = (alpha: number, steps: number): number =>
    alpha === 1 ? steps + 1 : Math.expm1((steps + 1) * Math.log1p(alpha - 1)) / (alpha - 1);

  /** The last whole number from `first` to MAX_STEPS for which `holds`; beyond it `holds` must stay false. */
  function last(first: number, holds: (steps: number) => boolean): number {
    let [low, high] = [first - 1, MAX_STEPS];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (holds(middle)) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** Halves the interval until no number is between its ends: n rises with alpha. */
  function minAlpha(steps: number, cost: number): number | null {
    if (cost > steps + 1) return null;
    let [low, high] = [0, 1];
    for (let middle = 0.5; low < middle && middle < high; middle = (low + high) / 2) {
      if (tokens(middle, steps) < cost) low = middle;
      else high = middle;
    }
    return tokens(low, steps) < cost ? high : low;
  }

  return {
    tokens,
    limit: (alpha) => 1 / (1 - alpha),
    row(alpha, steps, { draft, verify }) {
      const [gained, cost] = [tokens(alpha, steps), steps * draft + verify];
      const speedup = gained / cost;
      return { steps, tokens: gained, cost, speedup, minAlpha: minAlpha(steps, cost) };
    },
    best: (rows) =>
      rows.filter(({ speedup }) => speedup > 1).toSorted((a, b) => b.speedup - a.speedup)[0],
    paying(alpha, { draft, verify }) {
      const pays = (steps: number) => tokens(alpha, steps) > steps * draft + verify;
      // The K-th draft adds alpha^K - c to n - (K c + v): it rises to a peak and falls after it.
      const peak = Math.max(1, last(1, (steps) => alpha ** steps > draft));
      if (!pays(peak)) return undefined;
      const most = last(peak, pays);
      const first = last(1, (steps) => steps < peak && !pays(steps)) + 1;
      return [first, most === MAX_STEPS ? Infinity : most];
    },
    maxDraftCost: (alpha, steps, verify) => (tokens(alpha, steps) - verify) / steps,
  };
}

/**
 * The maximum-likelihood alpha of measured rounds: accepted drafts over tested ones. A draft is tested if all
 * drafts before it were accepted. With p_k the share of rounds that accepted position k (and all before),
 * alpha = (p_1 + ... + p_K) / (1 + p_1 + ... + p_(K-1)). 0 for an empty list.
 */
export function fitAlpha(acceptedByPosition: readonly number[]): number {
  let [accepted, tested, reached] = [0, 0, 1];
  for (const share of acceptedByPosition) {
    accepted += share;
    tested += reached;
    reached = share;
  }
  return tested === 0 ? 0 : accepted / tested;
}
