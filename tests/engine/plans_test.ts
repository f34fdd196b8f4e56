// What a model's rounds and prompts dispatch, as golden text: a change shows up in review.

import assert from "node:assert/strict";
import {
  type EngineSizes,
  firstRowsAt,
  maxRows,
  roundBuffers,
} from "../../src/engine/device/buffers.ts";
import { type LoadedWeights, prepareModels } from "../../src/engine/device/models.ts";
import { deviceDrafterOf } from "../../src/engine/device/programs.ts";
import { promptBody, promptDraft, promptHead } from "../../src/engine/device/prompt_plans.ts";
import { roundPlans } from "../../src/engine/device/round_plans.ts";
import {
  GREEDY_SAMPLING,
  PLAIN_SAMPLING,
  type SamplingKind,
} from "../../src/engine/device/choice/choice.ts";
import { chain, chains } from "../../src/speculate/round_shape.ts";
import { loadWeights, type ModelChoice, openModels } from "../../src/engine/load/load.ts";
import type { Gpu } from "../../src/gpu/device.ts";
import type { KvDtype } from "../../src/gpu/kv.ts";
import type { QuantizeChoice } from "../../src/model/config/quantize_choice.ts";
import { assertGolden } from "../golden_text.ts";
import { paperGpu } from "../gpu/paper.ts";
import { folded, merged, plansText, type ShapedPlan } from "./plan_text.ts";
import { folderOf, loadSpeculated, openSpeculated, SPECULATED } from "./speculated.ts";

const STEPS = [0, 1, 3];
const BATCHES = [1, 4];
const PROMPT_ROWS = [8, 64, 256];

/** How a golden's weights come about. */
interface Subject {
  readonly load: (gpu: Gpu) => Promise<LoadedWeights>;
  readonly kvDtype?: KvDtype;
}

function opened(choice: ModelChoice, quantize: QuantizeChoice = {}): Subject {
  return {
    async load(gpu) {
      using models = openModels(choice);
      return await loadWeights(gpu, models, quantize);
    },
  };
}

function speculated(name: string): Subject {
  return {
    async load(gpu) {
      using models = await openSpeculated(name);
      return await loadSpeculated(gpu, models);
    },
  };
}

const FLEDGLING = new URL("../../models/fledgling/target", import.meta.url).pathname;

const SUBJECTS: Readonly<Record<string, Subject>> = {
  fledgling_eagle3: opened({ algorithm: "EAGLE3" }),
  fledgling_eagle1: opened({ algorithm: "EAGLE" }),
  fledgling_alone: opened({ algorithm: "NONE" }),
  fledgling_q8_f16: { ...opened({}, { quantize: "q8" }), kvDtype: "f16" },
  fledgling_q4_bf16: { ...opened({}, { quantize: "q4", quantizeDraft: true }), kvDtype: "bf16" },
  fledgling_standalone: opened({ draft: FLEDGLING }),
  deepseek_v3_nextn: opened({ model: folderOf("deepseek_v3"), algorithm: "NEXTN" }),
  ...Object.fromEntries(
    ["qwen3_5", "qwen3_5_moe", "lfm2"].map((name) =>
      [name, opened({ model: folderOf(name), algorithm: "NONE" })] as const
    ),
  ),
  ...Object.fromEntries(SPECULATED.map((name) => [name, speculated(name)])),
};

/** All plans of an engine with these weights. */
async function plansOf(gpu: Gpu, { load, kvDtype = "f32" }: Subject): Promise<ShapedPlan[]> {
  const capacity: EngineSizes = {
    batch: Math.max(...BATCHES),
    shapes: chains(STEPS),
    prefillRows: Math.max(...PROMPT_ROWS),
    contextLength: 32,
    pages: 16,
    kvDtype,
  };
  const buffers = roundBuffers(gpu, capacity);
  const models = prepareModels(gpu, await load(gpu), capacity, buffers);
  const { target } = models;
  const drafter = deviceDrafterOf(models, buffers);
  const of = { maxRows: maxRows(capacity), firstRows: firstRowsAt(capacity) };
  const parts = { target, drafter, buffers, ...of };
  const steps = drafter ? STEPS : [0];
  const rounds = steps.flatMap((numSteps) =>
    BATCHES.flatMap((batch) => {
      const spec = { ...chain(numSteps), batch };
      const sampled = roundPlans(parts, { ...spec, choice: PLAIN_SAMPLING });
      const greedy = roundPlans(parts, { ...spec, choice: GREEDY_SAMPLING });
      return named("round", `${numSteps} steps x ${batch}`, {
        draft: sampled.draft,
        target: [...sampled.rows, ...sampled.target],
        accept: [...sampled.choose, ...sampled.accept],
        extend: [...sampled.extend, ...sampled.head],
        greedy: [...greedy.choose, ...greedy.accept],
      });
    })
  );
  const prompts = PROMPT_ROWS.flatMap((rows) => {
    const forward = { count: rows, perSlot: rows };
    return named("prompt", `${rows} rows`, {
      body: promptBody(parts, forward),
      head: promptHead(parts, 1),
      draft: promptDraft(parts, forward),
    });
  });
  if (drafter === undefined) return [...rounds, ...prompts];
  return [
    ...rounds,
    ...prompts,
    ...PROMPT_ROWS.flatMap((rows) =>
      named("catch up", `${rows} rows`, { body: drafter.catchUp?.rows(rows) ?? [] })
    ),
    ...BATCHES.flatMap((batch) => named("draft head", `x ${batch}`, { head: drafter.head(batch) })),
  ];
}

function named(of: string, shape: string, plans: Record<string, ShapedPlan["plan"]>): ShapedPlan[] {
  return Object.entries(plans).map(([part, plan]) => ({ name: `${of}, ${part}`, shape, plan }));
}

