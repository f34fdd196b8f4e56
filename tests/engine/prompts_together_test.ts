// Prompts in one forward: what else is in it must not matter, to the bit.
import assert from "node:assert/strict";
import { PROMPT_RUN, promptRun, SOFTWARE_PROMPT_RUN } from "../../src/engine/device/prompt_rows.ts";
import { openRunner } from "../../src/engine/device/device_runner.ts";
import type { FirstToken, Runner } from "../../src/engine/device/runner.ts";
import type { Sequence } from "../../src/engine/device/sequence.ts";
import { promptChunks } from "../../src/engine/schedule/prompt_chunks.ts";
import type { Gpu } from "../../src/gpu/device.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import { hash32 } from "../../src/speculate/noise.ts";
import { chain, chains } from "../../src/speculate/round_shape.ts";
import { GREEDY, type Sampling } from "../../src/speculate/sampling.ts";
import { exhaustive } from "../exhaustive.ts";
import { openGpu } from "../gpu/shared.ts";
import { mostAllowed } from "../masks.ts";
import { openFledgling, openWhole } from "./fledgling.ts";
import { loadSpeculated, openSpeculated } from "./speculated.ts";

/** What a request asks for, and how many leading tokens of its prompt are stored beforehand. */
interface Asked {
  readonly ids: readonly number[];
  readonly cached: number;
  readonly sampling: Sampling;
  readonly masked: boolean;
  readonly logprobs: number | undefined;
}

const BATCH = 6;

const SAMPLINGS: readonly Sampling[] = [
  GREEDY,
  { ...GREEDY, temperature: 0.8, topK: 30, seed: 3 },
  { ...GREEDY, frequencyPenalty: 1, logitBias: { 7: 2 } },
];

/** A number from 0 to below `most` that depends only on the other arguments. */
function drawn(most: number, ...[seed, n, purpose]: [number, number, number]): number {
  return hash32(seed, n, purpose) % most;
}

/** Prompts of 1 to `longest` tokens with ids below `vocab`. */
function mixture(
  seed: number,
  { longest, vocab }: { readonly longest: number; readonly vocab: number },
): Asked[] {
  return Array.from({ length: BATCH }, (_, n) => {
    const length = 1 + drawn(longest, seed, n, 0);
    return {
      ids: Array.from({ length }, (_, i) => drawn(vocab, seed, n * 1000 + i, 1)),
      cached: drawn(2, seed, n, 2) * drawn(length, seed, n, 3),
      sampling: SAMPLINGS[drawn(3, seed, n, 4)] ?? GREEDY,
      masked: drawn(3, seed, n, 5) === 0,
      logprobs: drawn(2, seed, n, 6) === 0 ? 1 : undefined,
    };
  });
}

/** Opens a sequence with what is stored of it. */
async function opened(
  runner: Runner,
  { ids, cached, sampling }: Asked,
): Promise<Sequence & Disposable> {
  const sequence = openWhole(runner);
  runner.setSampling(sequence, sampling);
  sequence.ids.push(...ids);
  if (cached > 0) await runner.prefill([{ sequence, to: cached }]);
  return sequence;
}

/**
 * What is compared: the first tokens with their log-probabilities, and rounds that read all keys and values.
 *
 * @param rows most rows of a forward; absent: each prompt has a forward of its own.
 */
