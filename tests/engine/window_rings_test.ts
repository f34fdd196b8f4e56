// Layers whose windows have rings of pages: the bits of pages for the whole context, far past the wrap.
import assert from "node:assert/strict";
import { openRunner } from "../../src/engine/device/device_runner.ts";
import type { Runner } from "../../src/engine/device/runner.ts";
import { newSequence } from "../../src/engine/device/sequence.ts";
import { loadWeights, openModels } from "../../src/engine/load/load.ts";
import type { EngineSizes } from "../../src/engine/device/buffers.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import { hash32 } from "../../src/speculate/noise.ts";
import { chain, chains, type DraftShape } from "../../src/speculate/round_shape.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { treeNamed } from "../../src/speculate/tree_shape.ts";
import type { Proposal } from "../../src/speculate/trees.ts";
import { drawn } from "../exhaustive.ts";
import { openGpu } from "../gpu/shared.ts";
import {
  type Decoded,
  decodeProposed,
  prefillAll,
  type ProposedDecoding,
} from "./decode_proposed.ts";
import { folderOf, loadSpeculated, openSpeculated } from "./speculated.ts";

const BATCH = 4;
const CONTEXT = 384;
/** Tokens decoded of each prompt: several times around a ring of three or four pages. */
const MAX = 150;
const TREE = treeNamed("3:4:16");
/** Prompts shorter than a window, several windows long, and several chunks long. */
const PROMPTS = [3, 150, 47, 20].map((length, i) =>
  Array.from({ length }, (_, j) => 3 + hash32(1, i, j) % 300)
);

/** @param sizes.prefillRows with many, rings would take more pages than the context, and there are none. */
async function open(
  name: string,
  software: boolean,
  sizes: Partial<EngineSizes> & Pick<EngineSizes, "prefillRows">,
): Promise<Runner> {
  const opened = await openGpu();
  const gpu = { ...opened, info: { ...opened.info, software } };
  using models = openModels({ model: folderOf(name), draft: "none" });
  return await openRunner(gpu, await loadWeights(gpu, models), {
    batch: BATCH,
    shapes: [...chains([0, 1, 3]), TREE],
    contextLength: CONTEXT,
    pages: BATCH * (CONTEXT / PAGE + 2),
    promptRun: 8,
    ...sizes,
  });
}

/** A proposal whose first `right` tokens are right and the rest wrong; in a tree right nodes follow wrong siblings. */
function proposalOf(
  { depth, width }: DraftShape,
  next: readonly number[],
  right: number,
): Proposal {
  const wrong = (i: number) => next[i] === 9 ? 10 : 9;
  const chosen = (i: number) => i < right ? next[i] ?? 3 : wrong(i);
  const tokens: number[] = [];
  const parents: number[] = [];
  let parent = 0;
  for (let i = 0; i < depth; i++) {
    if (width > 1) {
      tokens.push(wrong(i));
      parents.push(parent);
    }
    tokens.push(chosen(i));
    parents.push(parent);
    parent = tokens.length;
  }
  return { tokens, parents };
}

function decode(
  runner: Runner,
  prompts: readonly (readonly number[])[],
  how: Pick<ProposedDecoding, "chunk" | "expected"> & { readonly shape?: DraftShape },
): Promise<Decoded[]> {
  const { shape = chain(0) } = how;
  return decodeProposed(runner, prompts, {
    ...how,
    most: MAX,
    context: CONTEXT,
    propose: (next, right) => proposalOf(shape, next, right),
  });
}

const CASES = [
  ["gpt_oss", true],
  ["gemma4_e", true],
  ["gemma3", false],
  ["qwen2_window", true],
  ["olmo3", false],
  ["mistral", true],
] as const;

for (const [name, software] of CASES) {
  const { test } = name === "gpt_oss" ? Deno : drawn;
  test(`${name}, ${software ? "software" : "hardware"} kernels: the bits of a whole context in pages`, async () => {
    const whole = await open(name, software, { prefillRows: 1024, pages: CONTEXT / PAGE + 2 });
    assert.equal(whole.models.windows.length, 0);
    const plain: Decoded[] = [];
    for (const prompt of PROMPTS) plain.push(...await decode(whole, [prompt], { chunk: 256 }));
    const runner = await open(name, software, { prefillRows: 64 });
    const [ring, ...more] = runner.models.windows;
    assert.ok(ring && more.length === 0 && ring.slotPages <= 3);
    const longest = PROMPTS[1]!;
    // One chunk that fills a forward, then as many chunks as fit in one.
    assert.deepEqual(await decode(runner, [longest], { chunk: 64 }), [plain[1]]);
    for (const [shape, chunk] of [[chain(0), 16], [chain(3), 11], [TREE, 5]] as const) {
      const all = await decode(runner, PROMPTS, { chunk, shape, expected: plain });
      assert.deepEqual(all, plain, `${shape.depth}:${shape.width}, chunks of ${chunk}`);
    }
  });
}

Deno.test("a draft that has pages for the whole context drafts for a target with rings, several rounds without the host", async () => {
  const gpu = await openGpu();
  using models = await openSpeculated("gemma3");
  const weights = await loadSpeculated(gpu, models);
  const texts = async (steps: number, sizes: Pick<EngineSizes, "prefillRows" | "pages">) => {
    const runner = await openRunner(gpu, weights, {
      batch: 2,
      shapes: [...chains([0, 3]), TREE],
      treeShapes: [TREE],
      contextLength: CONTEXT,
      promptRun: 8,
      ...sizes,
    });
    const sequences = [1, 3].map((i) => newSequence(PROMPTS[i]));
    for (const sequence of sequences) {
      assert.ok(runner.openSlot(sequence) && runner.reserve(sequence, CONTEXT));
      runner.setSampling(sequence, GREEDY);
    }
    await prefillAll(runner, sequences, 16, () => {});
    const ends = sequences.map(({ ids }) => ids.length + MAX);
    for (let round = 0; sequences.some(({ ids }, i) => ids.length < ends[i]!); round++) {
      const shape = steps === 0 ? chain(0) : round % 2 === 0 ? chain(steps) : TREE;
      const going = sequences.filter(({ ids }, i) => ids.length < ends[i]!);
      await runner.rounds(going, { shape, count: 3 });
    }
    const found = sequences.map(({ ids }, i) => ids.slice(0, ends[i]));
    return { found, rings: runner.models.windows.length };
  };
  const pages = 2 * (CONTEXT / PAGE + 3);
  const plain = await texts(0, { prefillRows: 1024, pages });
  const drafted = await texts(3, { prefillRows: 32, pages });
  assert.deepEqual([plain.rings, drafted.rings], [0, 1]);
  assert.deepEqual(drafted.found, plain.found);
});
