import { type Guess, type Guesser, NO_GUESS } from "./guess.ts";

/** Tokens that must and may match. */
export interface NgramRange {
  readonly min: number;
  readonly max: number;
}

/** SGLang's match window. */
export const NGRAM_RANGE: NgramRange = { min: 1, max: 12 };

/**
 * Prompt lookup (Saxena 2023): finds an earlier occurrence of the last tokens in prompt and output, the longest
 * match and the latest of equal ones, and repeats what followed it. A periodic text is continued
 * periodically.
 */
export function ngramGuess(
  ids: readonly number[],
  { min, max, most }: NgramRange & { readonly most: number },
): Guess {
  const { length, end } = longestMatch(ids, max);
  if (length < min) return NO_GUESS;
  const period = ids.length - end;
  const tokens: number[] = [];
  const chances: number[] = [];
  while (tokens.length < most) {
    tokens.push((tokens.length < period ? ids[end + tokens.length] : tokens.at(-period)) as number);
    // A match of n tokens counts as n right predictions out of n + 1.
    chances.push(1 - 1 / (length + tokens.length));
  }
  return { tokens, chances };
}

/** Returns how many of the text's last tokens, at most `max`, occur earlier, and the end of their latest occurrence. */
function longestMatch(ids: readonly number[], max: number): { length: number; end: number } {
  const last = ids.length - 1;
  let [length, end] = [0, 0];
  for (let at = last - 1; at >= length && length < max; at--) {
    if (ids[at] !== ids[last] || ids[at - length] !== ids[last - length]) continue;
    let same = 1;
    while (same < max && same <= at && ids[at - same] === ids[last - same]) same++;
    if (same > length) [length, end] = [same, at + 1];
  }
  return { length, end };
}

export function ngramGuesser(range: NgramRange): Guesser {
  return { open: () => ({ guess: (ids, most) => ngramGuess(ids, { ...range, most }) }) };
}
