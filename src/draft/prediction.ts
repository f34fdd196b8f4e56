import { NO_GUESS, type TextGuesser } from "./guess.ts";

/** Tokens that may match. */
const MOST = 12;
/** Matched tokens that it is worth that the output has come as predicted since the last guess. */
const FOLLOWED = 3;

/**
 * Guesses that an output continues as it was predicted to: finds its last tokens in the prediction, the
 * longest match first, of equal ones the first from where the last one ended, else the latest, and
 * repeats what follows there. So what was changed, left out or put in costs no more than the rounds
 * that find it.
 *
 * @param prediction token ids of the predicted output or of a part of it.
 * @param promptTokens ids before the output.
 */
export function predictedText(prediction: readonly number[], promptTokens: number): TextGuesser {
  /** How many tokens of the prediction the text has reached. */
  let reached = 0;
  let seen = promptTokens;
  return {
    guess(ids, most) {
      const added = ids.slice(seen);
      seen = ids.length;
      // As far as the text followed it: the tokens that differ may replace any number of its tokens.
      const other = added.findIndex((id, i) => id !== prediction[reached + i]);
      reached += other < 0 ? added.length : other;
      const output = ids.slice(Math.max(promptTokens, ids.length - MOST));
      const { length, end } = nearestMatch(prediction, output, reached);
      if (length === 0) return NO_GUESS;
      const followed = other < 0 && end === reached;
      reached = end;
      const worth = length + (followed ? FOLLOWED : 0);
      const tokens = prediction.slice(end, end + most);
      // n tokens that match say as much as n rounds that were right of n + 1.
      return { tokens, chances: tokens.map((_, i) => 1 - 1 / (worth + i + 1)) };
    },
  };
}

/** Returns how many of the last `ids` occur in `text`, and the end of their first occurrence from `to` on. */
function nearestMatch(
  text: readonly number[],
  ids: readonly number[],
  to: number,
): { readonly length: number; readonly end: number } {
  const last = ids.length - 1;
  // What lies behind is likely to have come already.
  const far = (at: number) => at >= to ? at - to : text.length + to - at;
  let [length, end] = [0, to];
  for (const [at, id] of text.entries()) {
    const before = Math.max(0, length - 1);
    if (id !== ids[last] || text[at - before] !== ids[last - before]) continue;
    let same = 1;
    while (same <= last && same <= at && text[at - same] === ids[last - same]) same++;
    const nearer = far(at + 1) < far(end);
    if (same > length || (same === length && nearer)) [length, end] = [same, at + 1];
  }
  return { length, end };
}
