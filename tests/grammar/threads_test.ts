// Grammars in separate threads give the same constraints as in this thread, and none waits for another.
import assert from "node:assert/strict";
import { UsageError } from "../../src/errors.ts";
import type { Constraint } from "../../src/grammar/constraint.ts";
import type { Grammar } from "../../src/grammar/rules/grammar.ts";
import { openGrammarThreads } from "../../src/grammar/thread/grammar_threads.ts";
import { NO_PROPOSAL } from "../../src/speculate/trees.ts";
import { GRAMMARS } from "./accepts.ts";
import { simulate } from "./simulated.ts";
import { fledglingBytes, fledglingVocabulary, VOCAB_SIZE } from "./vocabulary.ts";

const regex = (pattern: string): Grammar => ({ kind: "regex", pattern });
const AS_EVER = { ignoreEos: false };
const WORDS = VOCAB_SIZE / 32;

/** A grammar that takes seconds to compile, also with a small vocabulary. */
const LARGE: Grammar = {
  kind: "json schema",
  schema: {
    type: "object",
    properties: Object.fromEntries(Array.from({ length: 1900 }, (_, i) => [`property_${i}`, {}])),
  },
};

/** Each rule is each other's beginning: hours to compile. */
const CYCLIC: Grammar = {
  kind: "ebnf",
  text: Array.from({ length: 12 }, (_, i) => {
    const pairs = Array.from({ length: 12 }, (_, j) => `r${j} r${(i + j) % 12}`);
    return `${i === 0 ? "root" : `r${i}`} ::= ${pairs.join(" | ")} | [a-z ]`;
  }).join("\n").replaceAll(/\br0\b/g, "root"),
};

function openThreads(options?: Parameters<typeof openGrammarThreads>[1]) {
  const grammars = openGrammarThreads(fledglingVocabulary(), options);
  return { grammars, [Symbol.dispose]: () => grammars.close() };
}

/** Takes the first token that the mask allows, repeatedly. */
function walked(constraint: Constraint, count: number): number[] {
  return Array.from({ length: count }, () => {
    const word = constraint.mask.findIndex((bits) => bits !== 0);
    const bits = constraint.mask[word] as number;
    const token = 32 * word + 31 - Math.clz32(bits & -bits);
    constraint.take(token);
    return token;
  });
}

Deno.test("constraints of another thread are the same, whoever drafts", async () => {
  using threads = openThreads();
  const tokens = fledglingBytes();
  const schema = {
    type: "object",
    properties: { name: { type: "string", maxLength: 20 }, n: { type: "integer" } },
    required: ["name"],
  };
  for (const grammar of [regex("(ab|[c-é]){2,5}x*"), { kind: "json schema", schema } as const]) {
    for (const drafting of ["none", "forced", "chains", "trees"] as const) {
      const of = { seed: 3, drafting };
      assert.deepEqual(
        await simulate(threads.grammars, grammar, tokens, of),
        await simulate(GRAMMARS, grammar, tokens, of),
      );
    }
  }
});

Deno.test("errors are the request's own, and others go on in the same thread", async () => {
  using threads = openThreads({ threads: 1 });
  const constraint = await threads.grammars.open(regex("a{9}"), AS_EVER);
  const another = await threads.grammars.open(regex("a{9}"), AS_EVER);
  const before = constraint.mask;
  assert.throws(() => another.take(5), {
    name: "UsageError",
    message: "Cannot constrain the output: the grammar does not allow token 5",
  });
  another.close();
  const masks = new Uint32Array(WORDS);
  constraint.fill(NO_PROPOSAL, masks);
  assert.deepEqual(masks, before);
  constraint.close();
  await assert.rejects(threads.grammars.open(regex("a("), AS_EVER), {
    name: "UsageError",
    message: 'Cannot constrain the output: regular expression "a(": Unterminated group',
  });
  const grammar: Grammar = { kind: "json schema", schema: { $ref: "#/%zz" } };
  await assert.rejects(threads.grammars.open(grammar, AS_EVER), UsageError);
  (await threads.grammars.open(regex("a"), AS_EVER)).close();
});

