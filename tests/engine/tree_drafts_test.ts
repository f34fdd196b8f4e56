// Trees that the device drafts: the text of plain decoding, whatever their shape.
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
import { openGpu } from "../gpu/shared.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import { chain, type DraftShape, tierText } from "../../src/speculate/round_shape.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { treeNamed } from "../../src/speculate/tree_shape.ts";
import { generatedPrompt } from "../prompts.ts";
import { goldenCases } from "./fledgling.ts";
import { resultsOf } from "./held.ts";
import { exhaustive } from "../exhaustive.ts";

const tiersOf = (texts: readonly string[]): DraftShape[] =>
  texts.map((text) => text.includes(":") ? treeNamed(text) : chain(Number(text)));

/** topk 1, 2, 4, 8 and 10, up to 60 rows, between chains and plain decoding. */
const TIERS = tiersOf([
  "5:4:8",
  "0",
  "3",
  "8:10:60",
  "1:4:4",
  "3:2:11",
  "4:8:24",
  "4:1:4",
  "6:10:32",
]);

function request(engine: LocalEngine, n: number): GenerateRequest {
  const content = generatedPrompt(n);
  const sampled = { ...GREEDY, temperature: 0.5 + n % 3 * 0.4, seed: n, topK: n % 4 ? 0 : 40 };
  return {
    promptIds: engine.text.encodePrompt({ messages: [{ role: "user", content }] }),
    sampling: n % 2 === 1 ? sampled : GREEDY,
    maxTokens: [40, 23, 64, 9][n % 4] ?? 1,
    stop: n % 7 === 3 ? [", 1", " the "] : [],
    ignoreEos: n % 5 === 4,
  };
}

function together(engine: LocalEngine, count: number): Promise<GenerateResult[]> {
  return resultsOf(engine, Array.from({ length: count }, (_, n) => request(engine, n)));
}

const texts = (results: readonly GenerateResult[]) =>
  results.map(({ outputIds }) => outputIds.join());

async function plain(options: LocalOptions, count: number): Promise<string[]> {
  using engine = await openEngine({ ...options, hooks: { ...options.hooks, plan: statically(0) } });
  return texts(await together(engine, count));
}

/** Another tier every round, in turn. */
function inTurn(tiers: readonly DraftShape[]): Speculation & { readonly picked: Set<string> } {
  const picked = new Set<string>();
  let round = 0;
  return {
    picked,
    pick: () => {
      const tier = tiers[round++ % tiers.length] as DraftShape;
      picked.add(tierText(tier));
      return { tier };
    },
    holds: () => Infinity,
    learn: () => {},
    report: staticPlan(chain(0)).speculation.report,
  };
}

const CASES: readonly [name: string, options: LocalOptions, requests: number][] = [
  ["EAGLE3, one at a time", { model: { algorithm: "EAGLE3" } }, 4],
  ["EAGLE3, 5 at once, several rounds a sync", {
    model: { algorithm: "EAGLE3" },
    limits: { maxBatch: 5, roundsPerSync: 3 },
  }, 10],
  ["EAGLE, 3 at once, bf16 keys and values", {
    model: { algorithm: "EAGLE" },
    limits: { maxBatch: 3, kvDtype: "bf16" },
  }, 4],
  ["EAGLE3, preempted, f16 keys and values", {
    model: { algorithm: "EAGLE3" },
    limits: { maxBatch: 4, kvDtype: "f16", maxKvTokens: 464 },
  }, 8],
];

for (const [name, options, count] of CASES) {
  exhaustive.test(`trees of every shape, ${name}: the text of plain decoding`, async () => {
    const { maxKvTokens: _, ...limits } = options.limits ?? {};
    const expected = await plain({ ...options, limits }, count);
    const speculation = inTurn(TIERS);
    using engine = await openEngine({
      ...options,
      hooks: { ...options.hooks, plan: () => ({ tier: chain(3), tiers: TIERS, speculation }) },
    });
    const results = await together(engine, count);
    assert.deepEqual(texts(results), expected);
    assert.equal(speculation.picked.size, TIERS.length);
    assert.equal(engine.counts.preemptions > 0, options.limits?.maxKvTokens !== undefined);
  });
}

