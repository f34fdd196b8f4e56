/** How a text may go on. */
export interface Guess {
  /** Token ids. */
  readonly tokens: readonly number[];
  /** The probability that each token is right, given that all tokens before it are, [tokens]. */
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

/** A guess ends where the probability that it is right so far falls below this (SuffixDecoding's value). */
export const MIN_REACHED = 0.1;

/**
 * The expected number of accepted tokens: the sum over the tokens of the probability that a token and all before
 * it are right. It stops where that falls below MIN_REACHED; `count` is the number of tokens summed.
 */
export function expectedTokens(chances: Iterable<number>): { sum: number; count: number } {
  let [reached, sum, count] = [1, 0, 0];
  for (const chance of chances) {
    reached *= chance;
    if (reached < MIN_REACHED) break;
    sum += reached;
    count++;
  }
  return { sum, count };
}
