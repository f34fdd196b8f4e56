import assert from "node:assert/strict";
import { openConstraint } from "../../src/grammar/constraint.ts";
import { GrammarError } from "../../src/grammar/rules/grammar.ts";
import { allows, type Matcher, tokensOf } from "../../src/grammar/matcher.ts";
import { chainOf } from "../reference/trees.ts";

const BYTES = ["", "", "a", "b", "ab", "c", "abc", "x", "bx", "ba"].map((text) =>
  new TextEncoder().encode(text)
);
const EOS = 1;
const [A, B, AB, C, ABC, X] = [2, 3, 4, 5, 6, 7];

/** A matcher that accepts the given texts, over the tokens of BYTES, and counts the calls to it. */
function matcherOf(texts: readonly string[]): Matcher & { masks: number; at: string[] } {
  const at: string[] = [];
  const fits = (begin: string) => texts.some((text) => text.startsWith(begin));
  const textOf = (token: number) => new TextDecoder().decode(BYTES[token]);
  const matcher = {
    masks: 0,
    at,
    accept(token: number) {
      const piece = textOf(token);
      if (piece === "" || !fits(at.join("") + piece)) return false;
      return at.push(piece) > 0;
    },
    rollback(count: number) {
      assert.ok(count <= at.length);
      at.length -= count;
    },
    mask() {
      matcher.masks++;
      const text = at.join("");
      const may = [...BYTES.keys()].filter((id) => textOf(id) !== "" && fits(text + textOf(id)));
      if (texts.includes(text)) may.push(EOS);
      return Uint32Array.of(may.reduce((bits, id) => bits | 1 << id, 0));
    },
    close() {},
  };
  return matcher;
}

function open(texts: readonly string[], ignoreEos = false) {
  const matcher = matcherOf(texts);
  const of = { bytes: BYTES, eosTokenIds: [EOS], ignoreEos };
  return { matcher, constraint: openConstraint(matcher, of) };
}

const ids = (mask: Uint32Array | undefined) => mask && tokensOf(mask, 99);

Deno.test("masks of a tree's rows: siblings, illegal ones and what is below them", () => {
  const { matcher, constraint } = open(["abc", "xa"]);
  // Below the root: ab, x, c (illegal); below ab: c, a (illegal); below x: a; below c: b.
  const tree = { tokens: [AB, X, C, C, A, A, B], parents: [0, 0, 0, 1, 1, 2, 3] };
  const masks = new Uint32Array(9);
  constraint.fill(tree, masks);
  const row = (at: number) => ids(masks.subarray(at, at + 1));
  assert.deepEqual([0, 1, 2, 4, 6].map(row), [[A, AB, ABC, X], [C], [A], [EOS], [EOS]]);
  // Rows that are not reached, or that do not exist.
  assert.deepEqual([3, 5, 7, 8].map((at) => masks[at]), Array(4).fill(0xffffffff));
  assert.deepEqual(matcher.at, []);
  assert.deepEqual(constraint.pruned(tree), { tokens: [AB, X, C, A], parents: [0, 0, 1, 2] });
});

Deno.test("each state's mask is made once, also when the output gets there", () => {
  const { matcher, constraint } = open(["abc"]);
  const chain = chainOf([A, B, C]);
  constraint.fill(chain, new Uint32Array(4));
  constraint.pruned(chain);
  for (const token of chain.tokens) constraint.take(token);
  assert.deepEqual([matcher.masks, matcher.at.join("")], [4, "abc"]);
});

Deno.test("forced: one text, in its longest tokens, up to a choice, the depth or the end", () => {
  assert.deepEqual(open(["abcx", "abca"]).constraint.forced(7), chainOf([ABC]));
  assert.deepEqual(open(["abcxx"]).constraint.forced(7), chainOf([ABC, X, X]));
  assert.deepEqual(open(["abcxx"]).constraint.forced(2), chainOf([ABC, X]));
  assert.deepEqual(open(["xab", "xc"]).constraint.forced(7), chainOf([X]));
  assert.deepEqual(open(["abcx", "x"]).constraint.forced(7), chainOf([]));
  const { constraint } = open(["a", "abc"]);
  constraint.take(A);
  assert.deepEqual(constraint.forced(7), chainOf([]));
});