Deno.test("a tree of every candidate begins with the chain's drafts", async () => {
  using gpu = await openGpu();
  for (const algorithm of ["EAGLE3", "EAGLE"] as const) {
    using models = openModels({ algorithm });
    const tree = treeNamed("2:4:21");
    const runner = await openRunner(gpu, await loadWeights(gpu, models), {
      batch: 1,
      shapes: [chain(2), tree],
      treeShapes: [tree],
      prefillRows: 256,
      contextLength: 256,
      pages: 512 / PAGE,
    });
    for (const { prompt_ids } of goldenCases().slice(0, 4)) {
      const drafts = [];
      for (const shape of [chain(2), tree]) {
        const sequence = openSequence(runner);
        runner.reserve(sequence, 256);
        runner.setSampling(sequence, GREEDY);
        await prefillPrompt(runner, sequence, prompt_ids);
        const rounds = await runner.rounds([sequence], { shape, count: 3 });
        drafts.push(rounds.map(({ sequences }) => sequences[0]));
        // Both store what was committed but for the pending token.
        assert.equal(sequence.stored, sequence.ids.length - 1);
        assert.equal(sequence.draftStored, sequence.stored);
        runner.closeSlot(sequence);
      }
      const [chains, trees] = drafts;
      // The first rounds begin alike; level 1 is four candidates of each of the four before.
      const { drafts: found = [] } = trees?.[0] ?? {};
      assert.equal(found.length, 20);
      assert.deepEqual([found[0], found[4]], chains?.[0]?.drafts);
      const accepted = (results: typeof chains) =>
        results?.reduce((sum, result) => sum + (result?.accepted ?? 0), 0) ?? 0;
      assert.ok(accepted(trees) >= accepted(chains));
    }
  }
});

exhaustive.test("trees accept more than chains as deep, and say what they are", async () => {
  const lengths: number[] = [];
  for (const tier of tiersOf(["5", "5:4:16"])) {
    using engine = await openEngine({ hooks: { plan: statically(tier) }, limits: { maxBatch: 4 } });
    const results = await together(engine, 8);
    const rounds = results.map(({ speculative }) => speculative);
    lengths.push(rounds.reduce((sum, { mean_accept_length }) => sum + mean_accept_length, 0));
    for (const { num_steps, eagle_topk, num_draft_tokens, ...counts } of rounds) {
      assert.deepEqual([num_steps, eagle_topk, num_draft_tokens], [5, tier.width, tier.rows]);
      // Drafts after the end of the text are not counted in its last round.
      const each = tier.rows - 1;
      assert.ok(counts.draft_tokens <= counts.rounds * each);
      assert.ok(counts.draft_tokens >= (counts.rounds - 1) * each);
      assert.equal(counts.acceptance_per_position.length, 5);
    }
  }
  const [chains = 0, trees = 0] = lengths;
  assert.ok(trees > chains, `${trees} over ${chains}`);
});

Deno.test("a request may ask for a chain where trees are the default, and for none", async () => {
  using engine = await openEngine({ hooks: { plan: statically(treeNamed("3:2:6"), [0, 2]) } });
  const asked = [{}, { numSteps: 2 }, { numSteps: 0 }];
  const results = [];
  for (const each of asked) {
    results.push(await resultOf(engine.submit({ ...request(engine, 0), ...each })));
  }
  assert.equal(new Set(texts(results)).size, 1);
  assert.deepEqual(
    results.map(({ speculative: { num_steps, eagle_topk, num_draft_tokens } }) => [
      ...[num_steps, eagle_topk, num_draft_tokens],
    ]),
    [[3, 2, 6], [2, 1, 3], [0, 0, 0]],
  );
});

exhaustive.test("nothing is made after warm-up, in rounds of trees", async () => {
  const tiers = tiersOf(["0", "3", "3:2:6"]);
  const speculation = inTurn(tiers);
  using engine = await openEngine({
    limits: { maxBatch: 2, preparePrompts: true },
    hooks: { plan: () => ({ tier: chain(3), tiers, warmed: tiers, speculation }) },
  });
  const before = { ...engine.runner.created };
  await together(engine, 3);
  assert.deepEqual({ ...engine.runner.created }, before);
});

Deno.test("a request without drafts, where the engine's only tier is a tree, beside one with", async () => {
  using engine = await openEngine({
    model: { algorithm: "EAGLE3" },
    limits: { maxBatch: 2 },
    hooks: { plan: statically(treeNamed("4:3:10")) },
  });
  const asked = { ...request(engine, 0), sampling: GREEDY, stop: [], ignoreEos: false };
  const none = { ...asked, numSteps: 0 };
  const alone = await resultOf(engine.submit(none));
  assert.equal(alone.speculative.draft_tokens, 0);
  for (const { text } of await resultsOf(engine, [none, asked])) assert.equal(text, alone.text);
});
