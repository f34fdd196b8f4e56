// A request's prediction beside every kind of drafter: the text of plain decoding, and what it brings.
import assert from "node:assert/strict";
import { pureDrafter } from "../../src/draft/host_drafter.ts";
import {
  type GenerateRequest,
  type GenerateResult,
  resultOf,
} from "../../src/engine/schedule/events.ts";
import { statically } from "../../src/engine/drafting.ts";
import { type LocalEngine, type LocalOptions, openEngine } from "./open.ts";
import { UsageError } from "../../src/errors.ts";
import { chain } from "../../src/speculate/round_shape.ts";
import { treeNamed } from "../../src/speculate/tree_shape.ts";
import { NO_PROPOSAL } from "../../src/speculate/trees.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { generatedPrompt } from "../prompts.ts";
import { assertNothingHeld } from "./held.ts";
import { drawn, exhaustive } from "../exhaustive.ts";

const MAX = 40;
const PROMPTS = [0, 5, 8, 12];
const FLEDGLING = new URL("../../models/fledgling/", import.meta.url).pathname;

function request(engine: LocalEngine, n: number): GenerateRequest {
  const content = generatedPrompt(PROMPTS[n] as number);
  const sampled = {
    ...GREEDY,
    temperature: 0.8,
    seed: n,
    topP: 0.9,
    frequencyPenalty: n === 3 ? 0.2 : 0,
  };
  return {
    promptIds: engine.text.encodePrompt({ messages: [{ role: "user", content }] }),
    sampling: n % 2 === 1 ? sampled : GREEDY,
    maxTokens: MAX,
    stop: [],
    ignoreEos: true,
  };
}

const plain = await (async () => {
  using engine = await openEngine({ model: { draft: "none" } });
  const outputs: (readonly number[])[] = [];
  for (const n of PROMPTS.keys()) {
    outputs.push((await resultOf(engine.submit(request(engine, n)))).outputIds);
  }
  return outputs;
})();

const outputOf = (n: number) => plain[n] ?? assert.fail();

/** Right but for a token replaced, two put in and three left out. */
function edited(ids: readonly number[]): number[] {
  return [
    ...ids.slice(0, 9),
    77,
    ...ids.slice(10, 20),
    78,
    79,
    ...ids.slice(20, 26),
    ...ids.slice(29),
  ];
}

/** The prediction of each of the requests, undefined where it has none. */
const PREDICTED:
  readonly (readonly ((ids: readonly number[]) => readonly number[] | undefined)[])[] = [
    [(ids) => ids],
    [edited, (ids) => ids],
    [(ids) => ids, () => undefined, edited, (ids) => ids.toReversed()],
  ];

async function together(
  engine: LocalEngine,
  predictions: readonly (readonly number[] | undefined)[],
): Promise<GenerateResult[]> {
  const results = await Promise.all(
    predictions.map((prediction, n) =>
      resultOf(engine.submit({ ...request(engine, n), ...prediction && { prediction } }))
    ),
  );
  assertNothingHeld(engine);
  return results;
}

const CASES: readonly [name: string, options: LocalOptions][] = [
  ["no draft", { model: { draft: "none" }, limits: { predictions: true } }],
  ["EAGLE-3", { hooks: { plan: statically(3) }, limits: { predictions: true } }],
  ["EAGLE-3, trees", {
    hooks: { plan: statically({ depth: 3, width: 2, rows: 6 }) },
    limits: { predictions: true },
  }],
  ["a policy that packs", {
    speculation: { speculate: { policy: "adaptive-verify" } },
    limits: { predictions: true },
  }],
  [
    "EAGLE-1",
    {
      model: { draft: `${FLEDGLING}eagle1`, model: `${FLEDGLING}target` },
      hooks: { plan: statically(2) },
      limits: { predictions: true },
    },
  ],
  ["NGRAM", { model: { algorithm: "NGRAM" } }],
  ["SUFFIX", { model: { algorithm: "SUFFIX" }, limits: { predictions: true } }],
  ["HYBRID", { model: { algorithm: "HYBRID" }, hooks: { plan: statically(3, [0, 3]) } }],
  [
    "STANDALONE",
    {
      model: { draft: `${FLEDGLING}target`, algorithm: "STANDALONE" },
      hooks: { plan: statically(2) },
      limits: { predictions: true },
    },
  ],
];

for (const [name, options] of CASES) {
  // tests/lossless predicts beside every drafter.
  const { test } = name === "NGRAM" ? Deno : drawn;
  test(`${name}: the text of plain decoding whatever is predicted, batch 1 to 4`, async () => {
    using engine = await openEngine({ ...options, limits: { ...options.limits, maxBatch: 4 } });
    for (const [round, kinds] of PREDICTED.entries()) {
      const predictions = kinds.map((kind, n) => kind(outputOf(n)));
      const results = await together(engine, predictions);
      for (const [n, { outputIds, prediction, speculative }] of results.entries()) {
        assert.deepEqual(outputIds, outputOf(n), `prompt ${n}`);
        assert.equal(prediction === undefined, predictions[n] === undefined);
        const { drafted = 0, accepted = 0 } = prediction ?? {};
        assert.ok(accepted <= drafted && drafted <= speculative.draft_tokens);
        assert.ok(accepted <= speculative.accepted_tokens);
      }
      // The first is predicted as it comes, or nearly so. Later ones SUFFIX remembers.
      const { prediction, speculative } = results[0] ?? assert.fail();
      assert.ok((prediction?.accepted ?? 0) >= (round === 0 ? MAX / 2 : 1));
      assert.ok(speculative.accepted_tokens >= MAX / 2);
      assert.ok(speculative.rounds <= MAX / 3, `${speculative.rounds}`);
    }
  });
}

