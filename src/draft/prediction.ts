import { NO_GUESS, type TextGuesser } from "./guess.ts";

/** Tokens that may match. */
const MAX = 12;
/** Bonus, in matched tokens, if the output has followed the prediction since the last guess. */
const FOLLOWED = 3;

/**
 * Guesses that an output continues like its prediction: finds the output's last tokens in the prediction and
 * repeats what follows there. The longest match is taken; of equal ones the first after the end of the last
 * match, or else the latest. A changed, missing or added passage costs only the rounds until the next match.
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
      // Advances over the tokens that follow the prediction; those that differ may replace any number of its tokens.
      const other = added.findIndex((id, i) => id !== prediction[reached + i]);
      reached += other < 0 ? added.length : other;
      const output = ids.slice(Math.max(promptTokens, ids.length - MAX));
      const { length, end } = nearestMatch(prediction, output, reached);
      if (length === 0) return NO_GUESS;
      const followed = other < 0 && end === reached;
      reached = end;
      const worth = length + (followed ? FOLLOWED : 0);
      const tokens = prediction.slice(end, end + most);
      // A match worth n tokens counts as n right predictions out of n + 1.
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
  // A place before `to` is farther than any after it: the output has probably passed it already.
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
