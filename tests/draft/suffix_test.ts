import assert from "node:assert/strict";
import { openCorpus } from "../../src/draft/corpus.ts";
import { MIN_REACHED } from "../../src/draft/guess.ts";
import { suffixGuesser } from "../../src/draft/suffix.ts";

function guess(prompt: readonly number[], output: readonly number[] = [], most = 8) {
  return suffixGuesser().open(prompt).guess([...prompt, ...output], most);
}

Deno.test("what followed most often, not what followed last", () => {
  const { tokens } = guess([1, 2, 1, 2, 1, 3, 1], [], 1);
  assert.deepEqual(tokens, [2]);
});

Deno.test("a token that followed c of n times has the chance c / (n + 1 / l)", () => {
  assert.deepEqual(guess([1, 2, 1, 2, 1, 3, 1], [], 1).chances, [2 / 4]);
  assert.deepEqual(guess([8, 9, 4, 5, 8, 9, 4], [], 1).chances, [1 / (1 + 1 / 3)]);
});

Deno.test("it stops where what it guesses is improbable, and at the most tokens", () => {
  const spread = [0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8, 0, 9, 0, 1, 0, 10, 0];
  assert.ok(1 / 11 < MIN_REACHED);
  assert.deepEqual(guess(spread).tokens, []);
  const period = [1, 2, 3, 1, 2, 3, 1, 2, 3, 1];
  assert.deepEqual(guess(period, [], 7).tokens, [2, 3, 1, 2, 3, 1, 2]);
});

Deno.test("the state of a request grows with its text", () => {
  const text = suffixGuesser().open([5, 6, 7]);
  assert.deepEqual(text.guess([5, 6, 7], 4).tokens, []);
  assert.deepEqual(text.guess([5, 6, 7, 9, 5, 6], 2).tokens, [7, 9]);
  assert.deepEqual(text.guess([5, 6, 7, 9, 5, 6, 8, 8, 9, 5, 6, 8, 8, 9], 2).tokens, [5, 6]);
});

Deno.test("answers of others are known once they have ended, also to a request that runs", () => {
  const guesser = suffixGuesser();
  const running = guesser.open([1, 30]);
  assert.deepEqual(running.guess([1, 30], 4).tokens, []);
  const other = guesser.open([2, 3]);
  other.close?.([2, 3, 30, 31, 32, 33, 34]);
  for (let i = 0; i < 4; i++) guesser.meanwhile?.();
  assert.deepEqual(running.guess([1, 30, 31], 3).tokens, [32, 33, 34]);
  // Nothing of the prompt is remembered.
  assert.deepEqual(guesser.open([2]).guess([2], 3).tokens, []);
});

Deno.test("a prompt that was not taken in meanwhile is taken in when it is asked for", () => {
  const prompt = Array.from({ length: 2000 }, (_, i) => i % 700);
  for (const before of [0, 1, 9]) {
    const guesser = suffixGuesser();
    const text = guesser.open(prompt);
    for (let i = 0; i < before; i++) guesser.meanwhile?.();
    assert.deepEqual(text.guess(prompt, 2).tokens, [600, 601]);
  }
});

Deno.test("a corpus keeps to its tokens and forgets the oldest", () => {
  const corpus = openCorpus(4000, 16);
  let most = 0;
  for (let n = 0; n < 200; n++) {
    const automaton = corpus.begin(100);
    for (let i = 0; i < 100; i++) automaton.push(n * 100 + i);
    const bytes = corpus.automata.reduce((sum, each) => sum + each.bytes, 0);
    const tokens = corpus.automata.reduce((sum, each) => sum + each.tokens, 0);
    assert.ok(corpus.automata.length <= 2 && tokens <= 4000);
    most = Math.max(most, bytes);
  }
  assert.ok(most <= 4000 * 160, `${most}`);
  const knows = (token: number) => corpus.automata.some((each) => each.next(0, token) >= 0);
  assert.ok(knows(199 * 100) && knows(185 * 100) && !knows(0) && !knows(150 * 100));
});

Deno.test("texts of any number and length leave the memory bounded", () => {
  const corpus = openCorpus(2000, 8);
  const guesser = suffixGuesser(corpus);
  for (let n = 0; n < 60; n++) {
    const output = Array.from({ length: n * 40 }, (_, i) => (i * n) % 500);
    guesser.open([1]).close?.([1, ...output]);
    for (let i = 0; i < 8; i++) guesser.meanwhile?.();
    const tokens = corpus.automata.reduce((sum, each) => sum + each.tokens, 0);
    assert.ok(tokens <= 2000 && corpus.automata.length <= 2);
  }
});

Deno.test("short answers that end together are taken in together", () => {
  const guesser = suffixGuesser();
  const answer = (n: number) => Array.from({ length: 40 }, (_, i) => 1000 * n + i);
  for (let group = 0; group < 50; group++) {
    for (let i = 0; i < 4; i++) guesser.open([1]).close?.(answer(4 * group + i));
    guesser.meanwhile?.();
  }
  const last = guesser.open([1, ...answer(198).slice(0, 5)]);
  assert.deepEqual(last.guess([1, ...answer(198).slice(0, 5)], 2).tokens, [198_005, 198_006]);
});
