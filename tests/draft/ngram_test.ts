import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { ngramGuess } from "../../src/draft/ngram.ts";

const guess = (ids: readonly number[], min = 1, max = 12, most = 6) =>
  ngramGuess(ids, { min, max, most });

Deno.test("the longest match first, of equal ones the latest", () => {
  assert.deepEqual(guess([1, 2, 3, 9, 2, 3, 8, 1, 2, 3]).tokens, [9, 2, 3, 8, 1, 2]);
  assert.deepEqual(guess([1, 2, 3, 9, 2, 3, 8, 7, 2, 3], 1, 2, 3).tokens, [8, 7, 2]);
  assert.deepEqual(guess([1, 2, 3, 9, 2, 3, 8, 1, 2, 3], 1, 2, 2).tokens, [8, 1]);
});

Deno.test("fewer tokens than min that match are no match", () => {
  assert.deepEqual(guess([5, 1, 6, 1]).tokens.slice(0, 2), [6, 1]);
  assert.deepEqual(guess([5, 1, 6, 1], 2).tokens, []);
  assert.deepEqual(guess([5]).tokens, []);
  assert.deepEqual(guess([1, 2, 3]).tokens, []);
});

Deno.test("a period goes on", () => {
  assert.deepEqual(guess([7, 1, 2, 1, 2]).tokens, [1, 2, 1, 2, 1, 2]);
  assert.deepEqual(guess([4, 4]).tokens, Array(6).fill(4));
});

Deno.test("a longer match claims more, and the more the longer it goes on", () => {
  const [short, long] = [guess([1, 9, 1]), guess([5, 6, 1, 9, 5, 6, 1])];
  assert.deepEqual(short.chances.slice(0, 2), [1 - 1 / 2, 1 - 1 / 3]);
  assert.deepEqual(long.chances.slice(0, 2), [1 - 1 / 4, 1 - 1 / 5]);
});

Deno.test("what is guessed is what a search of all places finds", () => {
  const texts = fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 40 });
  fc.assert(
    fc.property(texts, fc.integer({ min: 1, max: 6 }), (ids, max) => {
      let [length, end] = [0, 0];
      for (let at = 1; at < ids.length; at++) {
        let same = 0;
        while (same < max && same < at && ids[at - 1 - same] === ids[ids.length - 1 - same]) same++;
        if (same >= length) [length, end] = [same, at];
      }
      const [first] = guess(ids, 1, max).tokens;
      assert.equal(first, length > 0 ? ids[end] : undefined);
    }),
    { numRuns: 500 },
  );
});
