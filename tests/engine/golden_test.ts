import assert from "node:assert/strict";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { openGpu } from "../gpu/shared.ts";
import { readBuffer } from "../../src/gpu/readback.ts";
import { ropeTable } from "../../src/model/weights/rope_table.ts";
import { withRoundedBuffers } from "../../src/model/config/rounded_buffers.ts";
import { prefillPrompt } from "../../src/engine/device/single_sequence.ts";
import { EXHAUSTIVE } from "../exhaustive.ts";
import { decode, goldenCases, openFledgling, openWhole } from "./fledgling.ts";

const cases = goldenCases();

for (const kind of ["eagle3", "eagle1"] as const) {
  Deno.test(`${kind} decodes the golden prompts as PyTorch does`, async (t) => {
    const runner = await openFledgling(kind, 1);
    // The target's rounds are the same with either head, so each prompt is decoded with one: a third with EAGLE-1's.
    const some = cases.filter((_, i) => EXHAUSTIVE || (kind === "eagle1") === (i % 3 === 0));
    for (const golden of some) {
      await t.step(golden.task, async () => {
        using sequence = openWhole(runner);
        const [found] = await decode(runner, [sequence], [golden.prompt_ids], {
          numSteps: 3,
          most: 160,
          sampling: [GREEDY],
        });
        // Below this margin the order of float32 sums decides; PyTorch's differs from ours.
        if (golden.min_margin > 0.05) assert.deepEqual(found?.ids, golden.greedy_ids);
        if (found?.ids.join() !== golden.greedy_ids.join()) return;
        const expected = golden.draft[kind];
        assert.deepEqual(found.accepted, expected.accepted_per_round);
        // The golden run feeds the true tokens to every level, so its drafts after the first wrong one
        // answer another question than ours.
        const comparable = (expected.accepted_per_round[0] ?? 0) + 1;
        assert.deepEqual(
          found.drafts[0]?.slice(0, comparable),
          expected.first_round.slice(0, comparable),
        );
      });
    }
    runner.gpu[Symbol.dispose]();
  });
}

// The golden values were computed after the whole model was cast to bfloat16, and with it
// transformers' inv_freq buffer: PyTorch rotated by frequencies rounded to bf16. Loaded from the
// checkpoint, as users load it, transformers computes them in float32, and so does Eyrie (`check`
// shows it). With the rounded frequencies the golden logits come out; with the true ones they are
// up to 3.1e-3 away.
Deno.test("first logits of the golden prompts are PyTorch's within 1e-4", async () => {
  const runner = await openFledgling("eagle3", 1);
  const { logits, ropes, config } = runner.models.target;
  const [rope = assert.fail()] = withRoundedBuffers(config).ropes;
  const table = ropeTable(rope, rope.width, { positions: 64, context: 64 });
  runner.gpu.device.queue.writeBuffer(ropes[0]!.buffer, 0, Float32Array.from(table));
  for (const golden of cases) {
    using sequence = openWhole(runner);
    runner.setSampling(sequence, GREEDY);
    await prefillPrompt(runner, sequence, golden.prompt_ids);
    const row = new Float32Array(await readBuffer(runner.gpu, logits));
    for (const [i, id] of golden.first_logits.ids.entries()) {
      const wanted = golden.first_logits.values[i] ?? NaN;
      const found = row[id] ?? NaN;
      assert.ok(
        Math.abs(found - wanted) <= 1e-4 * Math.abs(wanted),
        `${golden.task}: logit ${id} is ${found}, expected ${wanted}`,
      );
    }
  }
  runner.gpu[Symbol.dispose]();
});

Deno.test("the kernels of hardware adapters decode a golden prompt, with and without drafts", async () => {
  const gpu = await openGpu();
  const hardware = { ...gpu, info: { ...gpu.info, software: false } };
  const runner = await openFledgling("eagle3", 1, hardware);
  using sequence = openWhole(runner);
  const golden = cases.find(({ min_margin }) => min_margin > 0.05) ?? assert.fail();
  for (const numSteps of [0, 3]) {
    const how = { numSteps, most: 24, sampling: [GREEDY] };
    const [found] = await decode(runner, [sequence], [golden.prompt_ids], how);
    assert.deepEqual(found?.ids, golden.greedy_ids.slice(0, 24));
  }
  gpu[Symbol.dispose]();
});
