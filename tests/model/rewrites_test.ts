// Without any of the rewrites, and without all of them, a forward computes the same.

import assert from "node:assert/strict";
import { openRunner } from "../../src/engine/device/device_runner.ts";
import { loadWeights, openModels } from "../../src/engine/load/load.ts";
import type { LoadedWeights } from "../../src/engine/device/models.ts";
import type { OpenedModels } from "../../src/engine/load/opened_models.ts";
import { loadRandomWeights } from "../../src/engine/load/random_models.ts";
import type { Gpu } from "../../src/gpu/device.ts";
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
import { folderOf, loadSpeculated, openSpeculated } from "../engine/speculated.ts";
import { drawn, exhaustive } from "../exhaustive.ts";
import { openWide, WIDE_MODELS } from "./wide_models.ts";

interface Subject {
  readonly name: string;
  readonly software: boolean;
  /** Default: a golden. */
  readonly kind?: "fledgling" | "wide" | "alone";
}

const CASES: readonly Subject[] = [
  { name: "llama2", software: false },
  { name: "qwen2_window", software: true },
  { name: "gemma2", software: true },
  { name: "olmo2", software: true },
  { name: "gemma4_e", software: true },
  { name: "gemma4_moe", software: false },
  { name: "qwen3_moe", software: false },
  { name: "deepseek_v2_groups", software: false },
  { name: "hunyuan_dense", software: false },
  { name: "laguna", software: false },
  // Without a draft.
  { name: "qwen3_5_moe", software: false, kind: "alone" },
  // Rewrites of wide matrices and of one row.
  { name: "fledgling", software: false, kind: "fledgling" },
  ...WIDE_MODELS.map((name) => ({ name, software: false, kind: "wide" as const })),
];

/** Rewrites that change no forward of these targets, and where what they make is compared. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    ["norm_pair", "concat_in_place", "verify_in_norm", "add_in_matmul", "copy_in_norm"]
      .map((name) => [name, "tests/engine/without_rewrites_test.ts"] as const),
  ),
  partials_in_matmul: "tests/engine/without_rewrites_test.ts",
  gather_in_norm: "tests/engine/nextn_test.ts",
  combine_in_stream: "tests/engine/nextn_test.ts",
  combine_into_shared: "tests/kernels/experts_test.ts",
  // On matrix units.
  row_scales: "tests/kernels/rms_norm_test.ts",
  attention_row_scales: "tests/kernels/attention_units_test.ts",
  gate_row_scales: "tests/kernels/matmul_on_units_test.ts",
  f16_rows: "tests/model/f16_rows_test.ts",
};

/** Rewrites that changed the forwards of a case. */
const compared = new Set<string>();

/** Largest distance where the order of a sum changes, over the logits' root mean square. */
const FARTHEST = 1e-4;

const TOKENS = [17, 5, 91];

/** What is dispatched, wherever values are stored. */
function kernelsOf(plan: readonly Dispatch[]): string {
  return plan.map(({ label, kernel }) => `${label} ${kernel.name}`).join("\n");
}

async function opened(name: string, kind: Subject["kind"]): Promise<OpenedModels> {
  if (kind === "wide") return await openWide(name);
  if (kind === "alone") return openModels({ model: folderOf(name), algorithm: "NONE" });
  return kind === "fledgling" ? openModels({}) : await openSpeculated(name);
}

async function loaded(
  gpu: Gpu,
  models: OpenedModels,
  kind: Subject["kind"],
): Promise<LoadedWeights> {
  if (kind === "wide") return await loadRandomWeights(gpu, models, 1);
  return await (kind === undefined ? loadSpeculated : loadWeights)(gpu, models);
}

for (const { name, software, kind } of CASES) {
  const kernels = `${software ? "software" : "hardware"} kernels`;
  const { test } = kind ? exhaustive : software ? Deno : drawn;
  test(`${name}, ${kernels}: every rewrite may be turned off, and all of them`, async () => {
    const gpu = await openGpu();
    const adapter = { ...gpu, info: { ...gpu.info, software } };
    using models = await opened(name, kind);
    const runner = await openRunner(adapter, await loaded(adapter, models, kind), {
      batch: 1,
      shapes: chains([0, 1]),
      prefillRows: 8,
      contextLength: 2 * PAGE,
      pages: 4,
    });
    using sequence = openSequence(runner);
    assert.ok(runner.reserve(sequence, PAGE));
    const { target } = runner.models;
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
    for (const each of tried) compared.add(each);
    assert.ok(tried.includes("all") && tried.length > 2, tried.join());
    for (const { buffer } of inputs) buffer.destroy();
  });
}

exhaustive.test("each rewrite changes a forward of one of these targets, or is compared elsewhere", () => {
  const known = [...compared, ...Object.keys(ELSEWHERE)];
  assert.deepEqual(REWRITES.map(({ name }) => name).filter((name) => !known.includes(name)), []);
});

Deno.test("rewrites are turned off by their names", () => {
  assert.deepEqual([...rewritesWithout("split_k, norm_in_matmul,")], ["split_k", "norm_in_matmul"]);
  assert.deepEqual([...rewritesWithout("")], []);
  assert.throws(
    () => rewritesWithout("split"),
    /^UsageError: Cannot use "EYRIE_WITHOUT=split": there is no rewrite "split" \(there are all, /,
  );
  const names = REWRITES.map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
  assert.deepEqual(Object.keys(ELSEWHERE).filter((name) => !names.includes(name)), []);
  for (const { within } of REWRITES) assert.ok(within === undefined || names.includes(within));
});
