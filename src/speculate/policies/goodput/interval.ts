/**
 * What a policy learns at once, and what it chooses by: the same as it was at the last decision, so
 * that choices hold in between and several rounds may be launched at once.
 */
export interface DecisionInterval<Known> {
  readonly live: Known;
  readonly known: Known;
  /** Rounds until the next decision, the next one included. */
  readonly left: number;
}

/** Begins with what is known. @param left rounds for which choices are by it. */
export function decided<Known>(known: Known, left: number = MOST_ROUNDS): DecisionInterval<Known> {
  return { live: known, known, left };
}

/** Adds a round that took so long; after the last of an interval what is known changes. */
export function aged<Known>(
  { known, left }: DecisionInterval<Known>,
  live: Known,
  ms: number,
): DecisionInterval<Known> {
  return left > 1 ? { live, known, left: left - 1 } : decided(live, intervalOf(ms));
}

/** Rounds between decisions: as many as may be launched at once where rounds are short. */
export const MOST_ROUNDS = 8;
const FEW_ROUNDS = 4;
/** A round of this many milliseconds makes the host's work for a group of a few rounds negligible. */
const LONG_MS = 5;

/** Rounds between two decisions where a round takes so long. */
export function intervalOf(ms: number): number {
  return ms >= LONG_MS ? FEW_ROUNDS : MOST_ROUNDS;
}
