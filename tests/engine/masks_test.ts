// Masks of allowed tokens: with drafts, whoever makes them, the text of plain decoding with masks.
import assert from "node:assert/strict";
import type { RoundRequest, Runner } from "../../src/engine/device/runner.ts";
import type { Sequence } from "../../src/engine/device/sequence.ts";
import { openGpu } from "../gpu/shared.ts";
import { chain, chains, type DraftShape } from "../../src/speculate/round_shape.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { pathTo, type Proposal } from "../../src/speculate/trees.ts";
import { mostAllowed } from "../masks.ts";
import { isAllowed } from "../reference/choose.ts";
import { goldenCases, openFledgling, openWhole } from "./fledgling.ts";
import { drawn, EXHAUSTIVE } from "../exhaustive.ts";

const TREE = { depth: 3, width: 2, rows: 9 };
const MAX = 20;
const PROMPTS = goldenCases().slice(0, 3).map(({ prompt_ids }) => prompt_ids);
const SAMPLINGS = [{ ...GREEDY, frequencyPenalty: 1 }, {
  ...GREEDY,
  temperature: 0.8,
  topK: 30,
  seed: 3,
}, GREEDY];

const gpu = await openGpu();
Deno.test.afterAll(() => gpu[Symbol.dispose]());
const shapes = [...chains([0, 1, 2, 3, 7]), TREE, { depth: 4, width: 4, rows: 12 }];
const cores = {
  eagle3: await openFledgling("eagle3", PROMPTS.length, gpu, { shapes }),
  ...EXHAUSTIVE && { eagle1: await openFledgling("eagle1", PROMPTS.length, gpu, { shapes }) },
};

/** The mask after each text; the last sequence is free. */
function maskAfter({ models }: Runner, which: number, ids: readonly number[]): Uint32Array {
  const { vocabSize } = models.target.config;
  return mostAllowed(vocabSize, ids, which === PROMPTS.length - 1 ? Infinity : 5);
}

/** Masks of every row of what is verified. */
function masksOf(
  runner: Runner,
  sequences: readonly Sequence[],
  proposals: readonly Proposal[],
  { rows }: DraftShape,
): Uint32Array {
  const size = maskAfter(runner, 0, []).length;
  const masks = new Uint32Array(sequences.length * rows * size);
  for (const [i, { ids }] of sequences.entries()) {
    const proposal = proposals[i] as Proposal;
    for (let row = 0; row <= proposal.tokens.length; row++) {
      const path = pathTo(proposal, row).slice(1).map((at) => proposal.tokens[at - 1] as number);
      masks.set(maskAfter(runner, i, [...ids, ...path]), (i * rows + row) * size);
    }
  }
  return masks;
}

/** Output of each prompt with `asked` rounds, and the drafts that were accepted. */
async function decodeMasked(
  runner: Runner,
  ask: (sequences: readonly Sequence[]) => RoundRequest,
): Promise<{ readonly texts: string[]; readonly told: number[][]; readonly accepted: number }> {
  using stack = new DisposableStack();
  const sequences = PROMPTS.map(() => stack.use(openWhole(runner)));
  for (const [i, sequence] of sequences.entries()) {
    const ids = PROMPTS[i] ?? [];
    runner.setSampling(sequence, SAMPLINGS[i] ?? GREEDY);
    sequence.ids.push(...ids);
    await runner.prefill([{ sequence, to: ids.length, mask: maskAfter(runner, i, ids) }]);
  }
  let accepted = 0;
  const told: number[][] = sequences.map(() => []);
  const output = ({ ids }: Sequence, i: number) =>
    ids.slice(PROMPTS[i]?.length, (PROMPTS[i]?.length ?? 0) + MAX);
  while (sequences.some((sequence, i) => output(sequence, i).length < MAX)) {
    const [round] = await runner.rounds(sequences, { ...ask(sequences), logprobs: 0 });
    for (const [i, lane] of round?.sequences.entries() ?? []) {
      accepted += lane.accepted;
      told[i]?.push(...lane.logprobs?.map(({ logprob }) => logprob) ?? []);
    }
  }
  return {
    texts: sequences.map((sequence, i) => output(sequence, i).join()),
    told: told.map((of) => of.slice(0, MAX - 1)),
    accepted,
  };
}

