import assert from "node:assert/strict";
import { openModels } from "../../src/engine/load/load.ts";
import type { Runner } from "../../src/engine/device/runner.ts";
import { prefillPrompt } from "../../src/engine/device/single_sequence.ts";
import type { Sequence } from "../../src/engine/device/sequence.ts";
import { readBuffer } from "../../src/gpu/readback.ts";
import { chain } from "../../src/speculate/round_shape.ts";
import { GREEDY, type Sampling } from "../../src/speculate/sampling.ts";
import { loadTokenizer } from "../../src/text/tokenizer.ts";
import { distribution } from "../reference/choose.ts";
import { gTest } from "../statistics.ts";
import { goldenCases, openFledgling, openWhole } from "./fledgling.ts";
import { EXHAUSTIVE, exhaustive } from "../exhaustive.ts";

const BATCH = 8;
/** The rate of false positives of each test; the seeds are fixed, so that a result repeats. */
const LEVEL = 1e-4;

/** One sampled continuation: the token after the prompt, and what one round then added. */
interface Sample {
  readonly root: number;
  readonly drafts: readonly number[];
  readonly ids: readonly number[];
}

/** Tokens of "Give me ... random numbers" and the beginning of an answer. */
function prompt(answer: string): number[] {
  using models = openModels({ draft: "none" });
  const { checkpoint } = models.target;
  const tokenizer = loadTokenizer(
    "fledgling",
    checkpoint.json("tokenizer.json"),
    checkpoint.json("tokenizer_config.json"),
  );
  const asked = goldenCases().find(({ task }) => task === "random_numbers")?.prompt_ids ?? [];
  return [...asked, ...tokenizer.encode(answer, { addSpecialTokens: false })];
}

/** Logits of `rows` rows of the last forward. */
async function logitRows(runner: Runner, rows: number): Promise<Float32Array[]> {
  const all = new Float32Array(await readBuffer(runner.gpu, runner.models.target.logits));
  const { vocabSize } = runner.models.target.config;
  return Array.from(
    { length: rows },
    (_, row) => all.slice(row * vocabSize, (row + 1) * vocabSize),
  );
}

/** The prompt's next token `times` times in each of BATCH lanes, each with a seed of its own. */
async function begin(
  runner: Runner,
  ids: readonly number[],
  { times, sampling, after = () => Promise.resolve() }: {
    readonly times: number;
    readonly sampling: Sampling;
    /** What follows, with the roots in the order of the sequences. */
    readonly after?: (sequences: readonly Sequence[], roots: readonly number[]) => Promise<void>;
  },
) {
  using stack = new DisposableStack();
  const sequences: Sequence[] = Array.from({ length: BATCH }, () => stack.use(openWhole(runner)));
  const tokens: number[] = [];
  let logits: Float32Array | undefined;
  for (let time = 0; time < times; time++) {
    for (const [lane, sequence] of sequences.entries()) {
      runner.setSampling(sequence, { ...sampling, seed: time * BATCH + lane });
      await prefillPrompt(runner, sequence, ids, sequence.stored ? ids.length - 1 : 0);
    }
    logits ??= (await logitRows(runner, 1))[0];
    const roots = sequences.map(({ ids }) => ids.at(-1) as number);
    tokens.push(...roots);
    await after(sequences, roots);
  }
  return { roots: tokens, logits: logits as Float32Array };
}

/** What `rounds` rounds add after the prompt's next token, and the logits of their rows by that token. */
async function sample(
  runner: Runner,
  ids: readonly number[],
  { rounds, numSteps, sampling }: {
    readonly rounds: number;
    readonly numSteps: number;
    readonly sampling: Sampling;
  },
) {
  const samples: Sample[] = [];
  const byRoot = new Map<number, Float32Array[]>();
  const after = async (sequences: readonly Sequence[], roots: readonly number[]) => {
    const [drawn] = await runner.rounds(sequences, { shape: chain(numSteps), count: 1 });
    const lanes = drawn?.sequences ?? [];
    samples.push(...lanes.map(({ drafts, ids }, i) => ({ root: roots[i] ?? 0, drafts, ids })));
    if (roots.every((root) => byRoot.has(root))) return;
    const rows = await logitRows(runner, BATCH * (numSteps + 1));
    roots.forEach((root, lane) =>
      byRoot.set(root, rows.slice(lane * (numSteps + 1), (lane + 1) * (numSteps + 1)))
    );
  };
  await begin(runner, ids, { times: rounds, sampling, after });
  return { samples, byRoot };
}

function mostFrequent(values: readonly number[]): number {
  const counts = Object.groupBy(values, (value) => `${value}`);
  const [best] = Object.entries(counts).toSorted(([, a], [, b]) =>
    (b?.length ?? 0) - (a?.length ?? 0)
  );
  return Number(best?.[0]);
}

function assertFollows(tokens: readonly number[], law: readonly number[], what: string): void {
  const counts = law.map(() => 0);
  for (const token of tokens) counts[token] = (counts[token] ?? 0) + 1;
  const { p, freedom, statistic } = gTest(counts, law);
  assert.ok(freedom > 0, `${what}: nothing to test`);
  assert.ok(p > LEVEL, `${what}: G = ${statistic} at ${freedom} degrees of freedom, p = ${p}`);
  assert.ok(tokens.every((token) => (law[token] ?? 0) > 0), `${what}: a token was ruled out`);
}

/** Deeper drafts change no law of the two rows that are looked at; once they are there. */
const CASES: readonly [sampling: Sampling, numSteps: number][] = [
  [{ ...GREEDY, temperature: 1.3 }, 1],
  [{ ...GREEDY, temperature: 1, topK: 12, topP: 0.98, minP: 0.01 }, 3],
];

for (const [sampling, numSteps] of CASES) {
  const { temperature, topK, topP, minP } = sampling;
  const { test } = numSteps === 3 ? Deno : exhaustive;
  test(`what the engine emits follows the target's law: ${[temperature, topK, topP, minP]}`, async () => {
    const runner = await openFledgling("eagle3", BATCH);
    // A digit or a comma comes next: many outcomes already after prefill.
    const { roots, logits } = await begin(runner, prompt("4, 61, 9"), {
      times: EXHAUSTIVE ? 40 : 20,
      sampling,
    });
    assertFollows(roots, distribution(logits, sampling), "prefill");

    // A space comes next, and then a digit that no draft can know.
    const { samples, byRoot } = await sample(runner, prompt("4, 61,"), {
      rounds: EXHAUSTIVE ? 88 : 36,
      numSteps,
      sampling,
    });
    const root = mostFrequent(samples.map((each) => each.root));
    const [row0, row1] = byRoot.get(root) as [Float32Array, Float32Array];
    const same = samples.filter((each) => each.root === root);
    const verified = same.map(({ ids }) => ids[0] as number);
    assertFollows(verified, distribution(row0, sampling), "first row of a round");

    // The draft of a root is always the same one, so the row behind it is too.
    const accepted = same.filter(({ ids }) => ids.length > 1).map(({ ids }) => ids[1] as number);
    assert.ok(accepted.length >= (EXHAUSTIVE ? 50 : 20), `${accepted.length} accepted`);
    assertFollows(accepted, distribution(row1, sampling), "row behind an accepted draft");
    runner.gpu[Symbol.dispose]();
  });
}
