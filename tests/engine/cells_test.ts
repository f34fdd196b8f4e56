// Attention has workgroups for the cells that slots have pages for, not for those of a whole context.

import assert from "node:assert/strict";
import type { Runner } from "../../src/engine/device/runner.ts";
import { openRunner } from "../../src/engine/device/device_runner.ts";
import {
  type OpenSequence,
  openSequence,
  prefillPrompt,
} from "../../src/engine/device/single_sequence.ts";
import { maxCells } from "../../src/engine/device/sequence.ts";
import { loadRandomWeights, openRandomModels } from "../../src/engine/load/random_models.ts";
import type { PromptSpec } from "../../src/engine/device/programs.ts";
import type { RoundSpec } from "../../src/engine/device/round_plans.ts";
import type { Program } from "../../src/gpu/program.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import { chain, chains } from "../../src/speculate/round_shape.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { openDevice } from "../gpu/device.ts";
import { exhaustive } from "../exhaustive.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

// 8 heads of 32 on one key-value head: more than software keeps in registers, so keys go in chunks.
const TARGET = {
  architectures: ["LlamaForCausalLM"],
  model_type: "llama",
  hidden_size: 64,
  intermediate_size: 96,
  num_hidden_layers: 6,
  num_attention_heads: 8,
  num_key_value_heads: 1,
  head_dim: 32,
  vocab_size: 301,
  max_position_embeddings: 1024,
};
const DRAFT = {
  ...TARGET,
  architectures: ["LlamaForCausalLMEagle3"],
  num_hidden_layers: 1,
  draft_vocab_size: 301,
};
const CONTEXT = 1024;

async function open(): Promise<Runner> {
  const folder = await Deno.makeTempDir({ prefix: "eyrie-test-" });
  try {
    const [target, draft] = [`${folder}/target.json`, `${folder}/draft.json`];
    await Deno.writeTextFile(target, JSON.stringify(TARGET));
    await Deno.writeTextFile(draft, JSON.stringify(DRAFT));
    using models = openRandomModels({ target, draft });
    return await openRunner(device.gpu, await loadRandomWeights(device.gpu, models, 3), {
      batch: 2,
      shapes: chains([3]),
      prefillRows: 256,
      contextLength: CONTEXT,
      pages: 2 * (CONTEXT + 2 * 4) / PAGE,
    });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

function prompt(length: number, seed: number): number[] {
  return Array.from({ length }, (_, i) => (i * i * 7 + i * seed + seed) % 301);
}

async function prompted(runner: Runner, ids: readonly number[]): Promise<OpenSequence> {
  const sequence = openSequence(runner);
  assert.ok(runner.reserve(sequence, ids.length + 1));
  runner.setSampling(sequence, GREEDY);
  await prefillPrompt(runner, sequence, ids);
  return sequence;
}

/** Tokens of two sequences, whose pages grow from under 256 cells to more, and to over 512. */
async function decode(runner: Runner): Promise<{ tokens: number[][]; cells: Set<number> }> {
  const tokens: number[][] = [];
  const cells = new Set<number>();
  for (const [from, to] of [[216, 264], [472, 520]] as const) {
    using short = await prompted(runner, prompt(40, 5));
    using long = await prompted(runner, prompt(from, 11));
    while (long.stored < to) {
      for (const each of [short, long]) assert.ok(runner.reserve(each, each.stored + 8 * 4));
      cells.add(maxCells([short, long]));
      await runner.rounds([short, long], { shape: chain(3), count: 8 });
    }
    tokens.push(...[short, long].map(({ ids, stored }) => ids.slice(0, stored)));
  }
  return { tokens, cells };
}

/** The one number of workgroups for cells that a program's steps have. */
function groupsOf({ steps }: Program): number | undefined {
  const counts = new Set(
    steps.filter(({ cellsEach }) => cellsEach !== undefined).map(({ workgroups: [, , z] }) => z),
  );
  assert.equal(counts.size, 1);
  return [...counts][0];
}

Deno.test("few cells: attention's workgroups cover what slots have pages for", async () => {
  const runner = await open();
  const at = async (cells?: number) =>
    groupsOf(
      (await runner.programs.round({
        batch: 1,
        ...chain(3),
        ...cells === undefined ? {} : { cells },
      }))
        .verify,
    );
  const whole = Math.ceil((CONTEXT + 2 * 4) / 64);
  assert.equal(await at(), whole);
  assert.equal(await at(16), 4);
  assert.equal(await at(257), 8);
  assert.equal(await at(CONTEXT + 2 * 4), whole);
  const work = (cells: number) => runner.programs.round({ batch: 1, ...chain(3), cells });
  assert.equal(await work(300), await work(500));
});

exhaustive.test("few cells: the same tokens as with workgroups for a whole context", async () => {
  const runner = await open();
  const { tokens, cells } = await decode(runner);
  assert.ok(Math.min(...cells) <= 256 && Math.max(...cells) > 512, `${[...cells]}`);
  const whole = await open();
  const { round, prompt } = whole.programs;
  Object.assign(whole.programs, {
    round: ({ cells: _, ...of }: RoundSpec & { cells?: number }) => round(of),
    prompt: ({ cells: _, ...of }: PromptSpec & { cells?: number }) => prompt(of),
  });
  assert.deepEqual((await decode(whole)).tokens, tokens);
});
