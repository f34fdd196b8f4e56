// Drafts do not depend on whether the draft's head stores its logits or their partial results.

import assert from "node:assert/strict";
import { roundBuffers } from "../../src/engine/device/buffers.ts";
import type { Runner } from "../../src/engine/device/runner.ts";
import type { SpeculativeDraft } from "../../src/engine/device/models.ts";
import { eagleDrafter } from "../../src/engine/device/eagle_drafter.ts";
import { openGpu } from "../gpu/shared.ts";
import type { Operand, Plan } from "../../src/gpu/kernel.ts";
import { compiler, submit } from "../../src/gpu/program.ts";
import { readBuffer } from "../../src/gpu/readback.ts";
import { DRAFT_TOKENS, draftWords } from "../../src/model/device_layout.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { numbers } from "../gpu/numbers.ts";
import { decode, goldenCases, openFledgling, openWhole } from "./fledgling.ts";
import { drawn } from "../exhaustive.ts";

const BATCH = 9;

async function openHardware(
  kind: "eagle3" | "eagle1",
  batch: number,
  confident = false,
): Promise<Runner> {
  const gpu = await openGpu();
  const info = { ...gpu.info, software: false };
  return await openFledgling(kind, batch, { ...gpu, info }, { confident });
}

/** The draft of an engine that writes the draft's logits. */
function withLogits({ models }: Runner): SpeculativeDraft {
  const draft = models.draft ?? assert.fail();
  return { ...draft, without: new Set(["partials_in_matmul"]) };
}

function labels(plan: Plan): string[] {
  return plan.map(({ label }) => label).filter((label) => /draft\.head|draft_choose/.test(label));
}

/** Drafts, and the confidences in them. */
interface Drafted {
  readonly tokens: number[];
  readonly confidences: number[];
}

/** What the head drafts of random hidden rows, for 1 to BATCH sequences, with both plans. */
async function draftedOf(runner: Runner): Promise<Drafted[]> {
  const { gpu, models, capacity } = runner;
  const draft = models.draft ?? assert.fail();
  const buffers = { ...roundBuffers(gpu, capacity), drafts: draft.drafts };
  const { compile } = compiler(gpu);
  const write = (to: Operand, words: Float32Array<ArrayBuffer> | Uint32Array<ArrayBuffer>) =>
    gpu.device.queue.writeBuffer(to.buffer, 0, words);
  const size = draftWords(draft.maxRows);
  const drafted = async (plan: Plan): Promise<Drafted> => {
    write(draft.drafts, new Uint32Array(BATCH * size).fill(0xffffffff));
    submit(gpu, await compile(plan));
    gpu.check();
    const words = await readBuffer(gpu, draft.drafts);
    const isConfidence = (_: unknown, at: number) => at % size >= DRAFT_TOKENS + draft.maxRows - 1;
    return {
      tokens: [...new Uint32Array(words)].filter((word, at) => !isConfidence(word, at)),
      confidences: [...new Float32Array(words)].filter(isConfidence),
    };
  };
  const lanes = Uint32Array.from({ length: BATCH }, (_, lane) => lane);
  write(buffers.batchSlots, lanes);
  write(buffers.last, lanes.toReversed());
  const found: Drafted[] = [];
  for (let batch = 1; batch <= BATCH; batch++) {
    const x = numbers(BATCH * draft.config.hiddenSize, batch);
    write(draft.extended.x, x as Float32Array<ArrayBuffer>);
    const ours = eagleDrafter(draft, buffers).head(batch);
    const plain = eagleDrafter(withLogits(runner), buffers).head(batch);
    assert.deepEqual(labels(ours), ["draft.head", "draft_choose.0"]);
    assert.deepEqual(labels(plain), [
      "draft.head",
      `draft_choose.0.partial_${draft.choice}`,
      "draft_choose.0",
    ]);
    const [own, expected] = [await drafted(ours), await drafted(plain)];
    assert.deepEqual(own.tokens, expected.tokens, `${batch} lanes`);
    for (const [i, confidence] of own.confidences.entries()) {
      const wanted = expected.confidences[i] ?? NaN;
      // Where none is told, the bits are those of NaN.
      const same = Object.is(confidence, wanted) || Math.abs(confidence / wanted - 1) < 1e-5;
      assert.ok(same, `${batch} lanes: ${confidence}, expected ${wanted}`);
    }
    found.push(own);
  }
  return found;
}

for (const kind of ["eagle3", "eagle1"] as const) {
  // What partial results decide is in tests/kernels/matmul_partials_test.ts, too.
  drawn.test(`${kind}: hardware's head stores partial results, and the drafts are those of its logits, with confidence or without`, async () => {
    const runs = [];
    for (const confident of [false, true]) {
      const runner = await openHardware(kind, BATCH, confident);
      runs.push(await draftedOf(runner));
      runner.gpu[Symbol.dispose]();
    }
    const [alone = [], confident = []] = runs;
    assert.deepEqual(confident.map(({ tokens }) => tokens), alone.map(({ tokens }) => tokens));
    const told = (drafted: Drafted[]) =>
      drafted.map(({ confidences }) => confidences.filter((c) => c > 0 && c <= 1).length);
    const each = Array.from({ length: BATCH }, (_, i) => i + 1);
    assert.deepEqual([told(alone), told(confident)], [Array(BATCH).fill(0), each]);
    const different = new Set(alone.flatMap(({ tokens }) => tokens));
    assert.ok(different.size > BATCH, `${different.size} different drafts`);
  });
}

drawn.test("the drafts of hardware's kernels for a golden prompt are those of the software's", async () => {
  const golden = goldenCases().find(({ min_margin }) => min_margin > 0.05) ?? assert.fail();
  const of = { numSteps: 3, most: 24, sampling: [GREEDY] };
  const found = [];
  for (const runner of [await openHardware("eagle3", 1), await openFledgling("eagle3", 1)]) {
    using sequence = openWhole(runner);
    found.push(await decode(runner, [sequence], [golden.prompt_ids], of));
    runner.gpu[Symbol.dispose]();
  }
  assert.deepEqual(found[0], found[1]);
});
