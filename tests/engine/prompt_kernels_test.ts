/**
 * Forwards of prompts with kernels of their own, whose bits rounds do not have: the text is that of the prompt stored
 * by the ones and the answer by the others, whatever is cached, preempted or stored together. Here the kernels differ
 * by a model's epsilon of norms, so that every cell stored by the wrong ones shows.
 */
import assert from "node:assert/strict";
import type { PromptTarget } from "../../src/engine/device/models.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import { drawn } from "../exhaustive.ts";
import { assertNextTurns, assertPreempted, generate, idsOf } from "./greedy.ts";
import { assertNothingHeld } from "./held.ts";
import { type LocalEngine, type LocalOptions, openEngine } from "./open.ts";
import { folderOf } from "./speculated.ts";

const promptTarget: PromptTarget = (target) => ({
  ...target,
  config: { ...target.config, rmsNormEps: 0.2 },
});

function open(
  name: string,
  limits: NonNullable<LocalOptions["limits"]>,
  hooks: NonNullable<LocalOptions["hooks"]> = { promptTarget },
): Promise<LocalEngine> {
  if (name === "fledgling") return openEngine({ limits: { ...limits, maxBatch: 3 }, hooks });
  const random = { target: `${folderOf(name)}/config.json` };
  return openEngine({ model: { random, algorithm: "NGRAM" }, limits, hooks });
}

/** One request at a time, without a cache, in forwards that hold any prompt of these tests. */
function openPlain(name: string, hooks?: NonNullable<LocalOptions["hooks"]>): Promise<LocalEngine> {
  const limits = { prefixCache: false, contextLength: 512, maxBatchedRows: 1024 };
  return open(name, limits, hooks);
}

for (const name of ["fledgling", "qwen3_5", "lfm2", "gpt_oss"]) {
  const { test } = name === "lfm2" ? drawn : Deno;

  test(`${name}: later turns find prompts in the cache, not answers, and have the text without a cache`, async () => {
    using engine = await open(name, { maxBatch: 2, contextLength: 512 });
    using plain = await openPlain(name);
    using other = await openPlain(name, {});
    let ids: readonly number[] = idsOf(70, 1);
    let [prompt, differs] = [0, false];
    for (let turn = 0; turn < 4; turn++) {
      const found = await generate(engine, ids, 21 + turn);
      const expected = await generate(plain, ids, 21 + turn);
      assert.deepEqual(found.outputIds, expected.outputIds, `turn ${turn}`);
      assert.ok(found.cachedTokens <= prompt, `${found.cachedTokens} of a prompt of ${prompt}`);
      assert.ok(found.cachedTokens >= prompt - 2 * PAGE, `${found.cachedTokens} of ${prompt}`);
      const elsewhere = await generate(other, ids, 21 + turn);
      differs ||= `${elsewhere.outputIds}` !== `${expected.outputIds}`;
      prompt = ids.length;
      ids = [...ids, ...found.outputIds, ...idsOf(9, turn)];
    }
    assert.ok(differs, "the kernels make no difference");
    assertNothingHeld(engine);
  });

  test(`${name}: preempted answers are stored again by the kernels of rounds`, async () => {
    using engine = await open(name, {
      maxBatch: 3,
      maxKvTokens: name === "gpt_oss" ? 368 : 256,
      contextLength: 160,
      maxBatchedRows: 16,
    });
    using plain = await openPlain(name);
    const answers = await assertPreempted(engine, plain);
    // Preemption cached parts of answers, which are no part of a later prompt.
    await assertNextTurns(engine, plain, answers);
    assertNothingHeld(engine);
  });
}

Deno.test("an engine without such kernels says so", async () => {
  using engine = await open("fledgling", {}, {});
  assert.equal(engine.runner.promptKernels, false);
});
