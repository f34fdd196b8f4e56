// Layers whose windows have rings of pages: the bits of pages for the whole context, far past the wrap.
import assert from "node:assert/strict";
import { openRunner } from "../../src/engine/device/device_runner.ts";
import type { Runner } from "../../src/engine/device/runner.ts";
import { newSequence, type Sequence } from "../../src/engine/device/sequence.ts";
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
import { folderOf, loadSpeculated, openSpeculated } from "./speculated.ts";

const BATCH = 4;
const CONTEXT = 384;
/** Tokens decoded of each prompt: several times around a ring of three or four pages. */
const MOST = 150;
const TREE = treeNamed("3:4:16");
/** Of fewer tokens than a window, of several windows, of several chunks. */
const PROMPTS = [3, 150, 47, 20].map((length, i) =>
  Array.from({ length }, (_, j) => 3 + hash32(1, i, j) % 300)
);

interface Decoded {
  readonly ids: number[];
  /** Of each id, to the bit. */
  readonly logprobs: number[];
}

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

/** Right up to a token, wrong from there on; in a tree the right ones come behind wrong ones. */
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

/** Decodes prompts together, each with drafts that are right up to a place, another one in each round and sequence. */
async function decode(
  core: Runner,
  prompts: readonly (readonly number[])[],
  { chunk, shape = chain(0), expected = [] }: {
    /** Rows of a prompt in a forward. */
    readonly chunk: number;
    readonly shape?: DraftShape;
    readonly expected?: readonly Decoded[];
  },
): Promise<Decoded[]> {
  const sequences = prompts.map((ids) => newSequence(ids));
  const found = prompts.map((): Decoded => ({ ids: [], logprobs: [] }));
  const put = (i: number, id: number, logprob: number | undefined) => {
    if (found[i]!.ids.length >= MOST) return;
    found[i]!.ids.push(id);
    found[i]!.logprobs.push(logprob ?? NaN);
  };
  for (const sequence of sequences) {
    assert.ok(core.openSlot(sequence));
    assert.ok(core.reserve(sequence, CONTEXT));
    core.setSampling(sequence, GREEDY);
  }
  const accepted = new Set<number>();
  try {
    await prefillAll(core, sequences, chunk, put);
    for (let round = 0; found.some(({ ids }) => ids.length < MOST); round++) {
      const proposals = found.map(({ ids }, i) => {
        const next = expected[i]?.ids.slice(ids.length) ?? [];
        return proposalOf(shape, next, (3 * round + i) % (shape.depth + 1));
      });
      const asked = { shape, count: 1, logprobs: 0 };
      const [result] = await core.rounds(sequences, {
        ...asked,
        ...shape.depth > 0 && { proposals },
      });
      for (const [i, { ids, logprobs, ...of }] of result!.sequences.entries()) {
        accepted.add(of.accepted);
        for (const [j, id] of ids.entries()) put(i, id, logprobs?.[j]?.logprob);
      }
    }
    assert.deepEqual([...accepted].toSorted(), [...Array(shape.depth + 1).keys()]);
    return found;
  } finally {
    for (const sequence of sequences) core.closeSlot(sequence);
  }
}

/** Chunks of all prompts that are not stored yet in each forward. */
async function prefillAll(
  core: Runner,
  sequences: readonly Sequence[],
  chunk: number,
  put: (i: number, id: number, logprob: number | undefined) => void,
): Promise<void> {
  const left = new Set(sequences);
  while (left.size > 0) {
    const chunks = [...left].map((sequence) => ({
      sequence,
      to: Math.min(sequence.ids.length, sequence.stored + chunk),
      logprobs: 0,
    }));
    const tokens = await core.prefill(chunks);
    for (const [i, { sequence }] of chunks.entries()) {
      const token = tokens[i];
      if (token === undefined) continue;
      left.delete(sequence);
      put(sequences.indexOf(sequence), token.id, token.logprobs?.logprob);
    }
  }
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
    const core = await open(name, software, { prefillRows: 64 });
    const [ring, ...more] = core.models.windows;
    assert.ok(ring && more.length === 0 && ring.slotPages <= 3);
    const longest = PROMPTS[1]!;
    // As many chunks as fit in a forward, and one that fills it.
    assert.deepEqual(await decode(core, [longest], { chunk: 64 }), [plain[1]]);
    for (const [shape, chunk] of [[chain(0), 16], [chain(3), 11], [TREE, 5]] as const) {
      const all = await decode(core, PROMPTS, { chunk, shape, expected: plain });
      assert.deepEqual(all, plain, `${shape.depth}:${shape.width}, chunks of ${chunk}`);
    }
  });
}

Deno.test("a draft that has pages for the whole context drafts for a target with rings, several rounds without the host", async () => {
  const gpu = await openGpu();
  using models = await openSpeculated("gemma3");
  const weights = await loadSpeculated(gpu, models);
  const texts = async (steps: number, sizes: Pick<EngineSizes, "prefillRows" | "pages">) => {
    const core = await openRunner(gpu, weights, {
      batch: 2,
      shapes: [...chains([0, 3]), TREE],
      treeShapes: [TREE],
      contextLength: CONTEXT,
      promptRun: 8,
      ...sizes,
    });
    const sequences = [1, 3].map((i) => newSequence(PROMPTS[i]));
    for (const sequence of sequences) {
      assert.ok(core.openSlot(sequence) && core.reserve(sequence, CONTEXT));
      core.setSampling(sequence, GREEDY);
    }
    await prefillAll(core, sequences, 16, () => {});
    const ends = sequences.map(({ ids }) => ids.length + MOST);
    for (let round = 0; sequences.some(({ ids }, i) => ids.length < ends[i]!); round++) {
      const shape = steps === 0 ? chain(0) : round % 2 === 0 ? chain(steps) : TREE;
      const going = sequences.filter(({ ids }, i) => ids.length < ends[i]!);
      await core.rounds(going, { shape, count: 3 });
    }
    const found = sequences.map(({ ids }, i) => ids.slice(0, ends[i]));
    return { found, rings: core.models.windows.length };
  };
  const pages = 2 * (CONTEXT / PAGE + 3);
  const plain = await texts(0, { prefillRows: 1024, pages });
  const drafted = await texts(3, { prefillRows: 32, pages });
  assert.deepEqual([plain.rings, drafted.rings], [0, 1]);
  assert.deepEqual(drafted.found, plain.found);
});