/** Plans of packed rounds, and of chains that tell the draft's confidence. */
async function packedPlansOf(gpu: Gpu): Promise<ShapedPlan[]> {
  const capacity: EngineSizes = {
    batch: 4,
    shapes: chains([3]),
    prefillRows: 64,
    confident: true,
    contextLength: 32,
    pages: 16,
  };
  const buffers = roundBuffers(gpu, capacity);
  const models = prepareModels(gpu, await opened({}).load(gpu), capacity, buffers);
  const { target } = models;
  const drafter = deviceDrafterOf(models, buffers);
  const of = {
    maxRows: maxRows(capacity),
    firstRows: firstRowsAt(capacity),
    withConfidences: true,
  };
  const parts = { target, drafter, buffers, ...of };
  return [[1, 2], [4, 6], [4, 12]].flatMap(([batch = 0, packed = 0]) => {
    const spec = { ...chain(3), batch, packed, allocates: true, choice: PLAIN_SAMPLING };
    const { target, choose, accept: acceptance, ...plans } = roundPlans(parts, spec);
    return named("packed", `${packed} rows x ${batch}`, {
      draft: plans.draft,
      allocate: plans.allocate,
      rows: plans.rows,
      target: [...target, ...choose],
      acceptance,
      extend: plans.extend,
      head: plans.head,
    });
  });
}

Deno.test("plans of packed rounds", async () => {
  await assertPlans("packed", packedPlansOf);
});

async function assertPlans(
  name: string,
  of: (gpu: Gpu) => Promise<ShapedPlan[]>,
): Promise<void> {
  const parts: string[] = [];
  for (const software of [true, false]) {
    const plans = await of(paperGpu({ software }));
    parts.push(`# ${software ? "software" : "hardware"}`, plansText(plans));
  }
  const text = `${parts.join("\n\n")}\n`;
  await assertGolden(new URL(`../golden/plans/${name}.txt`, import.meta.url), text, import.meta);
}

for (const [name, subject] of Object.entries(SUBJECTS)) {
  Deno.test(`plans of ${name}`, async () => {
    await assertPlans(name, (gpu) => plansOf(gpu, subject));
  });
}

Deno.test("q, k and v that go together with their attention store the stream before its copies read it", async () => {
  // A kernel binds more of them than a golden's adapter has.
  const gpu = paperGpu({ software: false, storageBuffers: 16 });
  const plans = await plansOf(gpu, speculated("phi4_mini"));
  const target = plans.find(({ name, shape }) =>
    name === "round, target" && shape === "0 steps x 1"
  );
  const attention = target?.plan.filter(({ kernel }) => /^joined.*attention/.test(kernel.name));
  assert.equal(attention?.length, 2, target?.plan.map(({ kernel }) => kernel.name).join("\n"));
});

Deno.test("parts that rounds share are the same whatever the round chooses by, also when scratch has grown", async () => {
  const load = speculated("qwen3_moe").load;
  for (const software of [true, false]) {
    const gpu = paperGpu({ software });
    const capacity: EngineSizes = {
      batch: 4,
      shapes: chains([0, 3]),
      prefillRows: 64,
      contextLength: 32,
      pages: 16,
    };
    const buffers = roundBuffers(gpu, capacity);
    const models = prepareModels(gpu, await load(gpu), capacity, buffers);
    const { target } = models;
    const parts = {
      target,
      drafter: deviceDrafterOf(models, buffers),
      buffers,
      maxRows: maxRows(capacity),
      firstRows: firstRowsAt(capacity),
    };
    const boundBy = (choice: SamplingKind) =>
      roundPlans(parts, { ...chain(3), batch: 2, choice }).target.map(({ label, buffers }) => [
        label,
        ...Object.values(buffers).map(({ buffer, offset = 0 }) => `${buffer.label}+${offset}`),
      ]);
    const sampled = boundBy(PLAIN_SAMPLING);
    assert.deepEqual(boundBy(GREEDY_SAMPLING), sampled);
    // As plans do that find no room: buffers of many sizes are added, which later values would fit.
    const powers = Array.from({ length: 18 }, (_, i) => 2 ** (22 - i));
    target.scratch.place(powers.map((bytes) => ({ bytes, first: 0, last: 0 })));
    assert.deepEqual(boundBy(GREEDY_SAMPLING), sampled);
  }
});

Deno.test("lines that differ in numbers are one with all of them", () => {
  const lines = ["a matmul_1_2 [1,16,1] x=t N=3", "a matmul_4_2 [2,16,1] x=t N=3"];
  assert.equal(merged(lines), "a matmul_1|4_2 [1|2,16,1] x=t N=3");
  assert.equal(merged(["a one [1]", "a one_more [1]"]), "a one|one_more [1]");
});

Deno.test("layers that differ in their number alone are told in short, others are not", () => {
  const layer = (
    i: number,
    kv = i,
  ) => [`layers.${i}.q w=layers.${i}.q`, `layers.${i}.kv k=kv.${kv}`];
  const short = (i: number) => [`layers.${i}.q as before`, `layers.${i}.kv as before`];
  assert.deepEqual(folded(["a x=1", ...layer(0), ...layer(1), ...layer(2), "a x=2", "a x=2"]), [
    ...["a x=1", ...layer(0), ...short(1), ...short(2), "a x=2", "a as before"],
  ]);
  // The keys of another layer.
  const [q, kv] = layer(1, 0);
  assert.deepEqual(folded([...layer(0), q as string, kv as string]), [
    ...[...layer(0), "layers.1.q as before", "layers.1.kv k=kv.0"],
  ]);
});
