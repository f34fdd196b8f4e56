// A whole model as the draft of another: the text of plain decoding, whatever the draft.
import assert from "node:assert/strict";
import { openRunner } from "../../src/engine/device/device_runner.ts";
import { openSequence, prefillPrompt } from "../../src/engine/device/single_sequence.ts";
import { loadWeights, openModels } from "../../src/engine/load/load.ts";
import { statically } from "../../src/engine/drafting.ts";
import { type LocalEngine, type LocalOptions, openEngine } from "./open.ts";
import {
  type GenerateRequest,
  type GenerateResult,
  resultOf,
} from "../../src/engine/schedule/events.ts";
import type { Speculation } from "../../src/engine/schedule/speculation.ts";
import { staticPlan } from "../../src/engine/schedule/speculation_choice.ts";
import { UsageError } from "../../src/errors.ts";
import { openGpu } from "../gpu/shared.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import { chain, chains, type DraftShape } from "../../src/speculate/round_shape.ts";
import { GREEDY, type Sampling } from "../../src/speculate/sampling.ts";
import { treeNamed } from "../../src/speculate/tree_shape.ts";
import { generatedPrompt } from "../prompts.ts";
import { goldenCases } from "./fledgling.ts";
import { assertNothingHeld, resultsOf } from "./held.ts";
import { randomFolder, TINY_QWEN3 } from "./random_folder.ts";
import { REJECTION_RULES } from "../../src/speculate/rejection_rule.ts";
import { exhaustive } from "../exhaustive.ts";

const TARGET = new URL("../../models/fledgling/target", import.meta.url).pathname;
const TOKENIZER = Deno.readTextFileSync(`${TARGET}/tokenizer.json`);
const SAMPLED: Sampling = { ...GREEDY, temperature: 0.9, topP: 0.95, seed: 5 };

/** Its padded rows would win every argmax. */
const tiny = () =>
  randomFolder({ ...TINY_QWEN3, vocab_size: 2064 }, { "tokenizer.json": TOKENIZER });

function request(engine: LocalEngine, n: number): GenerateRequest {
  const sampled = { ...GREEDY, temperature: 0.5 + n % 3 * 0.4, seed: n, topK: n % 4 ? 0 : 40 };
  return {
    promptIds: engine.text.encodePrompt({
      messages: [{ role: "user", content: generatedPrompt(n) }],
    }),
    sampling: n % 2 === 1 ? sampled : GREEDY,
    maxTokens: [40, 23, 50, 9][n % 4] ?? 1,
    stop: n % 7 === 3 ? [", 1", " the "] : [],
    ignoreEos: n % 2 === 0,
  };
}

function together(engine: LocalEngine, count: number): Promise<GenerateResult[]> {
  return resultsOf(engine, Array.from({ length: count }, (_, n) => request(engine, n)));
}

const texts = (results: readonly GenerateResult[]) =>
  results.map(({ outputIds }) => outputIds.join());

async function plain(options: LocalOptions, count: number): Promise<string[]> {
  using engine = await openEngine({ ...options, model: { ...options.model, draft: "none" } });
  return texts(await together(engine, count));
}

/** Another tier every round, in turn. */
function inTurn(tiers: readonly DraftShape[]): Speculation {
  let round = 0;
  return {
    pick: () => ({ tier: tiers[round++ % tiers.length] as DraftShape }),
    holds: () => Infinity,
    learn: () => {},
    report: staticPlan(chain(0)).speculation.report,
  };
}

/** Tokens a round of all requests together, but for the last round of each, which ends early. */
const acceptLength = (results: readonly GenerateResult[]) => {
  const accepted = results.flatMap(({ speculative }) =>
    speculative.accepted_per_round.slice(0, -1)
  );
  return 1 + accepted.reduce((sum, each) => sum + each, 0) / accepted.length;
};