Deno.test("a grammar that takes too long is refused; those that run go on, the same is refused at once", async () => {
  using threads = openThreads({ compileMs: 1000 });
  const running = await threads.grammars.open(regex("[ab]{9}"), AS_EVER);
  const late = threads.grammars.open(LARGE, AS_EVER);
  const same = threads.grammars.open(LARGE, AS_EVER);
  walked(running, 2);
  const expected = { name: "UsageError", message: /takes more than 1 s to compile/ };
  await assert.rejects(late, expected);
  await assert.rejects(same, expected);
  await assert.rejects(threads.grammars.open(LARGE, AS_EVER), expected);
  walked(running, 2);
  running.close();
});

Deno.test("a compilation that takes too long ends, and its thread compiles the next grammar", async () => {
  using threads = openThreads({ compileMs: 3000, threads: 1 });
  await assert.rejects(threads.grammars.open(CYCLIC, AS_EVER), {
    name: "UsageError",
    message: /takes more than 3 s to compile/,
  });
  const next = await threads.grammars.open(regex("[ab]{9}"), AS_EVER);
  walked(next, 2);
  next.close();
});

Deno.test("who leaves while a grammar is compiled is not kept", async () => {
  using threads = openThreads();
  const leaving = new AbortController();
  const { signal } = leaving;
  const left = threads.grammars.open(LARGE, { ...AS_EVER, signal });
  const other = await threads.grammars.open(regex("ab"), AS_EVER);
  leaving.abort(new Error("left"));
  await assert.rejects(left, /left/);
  other.close();
});

Deno.test("the same text at once is compiled once, another waits for a thread", async () => {
  using threads = openThreads({ threads: 1 });
  const { grammars } = threads;
  const twice = await Promise.all([1, 2].map(() => grammars.open(regex("ab"), AS_EVER)));
  let opened = false;
  const other = grammars.open(regex("cd"), AS_EVER).then((constraint) => {
    opened = true;
    return constraint;
  });
  assert.deepEqual(twice.map((constraint) => walked(constraint, 1)).flat().length, 2);
  assert.equal(opened, false);
  for (const constraint of twice) constraint.close();
  (await other).close();
});

Deno.test("what may follow is found while another grammar's constraint goes on", async () => {
  using threads = openThreads();
  const { bytes } = fledglingBytes();
  const letters = bytes.findIndex((text) => /^[a-z]{6,}$/.test(new TextDecoder().decode(text)));
  // The longer the text, the more ways there are to read it.
  const text = "root ::= root root | root root root | [a-z ]";
  const slow = await threads.grammars.open({ kind: "ebnf", text }, AS_EVER);
  const other = await threads.grammars.open(regex("[ab]{1000}"), AS_EVER);
  let late = 0;
  for (let count = 0; !slow.slow; count++) {
    assert.ok(count < 1000, "its masks are not slow any more: the test needs another grammar");
    const found = slow.advance?.([letters]);
    if (found) {
      late++;
      assert.ok(slow.busy && !other.busy);
      walked(other, 100);
      await found;
      assert.ok(!slow.busy);
    }
    slow.take(letters);
  }
  assert.ok(late > 1 && !other.slow && !slow.complete);
  // The thread of a slow grammar answers nothing while it opens another constraint.
  const opening = threads.grammars.open({ kind: "ebnf", text }, AS_EVER);
  for (let turn = 0; turn < 20; turn++) await null;
  assert.ok(slow.busy);
  const again = await opening;
  await slow.busy;
  assert.ok(!slow.busy);
  again.close();
  slow.close();
  other.close();
});

Deno.test("closed: what is open fails, and nothing can be opened", async () => {
  const { grammars } = openThreads();
  const constraint = await grammars.open(regex("ab"), AS_EVER);
  grammars.close();
  assert.deepEqual(constraint.forced(3), NO_PROPOSAL);
  assert.throws(() => constraint.take(5), UsageError);
  constraint.close();
  await assert.rejects(grammars.open(regex("ab"), AS_EVER), UsageError);
});
