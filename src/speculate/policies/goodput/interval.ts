/**
 * Two copies of what a policy knows: `live` is updated after each round, `known` only at decisions. Choices
 * are made from `known`, so they hold in between and several rounds may be launched at once.
 */
export interface DecisionInterval<Known> {
  readonly live: Known;
  readonly known: Known;
  /** Rounds until the next decision, the next one included. */
  readonly left: number;
}

/** Starts an interval. @param left rounds for which choices are made from `known`. */
export function decided<Known>(known: Known, left: number = MAX_ROUNDS): DecisionInterval<Known> {
  return { live: known, known, left };
}

/** Adds a round that took `ms`; after the last round of an interval `known` becomes `live`. */
export function aged<Known>(
  { known, left }: DecisionInterval<Known>,
  live: Known,
  ms: number,
): DecisionInterval<Known> {
  return left > 1 ? { live, known, left: left - 1 } : decided(live, intervalOf(ms));
}

/** Rounds between decisions if rounds are short: so many may be launched at once. */
export const MAX_ROUNDS = 8;
const FEW_ROUNDS = 4;
/** A round of this many milliseconds makes the host's work for a group of a few rounds negligible. */
const LONG_MS = 5;

/** Rounds between two decisions if a round takes `ms`. */
export function intervalOf(ms: number): number {
  return ms >= LONG_MS ? FEW_ROUNDS : MAX_ROUNDS;
}
