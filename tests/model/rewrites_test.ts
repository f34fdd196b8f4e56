// Without any of the rewrites, and without all of them, a forward computes the same.

import assert from "node:assert/strict";
import { openRunner } from "../../src/engine/device/device_runner.ts";
import { loadWeights, openModels } from "../../src/engine/load/load.ts";
import { openSequence } from "../../src/engine/device/single_sequence.ts";
import { storageBuffer } from "../../src/engine/device/buffers.ts";
import type { Dispatch } from "../../src/gpu/kernel.ts";
import { compiler, submit, within } from "../../src/gpu/program.ts";
import { readBuffer } from "../../src/gpu/readback.ts";
import { chainRow, PAGE, ROW_WORDS } from "../../src/model/device_layout.ts";
import { bodyPlan, headPlan } from "../../src/model/lower/target_plans.ts";
import { REWRITES } from "../../src/model/lower/rewrites.ts";
import { rewritesWithout } from "../../src/model/lower/without.ts";
import { chains } from "../../src/speculate/round_shape.ts";
import { slotOf } from "../../src/engine/device/sequence.ts";
import { openGpu } from "../gpu/shared.ts";
import { loadSpeculated, openSpeculated } from "../engine/speculated.ts";
import { exhaustive } from "../exhaustive.ts";

/** Goldens, and the embedded model, whose matrices are wide enough for what one row alone has. */
const CASES = [
  { name: "llama2", software: false },
  { name: "qwen2_window", software: true },
  { name: "gemma2", software: true },
  { name: "olmo2", software: true },
  { name: "qwen3_moe", software: false },
  { name: "deepseek_v2_groups", software: false },
  { name: "fledgling", software: false },
] as const;

/** Largest distance where the order of a sum changes, over the logits' root mean square. */
const FARTHEST = 1e-4;

const TOKENS = [17, 5, 91];

/** What is dispatched, wherever values are stored. */
function kernelsOf(plan: readonly Dispatch[]): string {
  return plan.map(({ label, kernel }) => `${label} ${kernel.name}`).join("\n");
}

for (const { name, software } of CASES) {
  const kernels = `${software ? "software" : "hardware"} kernels`;
  const isFledgling = name === "fledgling";
  const { test } = isFledgling ? exhaustive : Deno;
  test(`${name}, ${kernels}: every rewrite may be turned off, and all of them`, async () => {
    const gpu = await openGpu();
    using models = isFledgling ? openModels({}) : await openSpeculated(name);
    const adapter = { ...gpu, info: { ...gpu.info, software } };
    const load = isFledgling ? loadWeights : loadSpeculated;
    const core = await openRunner(adapter, await load(adapter, models), {
      batch: 1,
      shapes: chains([0, 1]),
      prefillRows: 8,
      contextLength: 2 * PAGE,
      pages: 4,
    });
    using sequence = openSequence(core);
    assert.ok(core.reserve(sequence, PAGE));
    const { target } = core.models;
    const { compile } = compiler(gpu);
    const slot = slotOf(sequence);
    /** Of the first token alone, then of the others, with what was stored before. */
    const planOf = (without: ReadonlySet<string>): Dispatch[] =>
      [[0, 1], [1, TOKENS.length]].flatMap(([from = 0, to = 0], part) => {
        const count = to - from;
        const rows = inputs[part] ?? assert.fail();
        const context = { ...target, without };
        return [
          ...bodyPlan(context, { rows, count, perSlot: count }),
          ...headPlan(context, count),
        ];
      });
    const inputs = [[0, 1], [1, TOKENS.length]].map(([from = 0, to = 0]) => {
      const rows = storageBuffer(gpu, "rows", (to - from) * ROW_WORDS);
      const words = TOKENS.slice(from, to).flatMap((token, i) => [
        ...chainRow(token, slot, from + i),
      ]);
      gpu.device.queue.writeBuffer(rows.buffer, 0, Uint32Array.from(words));
      return rows;
    });
    const logitsOf = async (plan: Dispatch[]): Promise<Float32Array> => {
      // Of operations for few and for many cells one is to run.
      submit(gpu, within(await compile(plan), 2 * PAGE));
      gpu.check();
      const stride = target.weights.head.rows;
      const all = new Float32Array(await readBuffer(gpu, target.logits));
      return all.slice(0, (TOKENS.length - 1) * stride);
    };
    const plan = planOf(new Set());
    const wanted = await logitsOf(plan);
    const size = Math.sqrt(wanted.reduce((sum, x) => sum + x * x, 0) / wanted.length);
    assert.ok(size > 0.01);
    const tried: string[] = [];
    for (const { name: off, changesBits } of [...REWRITES, { name: "all", changesBits: true }]) {
      const other = planOf(new Set([off]));
      if (kernelsOf(other) === kernelsOf(plan)) continue;
      tried.push(off);
      const found = await logitsOf(other);
      if (!changesBits) assert.deepEqual(found, wanted, off);
      for (const [i, logit] of found.entries()) {
        const far = Math.abs(logit - (wanted[i] ?? NaN));
        assert.ok(far <= FARTHEST * size, `${off}: ${logit}, expected ${wanted[i]}`);
      }
    }
    assert.ok(tried.includes("all") && tried.length > 2, tried.join());
    for (const { buffer } of inputs) buffer.destroy();
  });
}

Deno.test("rewrites are turned off by their names", () => {
  assert.deepEqual([...rewritesWithout("split_k, norm_in_matmul,")], ["split_k", "norm_in_matmul"]);
  assert.deepEqual([...rewritesWithout("")], []);
  assert.throws(
    () => rewritesWithout("split"),
    /^UsageError: Cannot use "EYRIE_WITHOUT=split": there is no rewrite "split" \(there are all, /,
  );
  const names = REWRITES.map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
  for (const { within } of REWRITES) assert.ok(within === undefined || names.includes(within));
});