exhaustive.test("beside chains that are verified by rejection sampling greedy text stays", async () => {
  using engine = await openEngine({
    model: { draft: `${FLEDGLING}target`, algorithm: "STANDALONE" },
    speculation: { rejection: "token" },
    hooks: { plan: statically(2) },
    limits: { predictions: true, maxBatch: 2 },
  });
  for (const predicted of [outputOf(0), edited(outputOf(0))]) {
    const [first, second] = await Promise.all([
      { ...request(engine, 0), prediction: predicted },
      request(engine, 2),
    ].map((asked) => resultOf(engine.submit(asked))));
    assert.deepEqual([first?.outputIds, second?.outputIds], [outputOf(0), outputOf(2)]);
    assert.ok((first?.prediction?.accepted ?? 0) > 10);
  }
});

exhaustive.test("few pages: what is preempted is drafted for as before", async () => {
  using engine = await openEngine({
    hooks: { plan: statically(3) },
    limits: { predictions: true, maxBatch: 4, maxKvTokens: 144, contextLength: 112 },
  });
  const results = await together(engine, PROMPTS.map((_, n) => edited(outputOf(n))));
  assert.deepEqual(results.map(({ outputIds }) => outputIds), plain);
  assert.ok(engine.counts.preemptions > 0);
});

Deno.test("requests without a prediction have the rounds that they have in other engines", async () => {
  const rounds = async (predictions: boolean) => {
    using engine = await openEngine({ hooks: { plan: statically(3) }, limits: { predictions } });
    const [{ speculative, drafts }] = await together(engine, [undefined]) as [GenerateResult];
    return { speculative, drafts };
  };
  assert.deepEqual(await rounds(true), await rounds(false));
});

drawn.test("under a grammar what is not allowed is left out of the prediction", async () => {
  const grammar = { kind: "regex", pattern: "(one|two), three, four, five" } as const;
  const texts = async (options: LocalOptions, predictions: readonly (string | undefined)[]) => {
    using engine = await openEngine({
      ...options,
      limits: { ...options.limits, constrained: true },
    });
    const found: string[] = [];
    for (const predicted of predictions) {
      const prediction = predicted === undefined
        ? {}
        : { prediction: engine.text.encodePrompt({ raw: predicted, addSpecialTokens: false }) };
      const asked = { ...request(engine, 0), ignoreEos: false, grammar, ...prediction };
      found.push((await resultOf(engine.submit(asked))).text);
    }
    return found;
  };
  const [text = assert.fail()] = await texts({ model: { draft: "none" } }, [undefined]);
  const predictions = [text, `${text} and six`, "one, three, two"];
  const drafts: LocalOptions[] = [{ model: { draft: "none" } }, { hooks: { plan: statically(3) } }];
  for (const draft of drafts) {
    const found = await texts({ ...draft, limits: { predictions: true } }, predictions);
    assert.deepEqual(found, predictions.map(() => text));
  }
});

Deno.test("no drafts where none are asked for", async () => {
  using engine = await openEngine({ model: { draft: "none" }, limits: { predictions: true } });
  const { outputIds, prediction, speculative } = await resultOf(
    engine.submit({ ...request(engine, 0), prediction: outputOf(0), numSteps: 0 }),
  );
  assert.deepEqual(outputIds, outputOf(0));
  assert.deepEqual(prediction, { drafted: 0, accepted: 0 });
  assert.equal(speculative.draft_tokens, 0);
});

Deno.test("rounds of predictions do not raise the steps that a request may ask for", async () => {
  for (const [shape, most] of [[3, 3], [treeNamed("3:2:6"), 0]] as const) {
    using engine = await openEngine({
      hooks: { plan: statically(shape) },
      limits: { predictions: true },
    });
    const asked = async (numSteps: number) =>
      await resultOf(engine.submit({ ...request(engine, 0), numSteps, maxTokens: 1 }));
    await asked(most);
    await assert.rejects(() => asked(most + 1), { message: /^Cannot generate with . draft steps/ });
  }
});

Deno.test("a prediction that cannot be used is refused", async () => {
  const refused = async (engine: LocalEngine, prediction: readonly number[], message: RegExp) =>
    await assert.rejects(
      async () => await resultOf(engine.submit({ ...request(engine, 0), prediction })),
      (error) => error instanceof UsageError && message.test(error.message),
    );
  using engine = await openEngine({ model: { draft: "none" }, limits: { predictions: true } });
  await refused(engine, [5, 1e6], /the prediction has token id 1000000 at position 1/);
  await refused(engine, [0.5], /the prediction has token id 0.5/);
  using without = await openEngine({});
  await refused(without, [5], /Cannot draft from a prediction: the engine was opened for none/);
  const drafter = pureDrafter({ name: "none", shapes: [chain(1)], propose: () => NO_PROPOSAL });
  using own = await openEngine({
    hooks: { drafter },
    model: { draft: "none" },
    limits: { predictions: true },
  });
  await refused(own, [5], /opened for none/);
});
