import type { VerifyBudget } from "../../src/speculate/policy.ts";

const EPSILON = 1e-6;
const MOST_ODDS = 30;

/** What a sequence brings. */
export interface Drafted {
  /** The draft's confidence at each position, [depth]. */
  readonly confidences: readonly number[];
  /** Drafts that may be verified. */
  readonly most: number;
}

/** Chances that each draft is reached and accepted, [depth]; -1 where it is left out. */
export function survivals(
  { confidences, most }: Drafted,
  { slope, intercepts, leastConfidence }: VerifyBudget,
): number[] {
  let survival = 1;
  let ended = false;
  return confidences.map((confidence, k) => {
    ended ||= k >= most || confidence < leastConfidence;
    if (ended) return -1;
    const c = Math.min(1 - EPSILON, Math.max(EPSILON, confidence));
    const odds = slope * Math.log(c / (1 - c)) + (intercepts[k] ?? NaN);
    survival *= 1 / (1 + Math.exp(-Math.min(MOST_ODDS, Math.max(-MOST_ODDS, odds))));
    return survival;
  });
}

/** Drafts verified of each sequence: kernels/round/allocate.wgsl in float64. */
export function allocated(sequences: readonly Drafted[], budget: VerifyBudget): number[] {
  const all = sequences.flatMap((each, sequence) =>
    survivals(each, budget).map((survival, position) => ({ survival, sequence, position }))
  );
  const chosen = all.filter(({ survival }) => survival >= 0)
    .toSorted((a, b) =>
      b.survival - a.survival || a.sequence - b.sequence || a.position - b.position
    )
    .slice(0, budget.drafts);
  return sequences.map((_, at) => chosen.filter(({ sequence }) => sequence === at).length);
}
