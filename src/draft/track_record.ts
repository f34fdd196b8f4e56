/** How often predictions were right, by kind of prediction. */
export interface TrackRecord {
  /** Probability that a prediction of this kind is right; `prior` where there were none. */
  rate(kind: number, prior: number): number;
  learn(kind: number, right: boolean): void;
}

/** The weight of a prior, in predictions. */
const PRIOR = 3;
/** Each prediction multiplies the weight of earlier ones of its kind by this. */
const KEPT = 0.97;

/**
 * Moving averages by kind; kinds are integers from 0. The record of one request begins with the averages of
 * `all` requests and also updates them.
 */
export function trackRecord(all?: TrackRecord): TrackRecord {
  const right: number[] = [];
  const count: number[] = [];
  return {
    rate(kind, prior) {
      const before = all?.rate(kind, prior) ?? prior;
      return ((right[kind] ?? 0) + PRIOR * before) / ((count[kind] ?? 0) + PRIOR);
    },
    learn(kind, was) {
      right[kind] = KEPT * (right[kind] ?? 0) + Number(was);
      count[kind] = KEPT * (count[kind] ?? 0) + 1;
      all?.learn(kind, was);
    },
  };
}

const KINDS = 16;

/** The kind of a claimed probability: an interval that contains it; intervals are finer towards 1. */
export function kindOfClaim(chance: number): number {
  return Math.min(KINDS - 1, Math.floor(-2 * Math.log2(Math.max(1 - chance, 1e-9))));
}
