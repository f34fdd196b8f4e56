// Requests with grammars: valid outputs, the same text whoever drafts, beside requests without.
import assert from "node:assert/strict";
import { type HostDrafter, pureDrafter } from "../../src/draft/host_drafter.ts";
import { statically } from "../../src/engine/drafting.ts";
import { type LocalEngine, type LocalOptions, openEngine } from "./open.ts";
import {
  type GenerateRequest,
  type GenerateResult,
  resultOf,
} from "../../src/engine/schedule/events.ts";
import type { RoundSample } from "../../src/engine/schedule/rounds/round_sample.ts";
import { UsageError } from "../../src/errors.ts";
import type { Grammar } from "../../src/grammar/rules/grammar.ts";
import { hash32 } from "../../src/speculate/noise.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { isValidJson } from "../grammar/cases.ts";
import { generatedPrompt } from "../prompts.ts";
import { assertNothingHeld } from "./held.ts";
import { drawn, exhaustive } from "../exhaustive.ts";

const SCHEMA = {
  type: "object",
  properties: {
    name: { type: "string", maxLength: 12 },
    kind: { enum: ["fox", "swan", "rabbit"] },
    years: { type: "integer", minimum: 1, maximum: 99 },
    tags: { type: "array", items: { type: "string", maxLength: 5 }, minItems: 1, maxItems: 2 },
  },
  required: ["name", "kind", "years"],
};
const REGEX = "The (fox|swan) had \\d{1,3} lanterns?( and [a-z]{2,9})*\\.";
const MOVES =
  'root ::= "moves: " move ("; " move){0,4} "."\nmove ::= [a-h] [1-8] ("-" | "x") [a-h] [1-8]';

const GRAMMARS: readonly (Grammar | undefined)[] = [
  { kind: "json schema", schema: SCHEMA },
  { kind: "regex", pattern: REGEX },
  undefined,
  { kind: "ebnf", text: MOVES },
];
const ALL = [0, 1, 2, 3];

function request(engine: LocalEngine, n: number): GenerateRequest {
  const grammar = GRAMMARS[n];
  const content = generatedPrompt(n);
  return {
    promptIds: engine.text.encodePrompt({ messages: [{ role: "user", content }] }),
    sampling: n % 2 === 1 ? { ...GREEDY, temperature: 0.9, seed: n, topK: 40 } : GREEDY,
    maxTokens: n === 2 ? 20 : 60,
    stop: [],
    ignoreEos: n === 2,
    ...grammar && { grammar },
  };
}

/** Plain decoding with masks: nothing is drafted, not even what a grammar forces. */
const plain = await (async () => {
  using engine = await openEngine({ model: { draft: "none" } });
  return await Array.fromAsync(
    ALL,
    (n) => resultOf(engine.submit({ ...request(engine, n), numSteps: 0 })),
  );
})();

async function open(
  options: LocalOptions,
): Promise<{ engine: LocalEngine; rounds: RoundSample[] }> {
  const rounds: RoundSample[] = [];
  const onRound = (round: RoundSample) => void rounds.push(round);
  const engine = await openEngine({
    ...options,
    limits: { maxBatch: 4, constrained: true, ...options.limits },
    hooks: { onRound, ...options.hooks },
  });
  return { engine, rounds };
}

/** All of them at once, and each batch size from `least`. */
async function assertSame(engine: LocalEngine, least = 4): Promise<readonly GenerateResult[]> {
  let results: readonly GenerateResult[] = [];
  for (let batch = least; batch <= 4; batch++) {
    const which = ALL.slice(0, batch);
    results = await Promise.all(which.map((n) => resultOf(engine.submit(request(engine, n)))));
    assert.deepEqual(
      results.map(({ outputIds, finishReason }) => [outputIds.join(), finishReason]),
      which.map((n) => [plain[n]?.outputIds.join(), plain[n]?.finishReason]),
    );
    assertNothingHeld(engine);
  }
  return results;
}

Deno.test("masked plain decoding: outputs are what their grammars say", () => {
  const [json, sentence, free, moves] = plain.map(({ text }) => text);
  assert.ok(isValidJson(SCHEMA, json ?? ""), json);
  assert.match(sentence ?? "", new RegExp(`^${REGEX}$`));
  assert.match(moves ?? "", /^moves: [a-h][1-8][-x][a-h][1-8](; [a-h][1-8][-x][a-h][1-8]){0,4}\.$/);
  assert.deepEqual(plain.map(({ finishReason }) => finishReason), [
    "stop",
    "stop",
    "length",
    "stop",
  ]);
  assert.ok((free?.length ?? 0) > 20);
  assert.ok(plain.every(({ speculative }) => speculative.draft_tokens === 0));
});

Deno.test("what a grammar forces is drafted without a model, batch 1 to 4", async () => {
  const { engine, rounds } = await open({ model: { draft: "none" } });
  using _ = engine;
  const results = await assertSame(engine, 1);
  assert.ok((results[0]?.speculative.accepted_tokens ?? 0) > 5);
  assert.ok(rounds.some(({ accepted }) => accepted.some((count) => count > 1)));
  assert.ok(rounds.every(({ together, batch }) => together === 1 || batch === 1));
});

