import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { hostDrafter, predictionDrafter } from "../../src/draft/algorithms.ts";
import type { RequestDrafter } from "../../src/draft/host_drafter.ts";
import { predictedText } from "../../src/draft/prediction.ts";
import { NO_PROPOSAL } from "../../src/speculate/trees.ts";

const PROMPT = [1, 2, 3];
const ROOM = { count: 11, depth: 11, device: 0 };

/** `count` consecutive tokens from `first` on. */
function run(first: number, count: number): number[] {
  return Array.from({ length: count }, (_, i) => first + i);
}

/** The guesses after each of the consecutive parts of one request's output. */
function guesses(prediction: readonly number[], ...parts: readonly (readonly number[])[]) {
  const text = predictedText(prediction, PROMPT.length);
  return parts.map((_, i) => {
    const { tokens, chances } = text.guess([...PROMPT, ...parts.slice(0, i + 1).flat()], 4);
    assert.equal(tokens.length, chances.length);
    return tokens;
  });
}

Deno.test("an output that is as predicted is guessed on from its first token to the end", () => {
  const text = run(100, 12);
  assert.deepEqual(
    guesses(text, text.slice(0, 1), text.slice(1, 6), text.slice(6, 10), text.slice(10)),
    [text.slice(1, 5), text.slice(6, 10), text.slice(10), []],
  );
});

Deno.test("it is found again behind what was changed, put in or left out", () => {
  const text = run(100, 20);
  const at = (i: number) => text.slice(i, i + 4);
  // Token 5 is replaced, two tokens are inserted after token 7, and tokens 12 to 14 are missing.
  const changed = guesses(text, text.slice(0, 5), [7], [106, 107], [8, 9], [108, 109], [115]);
  assert.deepEqual(changed, [at(5), [], at(8), [], at(10), at(16)]);
});

Deno.test("the longest match is followed, of equal ones the first from where the text has got", () => {
  const text = [10, 5, 11, 12, 5, 13, 14, 5, 15];
  assert.deepEqual(guesses(text, [12, 5])[0], [13, 14, 5, 15]);
  assert.deepEqual(guesses(text, [10, 5, 11], [9], [5])[2], [13, 14, 5, 15]);
  assert.deepEqual(guesses(text, [14], [9], [5])[2], [15]);
  assert.deepEqual(guesses(text, [5])[0], [11, 12, 5, 13]);
  // If the text is already past the last match, the latest earlier match is followed.
  assert.deepEqual(guesses(text, [15], [9], [10])[2], [5, 11, 12, 5]);
});

Deno.test("a match claims more where the output has followed the prediction than where it is found again", () => {
  const text = run(100, 12);
  const guesser = predictedText(text, 0);
  const first = (ids: readonly number[]) => guesser.guess(ids, 3).chances[0];
  assert.equal(first([100]), 1 - 1 / 5);
  assert.equal(first([100, 101]), 1 - 1 / 6);
  assert.equal(first([100, 101, 7, 104]), 1 - 1 / 2);
  assert.equal(first([100, 101, 7, 104, 105]), 1 - 1 / 6);
});

Deno.test("the prompt is no part of what is looked up", () => {
  assert.deepEqual(guesses([3, 50, 51], [9]), [[]]);
  assert.deepEqual(guesses([], [9]), [[]]);
});

Deno.test("the longest match is the longest that there is, at any place", () => {
  const ids = fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 1, maxLength: 30 });
  fc.assert(fc.property(ids, ids, (prediction, output) => {
    const { tokens } = predictedText(prediction, 0).guess(output, 3);
    const ends = (length: number) =>
      prediction.map((_, i) => i + 1).filter((end) =>
        end >= length && length <= Math.min(output.length, 12) &&
        output.slice(output.length - length).every((id, i) => id === prediction[end - length + i])
      );
    const longest = Math.max(0, ...run(1, 12).filter((length) => ends(length).length > 0));
    const follow = ends(longest).map((end) => prediction.slice(end, end + 3).join());
    assert.ok(longest === 0 ? tokens.length === 0 : follow.includes(tokens.join()));
  }));
});

/** Plays an output to its end. Counts the proposed tokens, the accepted ones and the rounds. */
function played(drafter: RequestDrafter, output: readonly number[], device = 0) {
  const ids = [...PROMPT, output[0] as number];
  let [drafted, accepted, rounds] = [0, 0, 0];
  while (ids.length < PROMPT.length + output.length) {
    const rest = output.slice(ids.length - PROMPT.length);
    const { tokens, predicted } = drafter.propose(ids, { ...ROOM, device });
    assert.equal(predicted ?? false, tokens.length > 0);
    const wrong = tokens.findIndex((id, i) => id !== rest[i]);
    const right = wrong < 0 ? tokens.length : wrong;
    [drafted, accepted, rounds] = [drafted + tokens.length, accepted + right, rounds + 1];
    ids.push(...rest.slice(0, right + 1));
  }
  return { drafted, accepted, rounds };
}

Deno.test("a prediction is drafted from, beside a device too, as long as it comes true", () => {
  const output = run(100, 60);
  const opened = (prediction: readonly number[]) => predictionDrafter().open(PROMPT, prediction);
  for (const device of [0, 3]) {
    const { accepted, rounds } = played(opened(output), output, device);
    assert.ok(accepted > 50 && rounds <= 7, `${accepted} in ${rounds}`);
  }
  assert.equal(played(opened(run(500, 60)), output).drafted, 0);
  // If every other token differs, the prediction is soon no longer trusted.
  const { drafted, rounds } = played(opened(output.map((id, i) => i % 2 ? id : -id)), output);
  assert.ok(drafted < 2 * rounds, `${drafted} in ${rounds}`);
});

Deno.test("without a prediction its drafter has nothing to do; others take one in beside their own", () => {
  assert.equal(predictionDrafter().predicts, "only");
  assert.deepEqual(predictionDrafter().open(PROMPT).propose([...PROMPT, 5], ROOM), NO_PROPOSAL);
  const output = run(100, 40);
  for (const name of ["NGRAM", "SUFFIX", "HYBRID"] as const) {
    const drafter = hostDrafter(name);
    assert.equal(drafter.predicts, true);
    const { accepted } = played(drafter.open(PROMPT, output), output);
    assert.ok(accepted > 30, name);
    const own = drafter.open(output);
    const { tokens, predicted } = own.propose([...output, 100, 101, 102], ROOM);
    assert.deepEqual([tokens[0], predicted], [103, undefined]);
  }
});
