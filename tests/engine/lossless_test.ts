// Exhaustive: every number of steps with 112 prompts, of what tests/lossless/array_test.ts draws a part of in each run.
import assert from "node:assert/strict";
import type { KvDtype } from "../../src/gpu/kv.ts";
import type { Runner } from "../../src/engine/device/runner.ts";
import { openModels } from "../../src/engine/load/load.ts";
import { loadTokenizer } from "../../src/text/tokenizer.ts";
import { chatTemplate, renderChat } from "../../src/text/chat_template.ts";
import { GREEDY, type Sampling } from "../../src/speculate/sampling.ts";
import { generatedPrompt, PROMPT_KINDS } from "../prompts.ts";
import { decode, type Decoded, goldenCases, openFledgling, openWhole } from "./fledgling.ts";

const BATCH = 8;
const STEPS = [0, 1, 2, 3, 4, 5, 6, 7];

function promptIds(prompts: readonly string[]): number[][] {
  using models = openModels({ draft: "none" });
  const { checkpoint } = models.target;
  const config = checkpoint.json("tokenizer_config.json");
  const tokenizer = loadTokenizer("fledgling", checkpoint.json("tokenizer.json"), config);
  const template = chatTemplate(checkpoint.text("chat_template.jinja"), config) ?? "";
  return prompts.map((content) => {
    const chat = renderChat(template, [{ role: "user", content }], { addGenerationPrompt: true });
    return tokenizer.encode(chat, { addSpecialTokens: false });
  });
}

/** By the lengths of their answers: a group goes on until its longest has ended. */
function goldenPrompts(): number[][] {
  const cases = goldenCases().toSorted((a, b) => a.greedy_ids.length - b.greedy_ids.length);
  return cases.map(({ prompt_ids }) => prompt_ids);
}

type Head = "eagle3" | "eagle1";

/** Draft steps that a group of prompts is decoded at with a head. */
type Choice = (group: number, head: Head) => readonly number[];

/** Instead of the product: every prompt at every number of steps, with one of the heads in turn. */
const HEADS_IN_TURN: Choice = (group, head) =>
  STEPS.filter((steps) => (steps + group) % 2 === (head === "eagle3" ? 0 : 1));

/**
 * Instead of the product: every prompt decoded plainly beside one head, and with drafts of each head at
 * one number of steps, for two groups in turn: they have prompts of every kind. Over 14 groups each
 * setting meets all of them.
 */
const STEPS_IN_TURN: Choice = (group, head) =>
  head === "eagle3"
    ? [...group % 2 === 0 ? [0] : [], 1 + (group >> 1) % 7]
    : [...group % 2 === 1 ? [0] : [], 1 + ((group >> 1) + 3) % 7];

/** One runner for all tests with these keys and values. */
const cores = new Map<string, Promise<Runner>>();
Deno.test.afterAll(async () => {
  for (const runner of cores.values()) (await runner).gpu[Symbol.dispose]();
});

function coreOf(head: Head, kvDtype: KvDtype): Promise<Runner> {
  const open = () => openFledgling(head, BATCH, undefined, { kvDtype });
  return cores.getOrInsertComputed(`${head} ${kvDtype}`, open);
}

/**
 * Decodes the prompts in groups of BATCH at the settings chosen; all must give the tokens of the first.
 * Also with that many rounds without the host, one number for each num_steps. Prompts take the
 * samplings in turn. Returns which settings met prompts of which kind (`PROMPT_KINDS`).
 */
async function sameAtEverySetting(
  prompts: readonly (readonly number[])[],
  { most, sampling, choice = HEADS_IN_TURN, perSync = [1], kvDtype = "f32" }: {
    readonly most: number;
    readonly sampling: readonly Sampling[];
    readonly choice?: Choice;
    readonly perSync?: readonly number[];
    readonly kvDtype?: KvDtype;
  },
): Promise<Set<string>> {
  const plain = new Map<number, string>();
  const met = new Set<string>();
  for (const head of ["eagle3", "eagle1"] as const) {
    const runner = await coreOf(head, kvDtype);
    let drafted = 0;
    for (let first = 0; first < prompts.length; first += BATCH) {
      const group = prompts.slice(first, first + BATCH);
      using stack = new DisposableStack();
      const sequences = group.map(() => stack.use(openWhole(runner)));
      const samplings = group.map((_, i) => sampling[(first + i) % sampling.length] as Sampling);
      for (const numSteps of choice(first / BATCH, head)) {
        const together = perSync[numSteps % perSync.length] ?? 1;
        const how = { numSteps, most, sampling: samplings, perSync: together };
        const found = await decode(runner, sequences, group, how);
        drafted += found.reduce((sum, { accepted }) => sum + accepted.length * numSteps, 0);
        check(plain, first, found, `${head}, num_steps ${numSteps}, ${together} rounds per sync`);
        group.forEach((_, i) => met.add(`${head} ${numSteps} ${(first + i) % PROMPT_KINDS}`));
      }
    }
    assert.ok(drafted > 0);
  }
  return met;
}

function check(plain: Map<number, string>, first: number, found: readonly Decoded[], at: string) {
  for (const [i, { ids }] of found.entries()) {
    const wanted = plain.getOrInsert(first + i, ids.join());
    assert.equal(ids.join(), wanted, `prompt ${first + i} at ${at}`);
  }
}

Deno.test("greedy text is the same at num_steps 0 to 7 with both drafts: golden prompts", async () => {
  const prompts = goldenPrompts();
  await sameAtEverySetting(prompts, { most: 48, sampling: [GREEDY] });
});

Deno.test("greedy text is the same at num_steps 0 to 7 with both drafts: 112 prompts", async () => {
  const prompts = promptIds(Array.from({ length: 112 }, (_, n) => generatedPrompt(n)));
  const how = { most: 12, sampling: [GREEDY], choice: STEPS_IN_TURN };
  const met = await sameAtEverySetting(prompts, how);
  assert.equal(met.size, 2 * STEPS.length * PROMPT_KINDS);
});

Deno.test("greedy and sampled text is the same with 1 to 8 rounds per sync", async () => {
  const sampling = [GREEDY, { ...GREEDY, temperature: 0.8, seed: 5, topK: 20 }];
  const prompts = promptIds(Array.from({ length: BATCH }, (_, n) => generatedPrompt(n + 500)));
  const perSync = [1, 2, 3, 8, 5, 2, 3, 8];
  await sameAtEverySetting(prompts, { most: 20, sampling, perSync });
});

for (const kvDtype of ["f16", "bf16"] as const) {
  Deno.test(`greedy text is the same at num_steps 0 to 7 with both drafts: ${kvDtype} keys and values`, async () => {
    const prompts = goldenPrompts();
    await sameAtEverySetting(prompts, { most: 16, sampling: [GREEDY], kvDtype });
  });
}

Deno.test("sampled text is a function of the seed, whatever num_steps and draft", async () => {
  const filters = [
    {},
    { topK: 20 },
    { topP: 0.9 },
    { minP: 0.05 },
    { topK: 50, topP: 0.8, minP: 0.02 },
  ];
  const sampling = [0.5, 1, 1.5].flatMap((temperature, t) =>
    filters.map((filter, f) => ({ ...GREEDY, temperature, seed: 1000 * t + f, ...filter }))
  ).concat({ ...GREEDY, temperature: 1, seed: 0xffffffff });
  const prompts = promptIds(sampling.map((_, n) => generatedPrompt(n + 300)));
  await sameAtEverySetting(prompts, { most: 24, sampling });
});
