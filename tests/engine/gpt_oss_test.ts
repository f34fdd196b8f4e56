// gpt-oss: rounds that verify what the host proposes give the text of plain decoding, past the window of its layers.
import assert from "node:assert/strict";
import { openRunner } from "../../src/engine/device/device_runner.ts";
import type { Runner } from "../../src/engine/device/runner.ts";
import { openSequence, prefillPrompt } from "../../src/engine/device/single_sequence.ts";
import { loadWeights, openModels } from "../../src/engine/load/load.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import { hash32 } from "../../src/speculate/noise.ts";
import { chain, chains } from "../../src/speculate/round_shape.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { exhaustive } from "../exhaustive.ts";
import { openGpu } from "../gpu/shared.ts";
import { folderOf } from "./speculated.ts";

const STEPS = 3;
/** Twice the window of the golden's layers, and a row of each length before it. */
const TOKENS = 32;
const CELLS = 64;
const BATCH = 4;

/** Prompts of 5, 9, 13 and 17 tokens. */
const PROMPTS = Array.from(
  { length: BATCH },
  (_, i) => Array.from({ length: 5 + 4 * i }, (_, k) => 3 + hash32(1, i, k) % 300),
);

async function open(name: string, software: boolean): Promise<Runner> {
  const opened = await openGpu();
  const gpu = { ...opened, info: { ...opened.info, software } };
  using models = openModels({ model: folderOf(name), draft: "none" });
  return await openRunner(gpu, await loadWeights(gpu, models), {
    batch: BATCH,
    shapes: chains([0, STEPS]),
    prefillRows: 64,
    contextLength: CELLS,
    pages: BATCH * CELLS / PAGE,
  });
}

/**
 * Texts of these prompts, decoded side by side.
 *
 * @param right texts that are proposed, with an error after 0 to STEPS tokens; absent: nothing is.
 */
async function texts(
  runner: Runner,
  prompts: readonly (readonly number[])[],
  right?: readonly (readonly number[])[],
): Promise<{ readonly ids: number[][]; readonly accepted: Set<number> }> {
  const sequences = prompts.map(() => openSequence(runner));
  const ids: number[][] = [];
  const accepted = new Set<number>();
  for (const [i, sequence] of sequences.entries()) {
    assert.ok(runner.reserve(sequence, CELLS - STEPS));
    runner.setSampling(sequence, GREEDY);
    ids.push([await prefillPrompt(runner, sequence, prompts[i] ?? [], 0)]);
  }
  for (let round = 0; ids.some(({ length }) => length < TOKENS); round++) {
    const proposals = right?.map((text, i) => {
      const next = text.slice(ids[i]?.length, (ids[i]?.length ?? 0) + STEPS);
      const wrong = (round + i) % (STEPS + 1);
      const tokens = next.map((id, k) => k === wrong ? (id + 1) % 300 : id);
      return { tokens, parents: tokens.map((_, k) => k) };
    });
    const shape = chain(right ? STEPS : 0);
    const [result] = await runner.rounds(sequences, {
      shape,
      count: 1,
      ...proposals && { proposals },
    });
    for (const [i, lane] of (result?.sequences ?? []).entries()) {
      ids[i]?.push(...lane.ids);
      accepted.add(lane.accepted);
    }
  }
  for (const sequence of sequences) sequence[Symbol.dispose]();
  return { ids: ids.map((text) => text.slice(0, TOKENS)), accepted };
}

for (const [name, kernels] of [["gpt_oss", "software"], ["gpt_oss_mxfp4", "hardware"]] as const) {
  const { test } = kernels === "software" ? Deno : exhaustive;
  test(`${name}: proposals, right and wrong, leave the text as it is, ${kernels} kernels`, async () => {
    const runner = await open(name, kernels === "software");
    const plain: number[][] = [];
    for (const prompt of PROMPTS) plain.push(...(await texts(runner, [prompt])).ids);
    assert.deepEqual((await texts(runner, PROMPTS)).ids, plain);
    for (const some of [[0], [0, 1, 2, 3]]) {
      const of = <T>(all: readonly T[]) => some.map((i) => all[i] as T);
      const found = await texts(runner, of(PROMPTS), of(plain));
      assert.deepEqual(found.ids, of(plain));
      assert.deepEqual([...found.accepted].toSorted(), [0, 1, 2, 3]);
    }
  });
}