for (const [name, sampling] of [["greedy", GREEDY], ["sampled", SAMPLED]] as const) {
  exhaustive.test(`a model drafts for itself: all of every chain is accepted, ${name}`, async () => {
    using gpu = await openGpu();
    using models = openModels({ draft: TARGET, algorithm: "STANDALONE" });
    const runner = await openRunner(gpu, await loadWeights(gpu, models), {
      batch: 1,
      shapes: chains([0, 1, 3, 7]),
      prefillRows: 16,
      contextLength: 256,
      pages: 288 / PAGE,
    });
    const { prompt_ids } = goldenCases()[2]!;
    const outputs = [];
    for (const steps of [0, 1, 3, 7]) {
      using sequence = openSequence(runner);
      runner.reserve(sequence, 256);
      runner.setSampling(sequence, sampling);
      await prefillPrompt(runner, sequence, prompt_ids);
      const accepted: (number | undefined)[] = [];
      while (sequence.stored < prompt_ids.length + 48) {
        const rounds = await runner.rounds([sequence], { shape: chain(steps), count: 2 });
        accepted.push(...rounds.map(({ sequences }) => sequences[0]?.accepted));
      }
      assert.deepEqual(accepted, accepted.map(() => steps));
      assert.equal(sequence.draftStored, steps === 0 ? prompt_ids.length : sequence.stored);
      outputs.push(sequence.ids.slice(0, prompt_ids.length + 48).join());
    }
    assert.equal(new Set(outputs).size, 1);
  });
}

Deno.test("rounds without drafts, then catching up: all is accepted again", async () => {
  using gpu = await openGpu();
  using models = openModels({ draft: TARGET });
  const runner = await openRunner(gpu, await loadWeights(gpu, models), {
    // Lags longer than a chunk.
    batch: 3,
    shapes: chains([0, 3]),
    prefillRows: 8,
    contextLength: 128,
    pages: 3 * 10,
  });
  using stack = new DisposableStack();
  const sequences = goldenCases().slice(1, 4).map(({ prompt_ids }) => ({
    prompt_ids,
    sequence: stack.use(openSequence(runner)),
  }));
  const all = sequences.map(({ sequence }) => sequence);
  for (const { prompt_ids, sequence } of sequences) {
    runner.reserve(sequence, 128);
    runner.setSampling(sequence, SAMPLED);
    await prefillPrompt(runner, sequence, prompt_ids);
  }
  for (const missed of [1, 11]) {
    for (let n = 0; n < missed; n++) await runner.rounds(all, { shape: chain(0), count: 1 });
    assert.ok(all.every(({ stored, draftStored }) => stored === draftStored + missed));
    await runner.catchUp(all);
    const rounds = await runner.rounds(all, { shape: chain(3), count: 3 });
    assert.deepEqual(
      rounds.flatMap(({ sequences }) => sequences.map(({ accepted }) => accepted)),
      Array(9).fill(3),
    );
  }
});

const TIERS = [chain(3), treeNamed("3:2:6"), chain(0), chain(7)];

const CASES: readonly [name: string, options: LocalOptions, requests: number][] = [
  ["4 at once, several rounds a sync, bf16", {
    limits: { maxBatch: 4, roundsPerSync: 3, kvDtype: "bf16" },
  }, 5],
  ["preempted, f16", { limits: { maxBatch: 4, kvDtype: "f16", maxKvTokens: 160 } }, 5],
];

for (const [name, options, count] of CASES) {
  exhaustive.test(`chains and trees of standalone drafts, ${name}: the text of plain decoding`, async () => {
    using random = await tiny();
    const { maxKvTokens: _, ...limits } = options.limits ?? {};
    const expected = await plain({ ...options, limits }, count);
    for (const draft of [TARGET, random.path]) {
      using engine = await openEngine({
        ...options,
        model: { ...options.model, draft },
        hooks: {
          ...options.hooks,
          plan: () => ({ tier: chain(3), tiers: TIERS, speculation: inTurn(TIERS) }),
        },
      });
      const results = await together(engine, count);
      assert.deepEqual(texts(results), expected, draft);
      assert.equal(engine.counts.preemptions > 0, options.limits?.maxKvTokens !== undefined);
      assert.ok(results.every(({ drafts }) => drafts.flat().every((id) => id < 2048)));
    }
  });
}

