import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { ROOT, SuffixAutomaton } from "../../src/draft/suffix_automaton.ts";

type Text = readonly number[];

function automatonOf(texts: readonly Text[], deepest: number): SuffixAutomaton {
  const automaton = new SuffixAutomaton(deepest);
  for (const text of texts) {
    automaton.begin();
    for (const token of text) automaton.push(token);
  }
  return automaton;
}

/** The state of a substring; undefined if the substring does not occur. */
function stateOf(automaton: SuffixAutomaton, part: Text): number | undefined {
  let state = ROOT;
  for (const token of part) {
    state = automaton.next(state, token);
    if (state < 0) return undefined;
  }
  return state;
}

/** All ends of a substring by exhaustive search: the text and the place after it. */
function ends(texts: readonly Text[], part: Text): [text: number, end: number][] {
  return texts.flatMap((text, t) =>
    Array.from({ length: text.length + 1 }, (_, end) => end)
      .filter((end) =>
        end >= part.length && part.every((id, i) => text[end - part.length + i] === id)
      )
      .map((end): [number, number] => [t, end])
  );
}

/** Texts of few different tokens, so that substrings repeat and overlap. */
const TEXTS = fc.oneof(
  fc.array(fc.array(fc.integer({ min: 0, max: 2 }), { maxLength: 24 }), {
    minLength: 1,
    maxLength: 3,
  }),
  // These texts need more states than there is room for at first.
  fc.array(fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 60, maxLength: 90 }), {
    minLength: 1,
    maxLength: 2,
  }),
);

function substrings(texts: readonly Text[], longest: number): Text[] {
  const found = new Map<string, Text>();
  for (const text of texts) {
    for (let from = 0; from < text.length; from++) {
      for (let to = from + 1; to <= Math.min(text.length, from + longest); to++) {
        const part = text.slice(from, to);
        found.set(part.join(), part);
      }
    }
  }
  return [...found.values()];
}

Deno.test("occurrences and what follows are those that a search of all texts finds", () => {
  fc.assert(
    fc.property(TEXTS, fc.integer({ min: 1, max: 8 }), (texts, deepest) => {
      const automaton = automatonOf(texts, deepest);
      for (const part of substrings(texts, deepest)) {
        const state = stateOf(automaton, part);
        assert.ok(state !== undefined);
        const places = ends(texts, part);
        assert.equal(automaton.occurrences(state), places.length, `${part} in ${texts.join(" ")}`);
        const followers = places.map(([t, end]) => texts[t]?.[end]).filter((id) =>
          id !== undefined
        );
        assert.equal(automaton.continued(state), followers.length);
        const best = automaton.follower(state);
        if (followers.length === 0) assert.equal(best, -1);
        const times = (id: number) => followers.filter((each) => each === id).length;
        assert.equal(times(best), Math.max(0, ...followers.map(times)));
      }
    }),
    { numRuns: 400 },
  );
});

Deno.test("every substring of any length is in it, and nothing else", () => {
  fc.assert(fc.property(TEXTS, fc.array(fc.integer({ min: 0, max: 3 })), (texts, other) => {
    const automaton = automatonOf(texts, 3);
    for (const part of substrings(texts, Infinity)) {
      assert.ok(stateOf(automaton, part) !== undefined);
    }
    const occurs = ends(texts, other).length > 0;
    assert.equal(stateOf(automaton, other) !== undefined, occurs || other.length === 0);
  }));
});

Deno.test("repeated: the longest suffix that occurred before, cut to the depth", () => {
  fc.assert(fc.property(TEXTS, fc.integer({ min: 1, max: 9 }), ([text = []], deepest) => {
    const automaton = new SuffixAutomaton(deepest);
    for (const [i, token] of text.entries()) {
      automaton.push(token);
      const now = text.slice(0, i + 1);
      let longest = 0;
      while (longest < i && ends([now], now.slice(i - longest)).length > 1) longest++;
      const length = Math.min(longest, deepest);
      assert.equal(automaton.repeated(), stateOf(automaton, now.slice(now.length - length)));
    }
  }));
});

Deno.test("of equal followers the one that came last", () => {
  const automaton = automatonOf([[5, 1, 5, 2, 5]], 4);
  assert.equal(automaton.follower(stateOf(automaton, [5]) as number), 2);
});

Deno.test("at most two states a token and 160 bytes, and a repeated token is no worse", () => {
  const random = Array.from({ length: 20_000 }, (_, i) => Math.imul(i + 1, 0x9e3779b1) >>> 19);
  const same = Array(20_000).fill(7);
  const period = same.map((_, i) => i % 50);
  for (const text of [random, same, period]) {
    const automaton = automatonOf([text], 24);
    assert.ok(automaton.states <= 2 * text.length);
    assert.ok(automaton.bytes <= 160 * text.length, `${automaton.bytes / text.length}`);
  }
});