async function outcome(runner: Runner, asked: readonly Asked[], rows?: number) {
  using stack = new DisposableStack();
  const sequences: Sequence[] = [];
  for (const one of asked) sequences.push(stack.use(await opened(runner, one)));
  const { vocabSize } = runner.models.target.config;
  const firsts: (FirstToken | undefined)[] = asked.map(() => undefined);
  let forwards = 0;
  while (firsts.includes(undefined)) {
    const storing = [...asked.keys()].filter((i) => firsts[i] === undefined);
    const left = storing.map((i) => (asked[i]?.ids.length ?? 0) - (sequences[i]?.stored ?? 0));
    const tokens = rows === undefined
      ? left.slice(0, 1)
      : promptChunks(left, { rows, run: promptRun(runner.capacity) });
    const together = storing.slice(0, tokens.length);
    const stored = await runner.prefill(together.map((i, at) => {
      const [{ ids, masked, logprobs }, sequence] = [asked[i] as Asked, sequences[i] as Sequence];
      const mask = masked ? mostAllowed(vocabSize, ids, 5) : undefined;
      return { sequence, to: sequence.stored + (tokens[at] ?? 0), mask, logprobs };
    }));
    for (const [at, i] of together.entries()) firsts[i] = stored[at];
    forwards++;
  }
  const rounds = await runner.rounds(sequences, { shape: chain(3), count: 2, logprobs: 0 });
  return {
    forwards,
    found: {
      // More log-probabilities are reported where another one asks for more.
      firsts: firsts.map((first, i) => (
        { id: first?.id, logprob: asked[i]?.logprobs && first?.logprobs?.logprob }
      )),
      ids: sequences.map(({ ids }) => [...ids]),
      rounds: rounds.map(({ sequences }) => sequences),
    },
  };
}

/** @param longest most tokens of the prompts of a mixture, one number for each mixture. */
async function assertAlike(
  runner: Runner,
  { longest, budgets }: {
    readonly longest: readonly number[];
    readonly budgets: readonly number[];
  },
) {
  const { vocabSize: vocab } = runner.models.target.config;
  for (const [seed, most] of longest.entries()) {
    const asked = mixture(seed, { longest: most, vocab });
    const alone = await outcome(runner, asked);
    for (const rows of budgets) {
      const together = await outcome(runner, asked, rows);
      assert.deepEqual(together.found, alone.found, `mixture ${seed}, ${rows} rows`);
      if (rows === 256) assert.ok(together.forwards < alone.forwards);
    }
  }
}

const SHAPES = chains([0, 3]);

function runOf({ info }: Gpu): number {
  return info.software ? SOFTWARE_PROMPT_RUN : PROMPT_RUN;
}

function openEmbedded(gpu: Gpu, kind: "eagle3" | "eagle1"): Promise<Runner> {
  return openFledgling(kind, BATCH, gpu, { shapes: SHAPES, promptRun: runOf(gpu) });
}

/** Context of the golden models. */
const CONTEXT = 96;

/** A golden with an EAGLE-3 head of random weights. */
async function openGolden(gpu: Gpu, name: string): Promise<Runner> {
  using models = await openSpeculated(name);
  return await openRunner(gpu, await loadSpeculated(gpu, models), {
    batch: BATCH,
    shapes: SHAPES,
    prefillRows: 256,
    // Golden prompts are short: chunks of several runs, and budgets that they do not fill.
    promptRun: SOFTWARE_PROMPT_RUN,
    contextLength: CONTEXT,
    pages: BATCH * (CONTEXT / PAGE + 1),
  });
}

async function kernelsOf(kind: "software" | "hardware"): Promise<Gpu> {
  const gpu = await openGpu();
  return { ...gpu, info: { ...gpu.info, software: kind === "software" } };
}

Deno.test.afterAll(async () => (await openGpu())[Symbol.dispose]());

Deno.test("prompts in one forward have the bits of each by itself", async () => {
  const runner = await openEmbedded(await openGpu(), "eagle3");
  await assertAlike(runner, { longest: [40, 100], budgets: [64] });
});

exhaustive.test("more mixtures of prompts, and the kernels of hardware", async () => {
  const gpu = await openGpu();
  for (const kind of ["eagle3", "eagle1"] as const) {
    const runner = await openEmbedded(gpu, kind);
    await assertAlike(runner, { longest: [200, 40, 200, 40], budgets: [64, 256] });
  }
  const runner = await openEmbedded(await kernelsOf("hardware"), "eagle3");
  await assertAlike(runner, { longest: [200, 40], budgets: [256] });
});

// Latents, windows and mixtures.
for (const name of ["gemma2", "deepseek_v2_groups", "deepseek_v3", "mixtral"]) {
  for (const kind of ["software", "hardware"] as const) {
    exhaustive.test(`prompts in one forward: ${name}, ${kind} kernels`, async () => {
      const runner = await openGolden(await kernelsOf(kind), name);
      await assertAlike(runner, { longest: [60], budgets: [64, 256] });
    });
  }
}