exhaustive.test("at steps 3: 4 tokens a round of a model for itself, few of random weights", async () => {
  using random = await tiny();
  const found = [];
  const expected = await plain({}, 4);
  for (const draft of [TARGET, random.path]) {
    using engine = await openEngine({
      model: { draft },
      hooks: { plan: statically(3) },
      limits: { maxBatch: 2 },
    });
    assert.equal(engine.info.algorithm, "STANDALONE");
    const results = await together(engine, 4);
    assert.deepEqual(texts(results), expected);
    assert.equal(results[0]?.speculative.algorithm, "STANDALONE");
    found.push(acceptLength(results));
  }
  assert.ok(found[0]! > 3.9 && found[1]! < 1.2, found.join());
});

exhaustive.test("trees of a model for itself are accepted to their end", async () => {
  using engine = await openEngine({
    model: { draft: TARGET },
    hooks: { plan: statically(treeNamed("4:3:24")) },
  });
  const results = [];
  for (const n of [0, 2, 8]) {
    const each = { ...request(engine, n), sampling: GREEDY, stop: [], ignoreEos: true };
    results.push(await resultOf(engine.submit(each)));
  }
  assert.ok(acceptLength(results) > 4.7, `${acceptLength(results)}`);
});

Deno.test("prompts that begin alike: what is cached of the draft is true", async () => {
  using engine = await openEngine({ model: { draft: TARGET }, hooks: { plan: statically(3) } });
  const first = await resultOf(engine.submit(request(engine, 0)));
  const longer = [...request(engine, 0).promptIds, ...first.outputIds.slice(0, 20)];
  // The page's next token is another one: that of an EAGLE head would not be cached.
  const promptIds = longer.slice(0, Math.floor(longer.length / PAGE) * PAGE).concat(77);
  const before = { ...engine.counts };
  const again = { ...request(engine, 0), promptIds, maxTokens: 40, ignoreEos: true };
  const result = await resultOf(engine.submit(again));
  assert.equal(result.cachedTokens, promptIds.length - 1);
  assert.equal(engine.counts.catchUps, before.catchUps);
  assert.ok(acceptLength([result]) > 3.8);
});

exhaustive.test("a quantized draft of a quantized target keeps its text", async () => {
  using engine = await openEngine({
    model: { draft: TARGET, quantize: "q8", quantizeDraft: true },
    hooks: { plan: statically(3) },
  });
  using q8 = await openEngine({ model: { draft: "none", quantize: "q8" } });
  assert.deepEqual(texts(await together(engine, 2)), texts(await together(q8, 2)));
  assert.ok(engine.info.weights.bytes > 1.9 * q8.info.weights.bytes);
});

exhaustive.test("rejection sampling: greedy text stays, and what agrees is accepted at any temperature", async () => {
  using random = await tiny();
  const expected = await plain({}, 3);
  const seeds = [1, 2, 3];
  const lengths = [];
  const cases = [TARGET, random.path].flatMap((draft) =>
    REJECTION_RULES.map((rule) => [draft, rule] as const)
  );
  for (const [draft, rejection] of cases) {
    using engine = await openEngine({
      model: { draft },
      limits: { maxBatch: 3 },
      speculation: { rejection },
      hooks: { plan: statically(3) },
    });
    const greedy = (n: number) => ({ ...request(engine, n), sampling: GREEDY });
    const results = await Promise.all([0, 2].map((n) => resultOf(engine.submit(greedy(n)))));
    assert.deepEqual(texts(results), [expected[0], expected[2]]);
    const sampled = await Promise.all(
      seeds.map((seed) =>
        resultOf(engine.submit({ ...greedy(8), sampling: { ...SAMPLED, seed }, ignoreEos: true }))
      ),
    );
    assert.ok(new Set(texts(sampled)).size > 1);
    lengths.push(acceptLength(sampled));
    assertNothingHeld(engine);
  }
  // The laws of the two forwards are the same but for what prefill rounds differently.
  assert.ok(
    Math.min(...lengths.slice(0, 2)) > 3.9 && Math.max(...lengths.slice(2)) < 1.5,
    lengths.join(),
  );
});

