import assert from "node:assert/strict";
import type { KvDtype } from "../../src/gpu/kv.ts";
import { openModels } from "../../src/engine/load/load.ts";
import { loadTokenizer } from "../../src/text/tokenizer.ts";
import { chatTemplate, renderChat } from "../../src/text/chat_template.ts";
import { GREEDY, type Sampling } from "../../src/speculate/sampling.ts";
import { generatedPrompt } from "../prompts.ts";
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

/**
 * Decodes every prompt at every num_steps with both drafts; all must give the tokens of the first.
 * Also with that many rounds without the host, one number for each num_steps.
 */
async function sameAtEverySetting(
  prompts: readonly (readonly number[])[],
  { most, sampling, perSync = [1], kvDtype }: {
    readonly most: number;
    readonly sampling: readonly Sampling[];
    readonly perSync?: readonly number[];
    readonly kvDtype?: KvDtype;
  },
): Promise<void> {
  const plain = new Map<number, string>();
  for (const kind of ["eagle3", "eagle1"] as const) {
    const core = await openFledgling(kind, BATCH, undefined, kvDtype ? { kvDtype } : {});
    let drafted = 0;
    for (let first = 0; first < prompts.length; first += BATCH) {
      const group = prompts.slice(first, first + BATCH);
      using stack = new DisposableStack();
      const sequences = group.map(() => stack.use(openWhole(core)));
      for (const numSteps of STEPS) {
        const together = perSync[numSteps % perSync.length] ?? 1;
        const how = { numSteps, most, sampling, perSync: together };
        const found = await decode(core, sequences, group, how);
        drafted += found.reduce((sum, { accepted }) => sum + accepted.length * numSteps, 0);
        check(plain, first, found, `${kind}, num_steps ${numSteps}, ${together} rounds per sync`);
      }
    }
    assert.ok(drafted > 0);
    core.gpu[Symbol.dispose]();
  }
}

function check(plain: Map<number, string>, first: number, found: readonly Decoded[], at: string) {
  for (const [i, { ids }] of found.entries()) {
    const wanted = plain.getOrInsert(first + i, ids.join());
    assert.equal(ids.join(), wanted, `prompt ${first + i} at ${at}`);
  }
}

Deno.test("greedy text is the same at num_steps 0 to 7 with both drafts: golden prompts", async () => {
  const prompts = goldenCases().map(({ prompt_ids }) => prompt_ids);
  await sameAtEverySetting(prompts, { most: 48, sampling: [GREEDY] });
});

Deno.test("greedy text is the same at num_steps 0 to 7 with both drafts: 200 prompts", async () => {
  const prompts = promptIds(Array.from({ length: 200 }, (_, n) => generatedPrompt(n)));
  await sameAtEverySetting(prompts, { most: 12, sampling: [GREEDY] });
});

Deno.test("greedy and sampled text is the same with 1 to 8 rounds per sync", async () => {
  const sampling = [GREEDY, { ...GREEDY, temperature: 0.8, seed: 5, topK: 20 }];
  const prompts = promptIds(Array.from({ length: BATCH }, (_, n) => generatedPrompt(n + 500)));
  const perSync = [1, 2, 3, 8, 5, 2, 3, 8];
  await sameAtEverySetting(prompts, { most: 20, sampling, perSync });
});

for (const kvDtype of ["f16", "bf16"] as const) {
  Deno.test(`greedy text is the same at num_steps 0 to 7 with both drafts: ${kvDtype} keys and values`, async () => {
    const prompts = goldenCases().map(({ prompt_ids }) => prompt_ids);
    await sameAtEverySetting(prompts, { most: 24, sampling: [GREEDY], kvDtype });
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
  // Groups of BATCH take the settings in order, so every prompt has its own.
  for (let first = 0; first < prompts.length; first += BATCH) {
    await sameAtEverySetting(prompts.slice(first, first + BATCH), {
      most: 24,
      sampling: sampling.slice(first, first + BATCH),
    });
  }
});
