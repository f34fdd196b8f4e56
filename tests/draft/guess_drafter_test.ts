import assert from "node:assert/strict";
import { hostDrafter } from "../../src/draft/algorithms.ts";
import { type Guess, type Guesser } from "../../src/draft/guess.ts";
import { guessDrafter } from "../../src/draft/guess_drafter.ts";
import { trackRecord } from "../../src/draft/track_record.ts";

const ROOM = { count: 11, depth: 11, device: 0 };

/** A guesser that returns the result of `guess`. */
function saying(guess: (ids: readonly number[]) => Guess): Guesser {
  return { open: () => ({ guess }) };
}

function claim(tokens: readonly number[], chance: number): Guess {
  return { tokens, chances: tokens.map(() => chance) };
}

const drafter = (...guessers: readonly Guesser[]) => guessDrafter("test", guessers, { depth: 11 });

Deno.test("the guess that promises most is proposed, as far as it is probable", () => {
  const [one, long] = [saying(() => claim([1], 0.9)), saying(() => claim([2, 3, 4, 5, 6], 0.5))];
  const { tokens, parents } = drafter(one, long).open([]).propose([7], ROOM);
  // 0.9 is more than 1/2 + 1/4 + 1/8, so the first guess wins. The fourth token is reached in 1 of 16 cases.
  assert.deepEqual([tokens, parents], [[1], [0]]);
  const three = saying(() => claim([2, 3, 4, 5, 6], 0.6));
  const found = drafter(one, three).open([]).propose([7], ROOM);
  assert.deepEqual([found.tokens, found.parents], [[2, 3, 4, 5], [0, 1, 2, 3]]);
});

Deno.test("the device drafts where it promises more, by what was accepted of it", () => {
  const guesser = saying(() => claim([1, 2, 3], 0.9));
  const text = drafter(guesser).open([]);
  const proposes = () => text.propose([7], { ...ROOM, device: 3 }).tokens.length;
  // The guess promises 0.9 + 0.81 + 0.73 tokens, the device 0.7 + 0.49 + 0.34.
  assert.equal(proposes(), 3);
  for (let i = 0; i < 8; i++) text.learn?.({ drafted: 3, accepted: 3 });
  assert.equal(proposes(), 0);
  for (let i = 0; i < 20; i++) text.learn?.({ drafted: 3, accepted: 0 });
  assert.equal(proposes(), 3);
});

Deno.test("claims are corrected by the new text: a source that is wrong is no longer used", () => {
  const wrong = saying(() => claim([5], 0.9));
  const right = saying((ids) => claim([ids.length + 1], 0.6));
  const text = drafter(wrong, right).open([]);
  const ids = [1];
  const proposed: number[] = [];
  for (let round = 0; round < 12; round++) {
    const { tokens } = text.propose(ids, ROOM);
    proposed.push(tokens[0] === 5 ? 0 : 1);
    ids.push(ids.length + 1);
  }
  assert.equal(proposed[0], 0);
  assert.deepEqual(proposed.slice(4), Array(8).fill(1));
});

Deno.test("what other requests showed is where the next one begins", () => {
  const shared = drafter(saying(() => claim([5], 0.9)));
  const first = shared.open([]);
  const ids = [1];
  for (let round = 0; round < 60; round++) {
    first.propose(ids, ROOM);
    ids.push(6);
  }
  assert.equal(first.propose(ids, ROOM).tokens.length, 0);
  assert.equal(shared.open([]).propose([1], ROOM).tokens.length, 0);
});

Deno.test("a record of a request begins with that of all, and both learn", () => {
  const record = trackRecord();
  assert.equal(record.rate(3, 0.5), 0.5);
  record.learn(3, true);
  assert.equal(record.rate(3, 0.5), (1 + 3 * 0.5) / 4);
  const own = trackRecord(record);
  assert.equal(own.rate(3, 0.5), record.rate(3, 0.5));
  own.learn(3, false);
  assert.ok(own.rate(3, 0.5) < record.rate(3, 0.5) && record.rate(3, 0.5) < 0.6);
});

Deno.test("shapes hold every proposal, and the last is as deep as was asked for", () => {
  const depths = hostDrafter("NGRAM").shapes.map(({ depth }) => depth);
  assert.deepEqual(depths, [1, 3, 7, 11]);
  assert.deepEqual(hostDrafter("SUFFIX", { depth: 3 }).shapes.map(({ rows }) => rows), [2, 4]);
});

Deno.test("NGRAM, SUFFIX and HYBRID repeat a text that repeats", () => {
  const page = Array.from({ length: 40 }, (_, i) => 100 + i);
  for (const name of ["NGRAM", "SUFFIX", "HYBRID"] as const) {
    const text = hostDrafter(name).open(page);
    const { tokens } = text.propose([...page, ...page.slice(0, 4)], ROOM);
    assert.deepEqual(tokens, page.slice(4, 15), name);
    const two = text.propose([...page, ...page.slice(0, 5)], { ...ROOM, depth: 2 });
    assert.deepEqual(two.tokens, page.slice(5, 7), name);
  }
});
