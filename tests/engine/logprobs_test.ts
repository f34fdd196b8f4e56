// Log-probabilities of what is emitted: to the bit the same with and without drafts.
import assert from "node:assert/strict";
import { forward } from "../../src/engine/device/logits_dump.ts";
import { openSequence } from "../../src/engine/device/single_sequence.ts";
import { statically } from "../../src/engine/drafting.ts";
import { type LocalEngine, type LocalOptions, openEngine } from "./open.ts";
import {
  type GenerateRequest,
  type GenerateResult,
  resultOf,
  type TextLogprobs,
} from "../../src/engine/schedule/events.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { generatedPrompt } from "../prompts.ts";
import { logprobs } from "../reference/choose.ts";
import { drawn } from "../exhaustive.ts";
import { knowingDrafter } from "./knowing_drafter.ts";

const SAMPLED = { ...GREEDY, temperature: 0.8, topK: 20, seed: 7 };
const REQUESTS: readonly Pick<GenerateRequest, "sampling" | "logprobs">[] = [
  { sampling: GREEDY, logprobs: 3 },
  { sampling: GREEDY },
  { sampling: { ...SAMPLED, presencePenalty: 1.5, logitBias: { 30: 4 } }, logprobs: 20 },
  { sampling: SAMPLED, logprobs: 0 },
];

function request(engine: LocalEngine, n: number): GenerateRequest {
  const content = generatedPrompt(n);
  return {
    ...REQUESTS[n] as typeof REQUESTS[number],
    promptIds: engine.text.encodePrompt({ messages: [{ role: "user", content }] }),
    maxTokens: 20,
    stop: [],
    ignoreEos: true,
  };
}

/** Outputs of the requests; what events tell of each is what its result has. */
async function outputs(engine: LocalEngine, which: readonly number[]): Promise<GenerateResult[]> {
  return await Promise.all(which.map(async (n) => {
    const told: TextLogprobs[] = [];
    const result = await resultOf(engine.submit(request(engine, n)), (event) => {
      if (event.kind === "round") told.push(...event.logprobs ?? []);
    });
    assert.deepEqual(result.logprobs ?? [], told);
    return result;
  }));
}

const plain = await (async () => {
  using engine = await openEngine({ model: { draft: "none" } });
  const found: GenerateResult[] = [];
  for (const n of REQUESTS.keys()) found.push(...await outputs(engine, [n]));
  return found;
})();

Deno.test("logprobs: those of the target before penalties and temperature, as many as asked for", async () => {
  using engine = await openEngine({ model: { draft: "none" } });
  for (const [n, { promptIds, outputIds, logprobs: told }] of plain.entries()) {
    const most = REQUESTS[n]?.logprobs;
    assert.equal(told?.length, most === undefined ? undefined : outputIds.length);
    if (told === undefined || most === undefined) continue;
    const ids = [...promptIds, ...outputIds];
    using sequence = openSequence(engine.runner, ids);
    engine.runner.reserve(sequence, ids.length);
    const { vocabSize } = engine.runner.models.target.config;
    const logits = (await forward(engine.runner, sequence, ids, ["logits"])).get("logits");
    for (const [i, one] of told.entries()) {
      const row = promptIds.length - 1 + i;
      const exact = logprobs(logits?.subarray(row * vocabSize, (row + 1) * vocabSize) ?? []);
      const falling = exact.toSorted((a, b) => b - a);
      assert.equal(one.id, outputIds[i]);
      assert.equal(one.text, engine.text.tokenizer.decode([one.id]));
      assert.equal(one.top.length, most);
      for (const { id, logprob } of [one, ...one.top]) {
        assert.ok(Math.abs(logprob - (exact[id] ?? NaN)) < 1e-3, `request ${n}, token ${i}`);
      }
      for (const [at, { logprob }] of one.top.entries()) {
        assert.ok(Math.abs(logprob - (falling[at] ?? NaN)) < 1e-3);
      }
    }
  }
});

const SETTINGS: Readonly<Record<string, LocalOptions>> = {
  "EAGLE3, 5 steps": { hooks: { plan: statically(5) }, limits: { roundsPerSync: 1 } },
  "EAGLE, 2 steps, 3 rounds per sync": {
    model: { algorithm: "EAGLE" },
    hooks: { plan: statically(2) },
    limits: { roundsPerSync: 3 },
  },
  "trees from the device": {
    hooks: { plan: statically({ depth: 4, width: 4, rows: 12 }) },
    limits: { roundsPerSync: 3 },
  },
  "trees of EAGLE": {
    model: { algorithm: "EAGLE" },
    hooks: { plan: statically({ depth: 3, width: 8, rows: 20 }) },
  },
  "trees from the host": { model: { draft: "none" }, hooks: { drafter: knowingDrafter(plain) } },
};

for (const [name, options] of Object.entries(SETTINGS)) {
  // tests/lossless has chains and trees of EAGLE.
  const { test } = name.startsWith("trees from the device") ? Deno : drawn;
  test(`logprobs: to the bit those of plain decoding: ${name}`, async () => {
    using engine = await openEngine({ ...options, limits: { ...options.limits, maxBatch: 4 } });
    for (const which of [[2], [...REQUESTS.keys()]]) {
      const found = await outputs(engine, which);
      assert.ok(found.some(({ speculative }) => speculative.accepted_tokens > 3));
      for (const [i, { outputIds, logprobs }] of found.entries()) {
        const wanted = plain[which[i] ?? 0];
        assert.deepEqual(outputIds, wanted?.outputIds);
        assert.deepEqual(logprobs, wanted?.logprobs);
      }
    }
  });
}

Deno.test("logprobs: more than 20 are refused", async () => {
  using engine = await openEngine({ model: { draft: "none" } });
  const asked = { ...request(engine, 0), logprobs: 21 };
  await assert.rejects(resultOf(engine.submit(asked)), /logprobs is 21, it is 0 to 20/);
});
