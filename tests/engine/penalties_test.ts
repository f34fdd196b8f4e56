// Penalties and biases: with drafts, whoever makes them, the text of plain decoding with them.
import assert from "node:assert/strict";
import { statically } from "../../src/engine/drafting.ts";
import { type LocalEngine, type LocalOptions, openEngine } from "./open.ts";
import {
  type GenerateRequest,
  type GenerateResult,
  resultOf,
} from "../../src/engine/schedule/events.ts";
import { UsageError } from "../../src/errors.ts";
import { openGpu } from "../gpu/shared.ts";
import { GREEDY, type Sampling } from "../../src/speculate/sampling.ts";
import { generatedPrompt } from "../prompts.ts";
import { decode, goldenCases, openFledgling, openWhole } from "./fledgling.ts";
import { resultsOf } from "./held.ts";
import { knowingDrafter } from "./knowing_drafter.ts";
import { drawn, exhaustive } from "../exhaustive.ts";

/** The largest of their ranges. */
const STRONGEST = { repetitionPenalty: 10, frequencyPenalty: 2, presencePenalty: 2 };

const SAMPLINGS: readonly Sampling[] = [
  { ...GREEDY, repetitionPenalty: 2, frequencyPenalty: 0.5 },
  GREEDY,
  { ...GREEDY, temperature: 0.9, topK: 30, seed: 4, presencePenalty: 0.8, logitBias: { 40: 3 } },
  { ...GREEDY, ...STRONGEST },
];

exhaustive.test("penalties: the same text at num_steps 0 to 7 with both drafts, 1 to 8 rounds per sync", async () => {
  const tasks = ["count", "table", "to_json", "story"]; // they repeat tokens
  const prompts = goldenCases().filter(({ task }) => tasks.includes(task))
    .map(({ prompt_ids }) => prompt_ids);
  const gpu = await openGpu();
  let plain: string[] | undefined;
  for (const head of ["eagle3", "eagle1"] as const) {
    const runner = await openFledgling(head, prompts.length, gpu);
    using stack = new DisposableStack();
    const sequences = prompts.map(() => stack.use(openWhole(runner)));
    let accepted = 0;
    for (const [numSteps, perSync] of [1, 3, 2, 8, 1, 5, 2, 3].entries()) {
      if (head === "eagle1" && numSteps % 2 === 0) continue;
      const how = { numSteps, perSync, most: 22, sampling: SAMPLINGS };
      const found = await decode(runner, sequences, prompts, how);
      accepted += found.reduce((sum, one) => sum + one.accepted.reduce((a, b) => a + b, 0), 0);
      const texts = found.map(({ ids }) => ids.join());
      plain ??= texts;
      assert.deepEqual(texts, plain, `${head}, num_steps ${numSteps}, ${perSync} rounds per sync`);
    }
    assert.ok(accepted > 30, `${accepted} accepted`);
  }
  const last = (plain?.at(-1) ?? "").split(",");
  assert.equal(new Set(last).size, last.length, "a token came twice");
  assert.ok(last.length > 20, `${last.length} tokens`);
  gpu[Symbol.dispose]();
});

function request(engine: LocalEngine, n: number): GenerateRequest {
  const content = generatedPrompt(n);
  return {
    promptIds: engine.text.encodePrompt({ messages: [{ role: "user", content }] }),
    sampling: SAMPLINGS[n % SAMPLINGS.length] ?? GREEDY,
    maxTokens: 32,
    stop: [],
    ignoreEos: true,
  };
}

function outputs(engine: LocalEngine, which: readonly number[]): Promise<GenerateResult[]> {
  return resultsOf(engine, which.map((n) => request(engine, n)));
}

const COUNT = 6;
const ALL = Array.from({ length: COUNT }, (_, n) => n);

/** What plain decoding makes of each request by itself. */
const plain = await (async () => {
  using engine = await openEngine({ model: { draft: "none" } });
  const found: GenerateResult[] = [];
  for (const n of ALL) found.push(...await outputs(engine, [n]));
  return found;
})();

async function assertSame(options: LocalOptions, which: readonly number[]): Promise<LocalEngine> {
  const engine = await openEngine(options);
  const found = await outputs(engine, which);
  assert.deepEqual(
    found.map(({ outputIds }) => outputIds.join()),
    which.map((n) => plain[n]?.outputIds.join()),
  );
  return engine;
}

Deno.test("penalties change a text; those who have none get theirs beside them", async () => {
  using engine = await openEngine({ model: { draft: "none" } });
  for (const n of [1, 3, 4]) {
    const asked = { ...request(engine, n), sampling: GREEDY };
    const { outputIds } = await resultOf(engine.submit(asked));
    assert.equal(outputIds.join() === plain[n]?.outputIds.join(), n === 1);
  }
});

drawn.test("penalties: trees from the host, batch 1 to 4", async () => {
  const drafter = knowingDrafter(plain);
  for (const which of [[0], [0, 1, 2, 3]]) {
    using engine = await assertSame({
      model: { draft: "none" },
      hooks: { drafter },
      limits: { maxBatch: 4 },
    }, which);
    assert.ok(engine.runner.created.modules > 0);
  }
});

Deno.test("penalties: what is counted comes back after a preemption", async () => {
  const few: LocalOptions = {
    limits: { maxBatch: 4, maxKvTokens: 192, roundsPerSync: 3 },
    hooks: { plan: statically(3) },
  };
  using engine = await assertSame(few, ALL);
  assert.ok(engine.counts.preemptions > 0, `${engine.counts.preemptions} preemptions`);
});

Deno.test("penalties: a bias on what is no token is refused", async () => {
  using engine = await openEngine({ model: { draft: "none" } });
  const asked = request(engine, 0);
  const sampling = { ...GREEDY, logitBias: { 2048: 1 } };
  await assert.rejects(resultOf(engine.submit({ ...asked, sampling })), {
    name: UsageError.name,
    message: 'Cannot bias token id 2048: "fledgling/target" has ids 0 to 2047',
  });
});

exhaustive.test("penalties: trees from the device", async () => {
  for (
    const [tree, which] of [
      [{ depth: 4, width: 4, rows: 12 }, [0, 1, 2, 3]],
      [{ depth: 7, width: 10, rows: 60 }, [0, 2]],
    ] as const
  ) {
    const speculate = statically(tree);
    using _ = await assertSame(
      {
        limits: { maxBatch: which.length, maxKvTokens: 320, roundsPerSync: 3 },
        hooks: { plan: speculate },
      },
      which,
    );
  }
});