Deno.test("rejection sampling is for chains of standalone drafts", async () => {
  const refused = (options: LocalOptions, why: string) =>
    assert.rejects(
      openEngine({
        ...options,
        hooks: { plan: statically(3), ...options.hooks },
        speculation: { ...options.speculation, rejection: "token" },
      }),
      new UsageError(
        `Cannot use --acceptance token: it is for chains of a STANDALONE draft, ${why}`,
      ),
    );
  await refused({}, "here is EAGLE3");
  await assert.rejects(
    openEngine({ hooks: { plan: statically(3) }, speculation: { rejection: "block" } }),
    /^UsageError: Cannot use --acceptance block: it is for chains of /,
  );
  await refused({ model: { draft: "none" } }, "here is no draft");
  await refused(
    { model: { draft: TARGET }, hooks: { plan: statically(treeNamed("3:2:6")) } },
    "here are trees",
  );
  await assert.rejects(
    openEngine({
      model: { draft: TARGET },
      speculation: { acceptThresholds: { single: 0.3 }, rejection: "token" },
      hooks: { plan: statically(3) },
    }),
    /^UsageError: Cannot use --acceptance token with relaxed acceptance: /,
  );
});

Deno.test("random weights: configs alone make a target and a standalone draft", async () => {
  const config = (name: string) =>
    new URL(`../golden/${name}/config.json`, import.meta.url).pathname;
  using engine = await openEngine({
    model: {
      random: { target: config("qwen3"), draft: config("llama3") },
      algorithm: "STANDALONE",
    },
    hooks: { plan: statically(2) },
    limits: { contextLength: 64 },
  });
  assert.equal(engine.info.algorithm, "STANDALONE");
  const asked = {
    promptIds: [5, 6, 7],
    sampling: GREEDY,
    maxTokens: 12,
    stop: [],
    ignoreEos: true,
  };
  const { outputIds, speculative } = await resultOf(engine.submit(asked));
  assert.equal(outputIds.length, 12);
  assert.equal(speculative.draft_tokens, 2 * speculative.rounds);
});

exhaustive.test("nothing is made after warm-up", async () => {
  const tiers = [chain(0), chain(3), treeNamed("3:2:6")];
  using engine = await openEngine({
    model: { draft: TARGET },
    limits: { maxBatch: 2, preparePrompts: true },
    hooks: { plan: () => ({ tier: chain(3), tiers, warmed: tiers, speculation: inTurn(tiers) }) },
  });
  const before = { ...engine.runner.created };
  await together(engine, 3);
  assert.deepEqual({ ...engine.runner.created }, before);
});

Deno.test("a draft with other tokens is refused, with the first that differ", async () => {
  const json = JSON.parse(TOKENIZER);
  const [[token, id]] = Object.entries(json.model.vocab).slice(300, 301) as [[string, number]];
  delete json.model.vocab[token];
  json.model.vocab["other"] = id;
  json.added_tokens[1].content = "<|stop|>";
  using random = await randomFolder(TINY_QWEN3, { "tokenizer.json": JSON.stringify(json) });
  const stop = JSON.parse(TOKENIZER).added_tokens[1];
  assert.throws(
    () => openModels({ draft: random.path }),
    new UsageError(
      `Cannot use draft "${random.path}" with target "fledgling/target": its tokens are others: ` +
        `${stop.id} is "<|stop|>", the target's ${JSON.stringify(stop.content)}; ` +
        `${id} is "other", the target's ${JSON.stringify(token)}`,
    ),
  );
});

Deno.test("STANDALONE without a draft, or with an EAGLE head, is a usage error", () => {
  assert.throws(() => openModels({ algorithm: "STANDALONE" }), /no draft is given, add --draft/);
  const draft = `${TARGET}/../eagle3`;
  assert.throws(() => openModels({ algorithm: "STANDALONE", draft }), /is an EAGLE head/);
  const wrong = () => openModels({ algorithm: "EAGLE3", draft: TARGET });
  assert.throws(wrong, /it is not an EAGLE draft/);
});
