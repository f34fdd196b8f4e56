// NGRAM, SUFFIX and HYBRID by name: the text of plain decoding, and whose drafts are accepted.
import assert from "node:assert/strict";
import {
  type GenerateRequest,
  type GenerateResult,
  resultOf,
} from "../../src/engine/schedule/events.ts";
import { statically } from "../../src/engine/drafting.ts";
import { type LocalEngine, type LocalOptions, openEngine } from "./open.ts";
import type { RoundSample } from "../../src/engine/schedule/rounds/round_sample.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { generatedPrompt } from "../prompts.ts";
import { resultsOf } from "./held.ts";
import { exhaustive } from "../exhaustive.ts";

/** Tokens of an output, and of one that is to grow. */
const MAX = 24;
const LONG = 48;
/** Counting and tables repeat, words and numbers do not. */
const PROMPTS = [0, 5, 8, 12, 9, 6];

function request(engine: LocalEngine, n: number, maxTokens = MAX): GenerateRequest {
  const content = generatedPrompt(PROMPTS[n] as number);
  const sampled = { ...GREEDY, temperature: 0.8, seed: n, topP: 0.9 };
  return {
    promptIds: engine.text.encodePrompt({ messages: [{ role: "user", content }] }),
    sampling: n % 2 === 1 ? sampled : GREEDY,
    maxTokens,
    stop: [],
    ignoreEos: true,
  };
}

function together(
  engine: LocalEngine,
  which: readonly number[],
  maxTokens = MAX,
): Promise<GenerateResult[]> {
  return resultsOf(engine, which.map((n) => request(engine, n, maxTokens)));
}

const plain = await (async () => {
  using engine = await openEngine({ model: { draft: "none" }, limits: { maxBatch: 6 } });
  return (await together(engine, [...PROMPTS.keys()], LONG)).map(({ outputIds }) => outputIds);
})();

function assertSame(results: readonly GenerateResult[], which: readonly number[]): void {
  for (const [i, n] of which.entries()) {
    const { outputIds = [] } = results[i] ?? {};
    assert.ok(outputIds.length >= MAX);
    assert.deepEqual(outputIds, plain[n]?.slice(0, outputIds.length), `prompt ${n}`);
  }
}

async function open(
  options: LocalOptions,
): Promise<{ engine: LocalEngine; rounds: RoundSample[] }> {
  const rounds: RoundSample[] = [];
  const onRound = (round: RoundSample) => void rounds.push(round);
  return { engine: await openEngine({ ...options, hooks: { onRound, ...options.hooks } }), rounds };
}

const CASES: readonly [name: string, options: LocalOptions][] = [
  ["NGRAM", { model: { algorithm: "NGRAM" } }],
  ["SUFFIX", { model: { algorithm: "SUFFIX" } }],
  ["HYBRID", { model: { algorithm: "HYBRID" }, hooks: { plan: statically(3, [0, 3]) } }],
  [
    "HYBRID beside EAGLE-1",
    {
      model: {
        algorithm: "HYBRID",
        draft: new URL("../../models/fledgling/eagle1", import.meta.url).pathname,
        model: new URL("../../models/fledgling/target", import.meta.url).pathname,
      },
      hooks: { plan: statically(2, [0, 2]) },
    },
  ],
];

for (const [name, options] of CASES) {
  exhaustive.test(`${name}: the text of plain decoding, greedy and sampled, batch 1 to 4`, async () => {
    const { engine, rounds } = await open({
      ...options,
      limits: { ...options.limits, maxBatch: 4 },
    });
    using _ = engine;
    for (const which of [[0], [2, 3], [0, 1, 5], [0, 1, 4, 5]]) {
      const results = await together(engine, which);
      assertSame(results, which);
      assert.ok(
        results.every(({ speculative }) => speculative.algorithm === options.model?.algorithm),
      );
    }
    assert.equal(engine.info.algorithm, options.model?.algorithm);
    const accepted = rounds.flatMap((round) => round.accepted);
    assert.ok(accepted.some((count) => count > 1), `${accepted}`);
  });

  // Pages know nothing of heads: one of HYBRID's is enough.
  if (options.model?.draft !== undefined) continue;
  exhaustive.test(`${name}: the same with few pages`, async () => {
    const { engine } = await open({
      ...options,
      limits: { ...options.limits, maxBatch: 4, maxKvTokens: 240, contextLength: 176 },
    });
    using _ = engine;
    const which = [0, 1, 2, 3, 4, 5];
    assertSame(await together(engine, which, LONG), which);
    assert.ok(engine.counts.preemptions > 0);
  });
}

Deno.test("HYBRID: host and device draft in the same round", async () => {
  const { engine } = await open({
    model: { algorithm: "HYBRID" },
    limits: { maxBatch: 4, preparePrompts: true },
    hooks: { plan: statically(3, [0, 3]) },
  });
  using _ = engine;
  const { runner } = engine;
  const created = { ...runner.created };
  let mixed = 0;
  const { begin } = runner;
  runner.begin = (sequences, asked) => {
    const drafted = new Set(asked.proposals?.map((proposal) => proposal === undefined));
    if (drafted.size === 2 && asked.deviceDepth === 3) mixed++;
    return begin.call(runner, sequences, asked);
  };
  const which = [0, 1, 2, 3];
  assertSame(await together(engine, which), which);
  assert.ok(mixed > 3, `${mixed}`);
  assert.deepEqual({ ...runner.created }, created);
});

Deno.test("a request that asks for no drafts gets none, and says so", async () => {
  const { engine } = await open({ model: { algorithm: "SUFFIX" }, limits: { maxBatch: 2 } });
  using _ = engine;
  const { outputIds, speculative } = await resultOf(
    engine.submit({ ...request(engine, 0), numSteps: 0 }),
  );
  assert.deepEqual(outputIds, plain[0]?.slice(0, MAX));
  assert.deepEqual([speculative.algorithm, speculative.draft_tokens], ["NONE", 0]);
});

Deno.test("acceptance of chains from the host can be simulated", async () => {
  const { engine } = await open({
    model: { algorithm: "NGRAM" },
    speculation: { simulateAcceptance: [1] },
  });
  using _ = engine;
  const { speculative } = await resultOf(engine.submit(request(engine, 0)));
  assert.ok(speculative.draft_tokens > 5);
  assert.equal(speculative.accepted_tokens, speculative.draft_tokens);
});