Deno.test("forced: a token that all others go on from", () => {
  // b, ba and bx may follow, so b comes in any case.
  assert.deepEqual(open(["bac", "bx"]).constraint.forced(7), chainOf([B]));
});

Deno.test("complete: nothing but the end may come", () => {
  const { constraint } = open(["a", "abc"]);
  assert.equal(constraint.complete, false);
  constraint.take(A);
  assert.deepEqual([constraint.complete, ids(constraint.mask)], [false, [EOS, B]]);
  constraint.take(B);
  constraint.take(C);
  assert.deepEqual([constraint.complete, ids(constraint.mask)], [true, [EOS]]);
  constraint.take(EOS);
  assert.equal(constraint.complete, true);
});

Deno.test("without the end: it is allowed only where nothing else is", () => {
  const { constraint } = open(["a", "ab"], true);
  constraint.take(A);
  assert.deepEqual([constraint.complete, ids(constraint.mask)], [false, [B]]);
  constraint.take(B);
  assert.equal(constraint.complete, true);
});

Deno.test("a draft of the end is allowed where the output may end; nothing is below it", () => {
  const { constraint } = open(["a", "abc"]);
  const tree = { tokens: [A, EOS, X, B], parents: [0, 1, 2, 1] };
  assert.deepEqual(constraint.pruned(tree), { tokens: [A, EOS, B], parents: [0, 1, 1] });
  assert.deepEqual(constraint.pruned(chainOf([EOS])), chainOf([]));
});

Deno.test("a token that the grammar does not allow ends its own output", () => {
  const { constraint } = open(["a"]);
  assert.throws(() => constraint.take(X), {
    name: "UsageError",
    message: "Cannot constrain the output: the grammar does not allow token 7",
  });
});

const FAILURES = [
  new GrammarError("out of memory"),
  new TypeError("a bug"),
  new Error("of another"),
];
for (const thrown of FAILURES) {
  Deno.test(`the matcher throws a ${thrown.name}: that output ends with an error and no other`, () => {
    const { matcher, constraint } = open(["abc", "x"]);
    matcher.mask = () => {
      throw thrown;
    };
    const masks = new Uint32Array(3);
    constraint.fill(chainOf([A, B]), masks);
    assert.deepEqual([...masks.subarray(1)], Array(2).fill(0xffffffff));
    assert.deepEqual([constraint.pruned(chainOf([A])), constraint.forced(2)], [
      chainOf([]),
      chainOf([]),
    ]);
    const message = `Cannot constrain the output: ${thrown.message}`;
    assert.throws(() => constraint.take(A), { name: "UsageError", message });
  });
}

Deno.test("a draft at which the matcher fails does not end an output that goes another way", () => {
  const { matcher, constraint } = open(["abc", "xa"]);
  const { mask } = matcher;
  matcher.mask = () => {
    if (matcher.at.includes("x")) throw new GrammarError("too many");
    return mask();
  };
  const tree = { tokens: [X, A, B, A], parents: [0, 0, 2, 1] };
  const masks = new Uint32Array(5);
  constraint.fill(tree, masks);
  const row = (at: number) => ids(masks.subarray(at, at + 1));
  assert.deepEqual([0, 2, 3].map(row), [[A, AB, ABC, X], [B], [C]]);
  assert.deepEqual([masks[1], masks[4]], [0xffffffff, 0xffffffff]);
  assert.deepEqual(constraint.pruned(tree), chainOf([A, B]));
  constraint.take(A);
  constraint.take(B);
  assert.deepEqual(ids(constraint.mask), [C]);
});

Deno.test("bits of a mask", () => {
  const mask = Uint32Array.of(0x80000001, 0, 4);
  assert.deepEqual(tokensOf(mask, 3), [0, 31, 66]);
  assert.equal(tokensOf(mask, 2), undefined);
  assert.deepEqual([0, 1, 31, 66, 67].map((id) => allows(mask, id)), [
    true,
    false,
    true,
    true,
    false,
  ]);
});
