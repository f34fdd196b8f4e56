// Models whose layers are more than Llama's: tokens that the host proposes, right and wrong at every place, decode as
// plainly.
import assert from "node:assert/strict";
import { openRunner } from "../../src/engine/device/device_runner.ts";
import type { Runner } from "../../src/engine/device/runner.ts";
import { openSequence, prefillPrompt } from "../../src/engine/device/single_sequence.ts";
import { loadWeights, openModels } from "../../src/engine/load/load.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import { openTensorFile } from "../../src/model/files/tensor_files.ts";
import { chain, chains, type DraftShape, isChain } from "../../src/speculate/round_shape.ts";
import { treeNamed } from "../../src/speculate/tree_shape.ts";
import type { Proposal } from "../../src/speculate/trees.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { chainOf } from "../reference/trees.ts";
import { exhaustive } from "../exhaustive.ts";
import { openGpu } from "../gpu/shared.ts";
import { museGlimmerFolder } from "./muse_glimmer.ts";
import { folderOf } from "./speculated.ts";

/** Queries of most positions are scaled. */
const SCALED = {
  rope_type: "default",
  rope_theta: 10_000,
  llama_4_scaling_beta: 0.1,
  original_max_position_embeddings: 8,
};

/** Goldens, some with other fields in config.json: then the text is another one. */
const MODELS: readonly { readonly name: string; readonly change?: Record<string, unknown> }[] = [
  { name: "olmo3" },
  { name: "exaone4" },
  { name: "glm4_moe_lite" },
  { name: "ministral3", change: { rope_parameters: SCALED } },
  { name: "mistral4", change: { rope_parameters: SCALED } },
  { name: "muse_glimmer" },
  { name: "gemma4_dense" },
  { name: "gemma4_e" },
  { name: "gemma4_moe" },
];
const STEPS = 3;
const TREE = treeNamed("3:2:7");
/** Has layers that read keys and values of others, whose cells move once. */
const SHARING = "gemma4_e";
const BATCH = 4;
const MAX = 20;
const CELLS = 64;

for (const kernels of ["software", "hardware"]) {
  // A software adapter takes long to compile the others.
  const { test } = kernels === "software" ? Deno : exhaustive;
  test(`proposals of the host decode as plainly, batches of 1 and 4, ${kernels} kernels`, async (t) => {
    for (const { name, change } of MODELS) {
      await t.step(name, async () => {
        await using folder = await changed(name, change);
        const { prompts, greedy } = golden(name);
        const runner = await open(folder.path, kernels === "software");
        const plain = await decode(runner, prompts);
        if (greedy && !change) assert.deepEqual(plain[0], greedy.slice(0, MAX));
        assert.deepEqual(await decode(runner, prompts, plain), plain);
        assert.deepEqual(await decode(runner, prompts.slice(0, 1), plain), plain.slice(0, 1));
        if (name === SHARING) assert.deepEqual(await decode(runner, prompts, plain, TREE), plain);
        runner.gpu[Symbol.dispose]();
      });
    }
  });
}

async function open(model: string, software: boolean): Promise<Runner> {
  const opened = await openGpu();
  const gpu = { ...opened, info: { ...opened.info, software } };
  using models = openModels({ model, draft: "none" });
  return await openRunner(gpu, await loadWeights(gpu, models), {
    batch: BATCH,
    shapes: [...chains([0, STEPS]), TREE],
    treeShapes: [TREE],
    prefillRows: 64,
    contextLength: 48,
    pages: BATCH * CELLS / PAGE,
  });
}

/** The golden's folder, or one for a while with other fields in its config. */
async function changed(
  name: string,
  change?: Readonly<Record<string, unknown>>,
): Promise<{ readonly path: string } & AsyncDisposable> {
  if (name === "muse_glimmer") return await museGlimmerFolder();
  const from = folderOf(name);
  if (!change) return { path: from, [Symbol.asyncDispose]: () => Promise.resolve() };
  const path = await Deno.makeTempDir({ prefix: "eyrie-test-" });
  const json = JSON.parse(await Deno.readTextFile(`${from}/config.json`));
  await Deno.writeTextFile(`${path}/config.json`, JSON.stringify({ ...json, ...change }));
  await Deno.copyFile(`${from}/model.safetensors`, `${path}/model.safetensors`);
  return { path, [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }) };
}

/**
 * The greedy text of each prompt. With `known` texts each round verifies the tokens to come. The first, the second,
 * the third or none of them is wrong, in turn, so that 0 to 3 are accepted. In trees each has another token as its
 * first sibling.
 */
async function decode(
  runner: Runner,
  prompts: readonly (readonly number[])[],
  known?: readonly (readonly number[])[],
  shape: DraftShape = chain(STEPS),
): Promise<number[][]> {
  using stack = new DisposableStack();
  const sequences = prompts.map(() => stack.use(openSequence(runner)));
  const outputs: number[][] = [];
  for (const [i, sequence] of sequences.entries()) {
    assert.ok(runner.reserve(sequence, CELLS));
    runner.setSampling(sequence, GREEDY);
    outputs.push([await prefillPrompt(runner, sequence, prompts[i] as number[])]);
  }
  const accepted = new Set<number>();
  for (let round = 0; outputs.some(({ length }) => length < MAX); round++) {
    const proposals = known && outputs.map(({ length }, i) => {
      const next = known[i]?.slice(length, length + STEPS) ?? [];
      const wrong = (round + i) % (STEPS + 1);
      const tokens = next.map((id, at) => at === wrong ? id ^ 1 : id);
      return isChain(shape) ? chainOf(tokens) : secondChildren(tokens);
    });
    const [found] = await runner.rounds(
      sequences,
      proposals ? { shape, count: 1, proposals, deviceDepth: 0 } : { shape: chain(0), count: 1 },
    );
    for (const [i, { ids, accepted: count }] of (found?.sequences ?? []).entries()) {
      accepted.add(count);
      outputs[i]?.push(...ids);
    }
  }
  if (known) assert.deepEqual([...accepted].toSorted(), [0, 1, 2, 3]);
  return outputs.map((ids) => ids.slice(0, MAX));
}

/** A tree in which each token is the second child of the one before: accepted tokens move to other cells. */
function secondChildren(tokens: readonly number[]): Proposal {
  return {
    tokens: tokens.flatMap((id) => [id ^ 2, id]),
    parents: tokens.flatMap((_, level) => [2 * level, 2 * level]),
  };
}

/** Prompts of the golden's ids, and the text that transformers made of the first; other prompts where there is none. */
function golden(
  name: string,
): { readonly prompts: number[][]; readonly greedy: number[] | undefined } {
  if (name === "muse_glimmer") {
    const ids = [3, 17, 42, 5, 60, 9, 33, 150, 2, 88, 101, 7, 64, 19, 20, 21, 140, 77];
    return { prompts: [ids.slice(0, 8), [5, 5, 1], ids, ids.slice(5, 16)], greedy: undefined };
  }
  using file = openTensorFile(`${folderOf(name)}/expected.safetensors`);
  const ids = (tensor: string) => {
    const info = file.tensors.get(tensor) ?? assert.fail(tensor);
    const bytes = new Uint8Array(info.size);
    file.read(info, 0, bytes);
    return [...new Int32Array(bytes.buffer)];
  };
  const [input, greedy] = [ids("input_ids"), ids("greedy_ids")];
  return {
    prompts: [greedy.slice(0, 8), input.slice(0, 3), input.slice(2, 20), input.slice(5, 16)],
    greedy: greedy.slice(8),
  };
}
