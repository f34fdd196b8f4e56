// Drafts do not depend on whether the draft's head stores its logits or their partial argmaxes.

import assert from "node:assert/strict";
import { partialArgmaxWords } from "../../shaders/choose/partial_argmax.ts";
import { roundBuffers, storageBuffer } from "../../src/engine/device/buffers.ts";
import type { Core } from "../../src/engine/device/core.ts";
import type { SpeculativeDraft } from "../../src/engine/device/models.ts";
import { eagleDrafter } from "../../src/engine/device/eagle_drafter.ts";
import { openGpu } from "../gpu/shared.ts";
import type { Operand, Plan } from "../../src/gpu/kernel.ts";
import { compiler, submit } from "../../src/gpu/program.ts";
import { readBuffer } from "../../src/gpu/readback.ts";
import { draftWords } from "../../src/model/plan/rows_layout.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { numbers } from "../gpu/numbers.ts";
import { decode, goldenCases, openFledgling, openWhole } from "./fledgling.ts";

const BATCH = 9;

async function openHardware(kind: "eagle3" | "eagle1", batch: number): Promise<Core> {
  const gpu = await openGpu();
  return await openFledgling(kind, batch, { ...gpu, info: { ...gpu.info, software: false } });
}

/** The draft of an engine that writes the draft's logits. */
function withLogits({ gpu, models }: Core): SpeculativeDraft {
  const draft = models.draft ?? assert.fail();
  const rows = draft.weights.head.rows;
  return {
    ...draft,
    logits: storageBuffer(gpu, "logits", BATCH * rows),
    partials: storageBuffer(gpu, "partials", BATCH * partialArgmaxWords(rows)),
  };
}

function labels(plan: Plan): string[] {
  return plan.map(({ label }) => label).filter((label) => /draft\.head|draft_choose/.test(label));
}

for (const kind of ["eagle3", "eagle1"] as const) {
  Deno.test(`${kind}: hardware's head stores partial argmaxes, and the drafts are those of its logits`, async () => {
    const core = await openHardware(kind, BATCH);
    const { gpu, models, capacity } = core;
    const draft = models.draft ?? assert.fail();
    const buffers = { ...roundBuffers(gpu, capacity), drafts: draft.drafts };
    const { compile } = compiler(gpu);
    const write = (to: Operand, words: Float32Array<ArrayBuffer> | Uint32Array<ArrayBuffer>) =>
      gpu.device.queue.writeBuffer(to.buffer, 0, words);
    const drafted = async (plan: Plan): Promise<number[]> => {
      write(draft.drafts, new Uint32Array(BATCH * draftWords(draft.mostRows)).fill(0xffffffff));
      submit(gpu, await compile(plan));
      gpu.check();
      return [...new Uint32Array(await readBuffer(gpu, draft.drafts))];
    };
    const lanes = Uint32Array.from({ length: BATCH }, (_, lane) => lane);
    write(buffers.batchSlots, lanes);
    write(buffers.last, lanes.toReversed());
    const found = new Set<number>();
    for (let batch = 1; batch <= BATCH; batch++) {
      const x = numbers(BATCH * draft.config.hiddenSize, batch);
      write(draft.scratch.x, x as Float32Array<ArrayBuffer>);
      const ours = eagleDrafter(draft, buffers).head(batch);
      const plain = eagleDrafter(withLogits(core), buffers).head(batch);
      assert.deepEqual(labels(ours), ["draft.head", "draft_choose.0"]);
      assert.deepEqual(labels(plain), [
        "draft.head",
        "draft_choose.0.partial_argmax",
        "draft_choose.0",
      ]);
      const drafts = await drafted(ours);
      assert.deepEqual(drafts, await drafted(plain), `${batch} lanes`);
      for (const token of drafts) found.add(token);
    }
    assert.ok(found.size > BATCH, `${found.size} different drafts`);
    gpu[Symbol.dispose]();
  });
}

Deno.test("the drafts of hardware's kernels for a golden prompt are those of the software's", async () => {
  const golden = goldenCases().find(({ min_margin }) => min_margin > 0.05) ?? assert.fail();
  const of = { numSteps: 3, most: 24, sampling: [GREEDY] };
  const found = [];
  for (const core of [await openHardware("eagle3", 1), await openFledgling("eagle3", 1)]) {
    using sequence = openWhole(core);
    found.push(await decode(core, [sequence], [golden.prompt_ids], of));
    core.gpu[Symbol.dispose]();
  }
  assert.deepEqual(found[0], found[1]);
});
