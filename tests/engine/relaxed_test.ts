// Relaxed acceptance in the engine; its law is that of tests/kernels/relax_test.ts.
import assert from "node:assert/strict";
import { statically } from "../../src/engine/drafting.ts";
import { type LocalEngine, type LocalOptions, openEngine } from "./open.ts";
import { type GenerateResult, resultOf } from "../../src/engine/schedule/events.ts";
import { chain } from "../../src/speculate/round_shape.ts";
import { GREEDY, type Sampling } from "../../src/speculate/sampling.ts";
import { treeNamed } from "../../src/speculate/tree_shape.ts";
import { generatedPrompt } from "../prompts.ts";
import { assertNothingHeld } from "./held.ts";
import { exhaustive } from "../exhaustive.ts";

const COUNT = 6;
const LOOSE = { single: 0.3, acc: 0.3 };

async function answers(
  options: LocalOptions,
  sampling: Partial<Sampling>,
): Promise<GenerateResult[]> {
  using engine = await openEngine({ ...options, limits: { maxBatch: 3, ...options.limits } });
  return await together(engine, sampling);
}

async function together(
  engine: LocalEngine,
  sampling: Partial<Sampling>,
): Promise<GenerateResult[]> {
  const results = await Promise.all(
    Array.from({ length: COUNT }, (_, n) =>
      resultOf(engine.submit({
        promptIds: engine.text.encodePrompt({
          messages: [{ role: "user", content: generatedPrompt(n) }],
        }),
        sampling: { ...GREEDY, seed: n, ...sampling },
        maxTokens: 32,
        stop: [],
        ignoreEos: true,
      }))),
  );
  assertNothingHeld(engine);
  return results;
}

const texts = (results: readonly GenerateResult[]) => results.map(({ outputIds }) => outputIds);

const sum = (results: readonly GenerateResult[], of: "rounds" | "accepted_tokens") =>
  results.reduce((total, { speculative }) => total + speculative[of], 0);

const WAYS: readonly [name: string, options: LocalOptions][] = [
  ["a chain", { model: { algorithm: "EAGLE3" }, hooks: { plan: statically(chain(3)) } }],
  ["a tree, several rounds a sync", {
    model: { algorithm: "EAGLE" },
    hooks: { plan: statically(treeNamed("4:4:8")) },
    limits: { roundsPerSync: 3 },
  }],
  ["drafts of the text", { model: { algorithm: "SUFFIX", draft: "none" } }],
];

const WARM = { temperature: 1.2 };
const plain = {
  warm: texts(await answers({ model: { draft: "none" } }, WARM)),
  greedy: texts(await answers({ model: { draft: "none" } }, {})),
};

for (const [name, options] of WAYS) {
  const { test } = name === "a chain" ? Deno : exhaustive;
  test(`relaxed acceptance, ${name}: more is accepted, and nothing changes at 1 or greedily`, async () => {
    const exact = await answers({
      ...options,
      speculation: { ...options.speculation, acceptThresholds: { single: 1, acc: 1 } },
    }, WARM);
    assert.deepEqual(texts(exact), plain.warm);
    using engine = await openEngine({
      ...options,
      limits: { maxBatch: 3, ...options.limits },
      speculation: { ...options.speculation, acceptThresholds: LOOSE },
    });
    assert.deepEqual(engine.info.acceptThresholds, LOOSE);
    const loose = await together(engine, WARM);
    assert.notDeepEqual(texts(loose), plain.warm);
    // Tokens a round over the same number of tokens.
    const share = (results: readonly GenerateResult[]) =>
      sum(results, "accepted_tokens") / sum(results, "rounds");
    assert.ok(share(loose) > share(exact), `${share(loose)} ${share(exact)}`);
    const greedy = await together(engine, {});
    assert.deepEqual(texts(greedy), plain.greedy);
  });
}

Deno.test("relaxed acceptance: what a grammar rules out is never accepted, whatever is drafted", async () => {
  using engine = await openEngine({
    model: { algorithm: "EAGLE3" },
    hooks: { plan: statically(chain(3)) },
    limits: { constrained: true },
    speculation: { acceptThresholds: { single: 0, acc: 0 } },
  });
  for (let seed = 0; seed < 3; seed++) {
    const { text, finishReason } = await resultOf(engine.submit({
      promptIds: engine.text.encodePrompt({ raw: "Digits:" }),
      sampling: { ...GREEDY, temperature: 1, seed },
      maxTokens: 24,
      stop: [],
      ignoreEos: false,
      grammar: { kind: "regex", pattern: "[0-9]{3}(,[0-9]{3}){2}" },
    }));
    assert.equal(finishReason, "stop");
    assert.match(text, /^[0-9]{3}(,[0-9]{3}){2}$/);
  }
});