const plain = await decodeMasked(cores.eagle3, (sequences) => ({
  shape: chain(0),
  count: 1,
  maskFor: (none) => masksOf(cores.eagle3, sequences, none, chain(0)),
}));

Deno.test("masks: every token is allowed, and the masks change the text", async () => {
  let forbidden = 0;
  const runner = cores.eagle3;
  const free = await decodeMasked(runner, () => ({ shape: chain(0), count: 1 }));
  for (const [i, text] of plain.texts.entries()) {
    const ids = text.split(",").map(Number);
    for (const [at, id] of ids.entries()) {
      const mask = maskAfter(runner, i, [...PROMPTS[i] ?? [], ...ids.slice(0, at)]);
      assert.ok(isAllowed(mask, id), `token ${at} of prompt ${i}`);
    }
    if (free.texts[i] !== text) forbidden++;
  }
  assert.equal(forbidden, PROMPTS.length - 1);
});

for (const [head, runner] of Object.entries(cores)) {
  drawn.test(`masks: chains that the device drafts with ${head}, the text of plain decoding`, async () => {
    for (const shape of [chain(1), chain(3), chain(7), { depth: 4, width: 4, rows: 12 }]) {
      const numSteps = JSON.stringify(shape);
      const found = await decodeMasked(runner, (sequences) => ({
        shape,
        count: 1,
        maskFor: (proposals) => Promise.resolve(masksOf(runner, sequences, proposals, shape)),
      }));
      assert.deepEqual(found.texts, plain.texts, `num_steps ${numSteps}`);
      assert.deepEqual(found.told, plain.told, `num_steps ${numSteps}`);
      assert.ok(found.accepted > 10, `${found.accepted} accepted`);
    }
  });
}

Deno.test("masks: some drafts of each, and none", async () => {
  const runner = cores.eagle3;
  const shape = chain(3);
  let round = 0;
  const found = await decodeMasked(runner, (sequences) => {
    const depths = sequences.map((_, i) => (round + i) % 4);
    round++;
    const maskFor = (proposals: readonly Proposal[]) => {
      assert.deepEqual(proposals.map(({ tokens }) => tokens.length), depths);
      return masksOf(runner, sequences, proposals, shape);
    };
    return round % 5 === 0
      ? { shape: chain(0), count: 1, maskFor: (none) => masksOf(runner, sequences, none, chain(0)) }
      : { shape, count: 1, depths, maskFor };
  });
  assert.deepEqual(found.texts, plain.texts);
});

Deno.test("masks: trees from the host", async () => {
  const runner = cores.eagle3;
  const found = await decodeMasked(runner, (sequences) => {
    const proposals = sequences.map(({ ids }, i) => {
      const done = ids.length - (PROMPTS[i]?.length ?? 0);
      const [a = 5, b = 6, c = 7] = (plain.texts[i] ?? "").split(",").map(Number).slice(done);
      // Right ones in the second branch; the first may be forbidden.
      return { tokens: [9, a, a ^ 1, b, 11, c], parents: [0, 0, 2, 2, 1, 4] };
    });
    const maskFor = () => masksOf(runner, sequences, proposals, TREE);
    return { shape: TREE, count: 1, proposals, maskFor };
  });
  assert.deepEqual(found.texts, plain.texts);
  assert.ok(found.accepted >= 3 * (MAX - 4) / 4 * 3, `${found.accepted} accepted`);
});

Deno.test("masks: of another size, or for several rounds, they are a bug", async () => {
  const runner = cores.eagle3;
  using sequence = openWhole(runner);
  const of = { shape: chain(0), maskFor: () => new Uint32Array(3) };
  await assert.rejects(runner.rounds([sequence], { ...of, count: 1 }), /3 words/);
  await assert.rejects(runner.rounds([sequence], { ...of, count: 2 }), /2 rounds/);
});