for (const [algorithm, steps] of [["EAGLE3", 3], ["EAGLE3", 7], ["EAGLE", 3]] as const) {
  exhaustive.test(`chains of ${steps} from ${algorithm}`, async () => {
    const { engine, rounds } = await open({
      model: { algorithm },
      hooks: { plan: statically(steps) },
    });
    using _ = engine;
    await assertSame(engine);
    assert.ok(
      rounds.some(({ numSteps, accepted }) => numSteps === steps && accepted.some(Boolean)),
    );
  });
}

exhaustive.test("trees that the device drafts", async () => {
  const tree = { depth: 4, width: 3, rows: 10 };
  const { engine, rounds } = await open({
    model: { algorithm: "EAGLE3" },
    hooks: { plan: statically(tree) },
  });
  using _ = engine;
  await assertSame(engine);
  assert.ok(rounds.some(({ numSteps, accepted }) => numSteps === 4 && accepted.some((n) => n > 1)));
});

/** Knows the texts, but mixes in what is wrong, and often not allowed. */
const TREES: HostDrafter = pureDrafter({
  name: "trees",
  shapes: [{ depth: 4, width: 2, rows: 12 }],
  propose(ids, { depth }) {
    const known = plain.find(({ promptIds, outputIds }) => {
      const all = [...promptIds, ...outputIds];
      return ids.every((id, i) => all[i] === id);
    });
    const all = known ? [...known.promptIds, ...known.outputIds] : [];
    const tokens: number[] = [];
    const parents: number[] = [];
    let at = 0;
    for (const token of all.slice(ids.length, ids.length + depth)) {
      tokens.push(hash32(token, ids.length, 1) % 2048, token);
      parents.push(at, at);
      at = tokens.length;
    }
    return { tokens, parents };
  },
});

drawn.test("trees from the host lose what is not allowed", async () => {
  const { engine, rounds } = await open({ model: { draft: "none" }, hooks: { drafter: TREES } });
  using _ = engine;
  await assertSame(engine);
  assert.ok(rounds.some(({ numSteps, accepted }) => numSteps === 4 && accepted.includes(4)));
});

exhaustive.test("preempted requests go on in their grammars", async () => {
  const { engine } = await open({ model: { draft: "none" }, limits: { maxKvTokens: 112 } });
  using _ = engine;
  // Which of them run together depends on when their grammars, opened in other threads, are there.
  for (let turn = 0; turn < 30 && engine.counts.preemptions === 0; turn++) await assertSame(engine);
  assert.ok(engine.counts.preemptions > 0);
});

Deno.test("the ends: at max tokens, at a stop text, without the end token", async () => {
  const { engine } = await open({ model: { draft: "none" } });
  using _ = engine;
  const whole = plain[0] ?? assert.fail();
  const cut = await resultOf(engine.submit({ ...request(engine, 0), maxTokens: 9 }));
  assert.deepEqual([cut.finishReason, cut.outputIds.length], ["length", 9]);
  assert.ok(whole.text.startsWith(cut.text) && cut.text !== "");
  const stopped = await resultOf(engine.submit({ ...request(engine, 0), stop: ['"years"'] }));
  assert.equal(stopped.finishReason, "stop");
  assert.equal(stopped.text, whole.text.slice(0, whole.text.indexOf('"years"')));
  const on = await resultOf(engine.submit({ ...request(engine, 0), ignoreEos: true }));
  assert.deepEqual([on.finishReason, on.text], ["stop", whole.text]);
});

Deno.test("a grammar that cannot be used is told before anything is generated; others go on", async () => {
  const { engine } = await open({ model: { draft: "none" } });
  using _ = engine;
  const bad: Grammar = { kind: "ebnf", text: 'root ::= "a" | b' };
  const nowhere: Grammar = { kind: "ebnf", text: 'root ::= "The" x\nx ::= x' };
  const escape: Grammar = { kind: "json schema", schema: { $ref: "#/%zz" } };
  const [good, ...failed] = await Promise.allSettled([
    resultOf(engine.submit(request(engine, 3))),
    ...[bad, nowhere, escape].map((grammar) =>
      resultOf(engine.submit({ ...request(engine, 0), grammar }))
    ),
  ]);
  assert.equal(good?.status === "fulfilled" && good.value.text, plain[3]?.text);
  assert.deepEqual(failed.map((one) => one.status === "rejected" && one.reason.message), [
    'Cannot constrain the output: EBNF parser error at line 1, column 16: Rule "b" is not defined',
    "Cannot constrain the output: the grammar has come to where no token may follow",
    'Cannot constrain the output: JSON schema, at "#": "$ref" "#/%zz" has a "%" that begins no ' +
    "character",
  ]);
  assert.ok(failed.every((one) => one.status === "rejected" && one.reason instanceof UsageError));
  assertNothingHeld(engine);

  // A callback that throws ends its own request, as does a grammar.
  const thrown = new RangeError("the callback's own");
  let last: unknown;
  const callback = engine.submit(request(engine, 0));
  callback.listen((event) => {
    if (event.kind === "text") throw thrown;
    if (event.kind === "error") last = event.error;
  });
  const [goes, ...ended] = await Promise.allSettled([
    resultOf(engine.submit(request(engine, 1))),
    resultOf(engine.submit({ ...request(engine, 0), grammar: escape })),
  ]);
  await engine.idle();
  assert.equal(goes?.status === "fulfilled" && goes.value.text, plain[1]?.text);
  assert.deepEqual(ended.map(({ status }) => status), ["rejected"]);
  assert.deepEqual([callback.ended, last], [true, thrown]);
  assertNothingHeld(engine);
});
