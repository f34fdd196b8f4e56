import assert from "node:assert/strict";
import { acceptChain } from "../reference/acceptance.ts";

Deno.test("acceptance: drafts count up to the first that is not the target's choice", () => {
  assert.deepEqual(acceptChain([], [7]), { accepted: 0, ids: [7] });
  assert.deepEqual(acceptChain([1, 2, 3], [1, 2, 3, 4]), { accepted: 3, ids: [1, 2, 3, 4] });
  assert.deepEqual(acceptChain([1, 2, 3], [1, 9, 3, 4]), { accepted: 1, ids: [1, 9] });
  assert.deepEqual(acceptChain([1, 2, 3], [0, 2, 3, 4]), { accepted: 0, ids: [0] });
});

Deno.test("acceptance: there must be one choice more than drafts", () => {
  assert.throws(() => acceptChain([1, 2], [1, 2]), /Cannot accept "2 drafts"/);
});

// Exactness: every outcome of the noise is counted, so there is no sampling error.
// The noise of a position is one of NOISE equally likely values, and a model turns it into a token by
// a table that depends on the whole context. Each probability is then a multiple of 1 / NOISE, and the
// output has the target's law if each sequence comes out exactly weight * weight * ... times.

const TOKENS = [0, 1, 2] as const;
const NOISE = 6;
const LENGTH = 4;

type Context = readonly number[];
/** The token for a context and the noise of its position. */
type Model = (context: Context, noise: number) => number;
/** The next draft. It may use the noise (coupled drafting) and choices that were rejected earlier. */
type DraftRule = (context: Context, noise: number, seen: readonly number[]) => number;
type Accept = typeof acceptChain;

/** A hash of a context, different for every model: a test fixture, not a random source. */
function scramble(key: number, context: Context): number {
  const mixed = [key, context.length, ...context].reduce(
    (hash, value) => Math.imul(hash ^ (value + 0x9e37), 0x85ebca6b) ^ (hash >>> 13),
    0x1234567,
  );
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

/** The probability of each token after `context`, in units of 1 / NOISE. Some are zero; they sum to NOISE. */
function weights(key: number, context: Context): [number, number, number] {
  const first = scramble(key, context) % (NOISE + 1);
  const second = scramble(key + 1, context) % (NOISE - first + 1);
  return [first, second, NOISE - first - second];
}

function tableModel(key: number): Model {
  return (context, noise) => {
    const [first, second] = weights(key, context);
    // Each context orders the noise differently, because only equality of choices may matter, not their order.
    const rank = (noise * 5 + scramble(key + 2, context)) % NOISE;
    return rank < first ? 0 : rank < first + second ? 1 : 2;
  };
}

/** The first LENGTH tokens, decoded in rounds of at most `steps` drafts with this noise. */
function decode(
  target: Model,
  draft: DraftRule,
  steps: number,
  noise: readonly number[],
  accept: Accept,
): readonly number[] {
  const at = (position: number) => noise[position] ?? 0;
  let ids: readonly number[] = [];
  let seen: readonly number[] = [];
  while (ids.length < LENGTH) {
    const drafts: number[] = [];
    for (let step = 0; step < steps; step++) {
      const context = [...ids, ...drafts];
      drafts.push(draft(context, at(context.length), seen));
    }
    const choices = Array.from({ length: steps + 1 }, (_, row) => {
      const context = [...ids, ...drafts.slice(0, row)];
      return target(context, at(context.length));
    });
    ids = [...ids, ...accept(drafts, choices).ids];
    seen = choices;
  }
  return ids.slice(0, LENGTH);
}

const OUTCOMES: readonly (readonly number[])[] = Array.from(
  { length: NOISE ** LENGTH },
  (_, index) =>
    Array.from({ length: LENGTH }, (_, place) => Math.floor(index / NOISE ** place) % NOISE),
);

/** How many outcomes of the noise give each sequence. */
function outputLaw(
  target: Model,
  draft: DraftRule,
  steps: number,
  accept: Accept,
): Map<string, bigint> {
  const counts = new Map<string, bigint>();
  for (const noise of OUTCOMES) {
    const ids = decode(target, draft, steps, noise, accept).join();
    counts.set(ids, (counts.get(ids) ?? 0n) + 1n);
  }
  return counts;
}

/** The target's law of sequences, in units of NOISE^-LENGTH: the product of its weights. */
function productLaw(key: number): Map<string, bigint> {
  const law = new Map<string, bigint>();
  const walk = (context: Context, product: bigint) => {
    if (product === 0n) return;
    if (context.length === LENGTH) law.set(context.join(), product);
    else {for (const token of TOKENS) {
        walk([...context, token], product * BigInt(weights(key, context)[token]));
      }}
  };
  walk([], 1n);
  return law;
}

const sorted = (law: Map<string, bigint>) => [...law].sort();

const DRAFT_RULES: Readonly<Record<string, (key: number) => DraftRule>> = {
  "always one token": () => () => 1,
  "the most probable of another model": (key) => (context) => {
    const law = weights(key + 50, context);
    return law.indexOf(Math.max(...law));
  },
  "another model with the same noise": (key) => tableModel(key + 60),
  "the target itself": (key) => tableModel(key),
  "never what the target takes": (key) => {
    const target = tableModel(key);
    return (context, noise) => (target(context, noise) + 1) % 3;
  },
  "what was chosen after rejected drafts": () => (context, _, seen) =>
    seen[context.length % 3] ?? 0,
};

for (const [name, rule] of Object.entries(DRAFT_RULES)) {
  Deno.test(`acceptance: exactly the target's law when drafts are ${name}`, () => {
    for (let key = 100; key < 500; key += 100) {
      const law = sorted(productLaw(key));
      for (let steps = 0; steps <= LENGTH; steps++) {
        const output = outputLaw(tableModel(key), rule(key), steps, acceptChain);
        assert.deepEqual(sorted(output), law, `model ${key}, ${steps} steps`);
      }
    }
  });
}

Deno.test("acceptance: the enumeration sees a rule that is not exact", () => {
  // Accepts a draft when either its own row or the next one agrees.
  const generous: Accept = (drafts, choices) => {
    const rejected = drafts.findIndex((id, step) =>
      id !== choices[step] && id !== choices[step + 1]
    );
    const accepted = rejected < 0 ? drafts.length : rejected;
    return { accepted, ids: [...drafts.slice(0, accepted), choices[accepted] ?? 0] };
  };
  const output = outputLaw(tableModel(100), () => 1, 2, generous);
  assert.notDeepEqual(sorted(output), sorted(productLaw(100)));
});
