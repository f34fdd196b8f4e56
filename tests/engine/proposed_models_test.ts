// Models whose layers are more than Llama's: tokens that the host proposes, right and wrong at every place, decode as plainly.
import assert from "node:assert/strict";
import { openRunner } from "../../src/engine/device/device_runner.ts";
import type { Runner } from "../../src/engine/device/runner.ts";
import { openSequence, prefillPrompt } from "../../src/engine/device/single_sequence.ts";
import { loadWeights, openModels } from "../../src/engine/load/load.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import { openTensorFile } from "../../src/model/files/tensor_files.ts";
import { chain, chains } from "../../src/speculate/round_shape.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { chainOf } from "../reference/trees.ts";
import { exhaustive } from "../exhaustive.ts";
import { openGpu } from "../gpu/shared.ts";
import { folderOf } from "./speculated.ts";

const NAMES = ["olmo3", "exaone4", "glm4_moe_lite"];
const STEPS = 3;
const BATCH = 4;
const MOST = 20;
const CELLS = 64;

for (const kernels of ["software", "hardware"]) {
  // A software adapter takes long to compile the others.
  const { test } = kernels === "software" ? Deno : exhaustive;
  test(`proposals of the host decode as plainly, batches of 1 and 4, ${kernels} kernels`, async (t) => {
    for (const name of NAMES) {
      await t.step(name, async () => {
        const { prompts, greedy } = golden(name);
        const core = await open(name, kernels === "software");
        const plain = await decode(core, prompts);
        assert.deepEqual(plain[0], greedy.slice(0, MOST));
        assert.deepEqual(await decode(core, prompts, plain), plain);
        assert.deepEqual(await decode(core, prompts.slice(0, 1), plain), plain.slice(0, 1));
        core.gpu[Symbol.dispose]();
      });
    }
  });
}

async function open(name: string, software: boolean): Promise<Runner> {
  const opened = await openGpu();
  const gpu = { ...opened, info: { ...opened.info, software } };
  using models = openModels({ model: folderOf(name), draft: "none" });
  return await openRunner(gpu, await loadWeights(gpu, models), {
    batch: BATCH,
    shapes: chains([0, STEPS]),
    prefillRows: 64,
    contextLength: 48,
    pages: BATCH * CELLS / PAGE,
  });
}

/**
 * The greedy text of each prompt. With `known` texts each round verifies the tokens to come, of which one is
 * wrong: the first, the second, the third or none, in turn, so that 0 to 3 are accepted.
 */
async function decode(
  core: Runner,
  prompts: readonly (readonly number[])[],
  known?: readonly (readonly number[])[],
): Promise<number[][]> {
  using stack = new DisposableStack();
  const sequences = prompts.map(() => stack.use(openSequence(core)));
  const outputs: number[][] = [];
  for (const [i, sequence] of sequences.entries()) {
    assert.ok(core.reserve(sequence, CELLS));
    core.setSampling(sequence, GREEDY);
    outputs.push([await prefillPrompt(core, sequence, prompts[i] as number[])]);
  }
  const accepted = new Set<number>();
  for (let round = 0; outputs.some(({ length }) => length < MOST); round++) {
    const proposals = known && outputs.map(({ length }, i) => {
      const next = known[i]?.slice(length, length + STEPS) ?? [];
      const wrong = (round + i) % (STEPS + 1);
      return chainOf(next.map((id, at) => at === wrong ? id ^ 1 : id));
    });
    const [found] = await core.rounds(
      sequences,
      proposals
        ? { shape: chain(STEPS), count: 1, proposals, deviceDepth: 0 }
        : { shape: chain(0), count: 1 },
    );
    for (const [i, { ids, accepted: count }] of (found?.sequences ?? []).entries()) {
      accepted.add(count);
      outputs[i]?.push(...ids);
    }
  }
  if (known) assert.deepEqual([...accepted].toSorted(), [0, 1, 2, 3]);
  return outputs.map((ids) => ids.slice(0, MOST));
}

/** Prompts of the golden's ids, and the text that transformers made of the first. */
function golden(name: string): { readonly prompts: number[][]; readonly greedy: number[] } {
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
