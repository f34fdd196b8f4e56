/** How a text may go on. */
export interface Guess {
  /** Token ids. */
  readonly tokens: readonly number[];
  /** The probability that each token is right if those before it are, [tokens]. */
  readonly chances: readonly number[];
}

export const NO_GUESS: Guess = { tokens: [], chances: [] };

/** Guesses from the text alone. */
export interface Guesser {
  open(promptIds: readonly number[]): TextGuesser;
  readonly meanwhile?: () => void;
}

/** Guesses how one text continues. */
export interface TextGuesser {
  /** At most `most` tokens. The ids begin with those of the call before. */
  guess(ids: readonly number[], most: number): Guess;
  /** The text has ended with these ids. */
  readonly close?: (ids: readonly number[]) => void;
}

/** A guess goes no further than to tokens that are reached with this probability (SuffixDecoding's). */
export const LEAST_REACHED = 0.1;

/**
 * Tokens expected to be accepted: of each the probability that it and all before it are right, added
 * up as far as it is LEAST_REACHED; and how many tokens that is.
 */
export function expectedTokens(chances: Iterable<number>): { sum: number; count: number } {
  let [reached, sum, count] = [1, 0, 0];
  for (const chance of chances) {
    reached *= chance;
    if (reached < LEAST_REACHED) break;
    sum += reached;
    count++;
  }
  return { sum, count };
}
