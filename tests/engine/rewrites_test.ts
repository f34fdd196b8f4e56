import assert from "node:assert/strict";
import { openSamplingKinds } from "../../src/engine/device/choice/choice.ts";
import { type EngineSizes, roundBuffers } from "../../src/engine/device/buffers.ts";
import { type LoadedWeights, prepareModels } from "../../src/engine/device/models.ts";
import { enginePrograms, type Programs } from "../../src/engine/device/programs.ts";
import { otherPlans } from "../../src/engine/check/rewrites.ts";
import { loadWeights, openModels } from "../../src/engine/load/load.ts";
import type { CellRange, Dispatch } from "../../src/gpu/kernel.ts";
import type { Gpu } from "../../src/gpu/device.ts";
import { REWRITES } from "../../src/model/lower/rewrites.ts";
import { chain, chains } from "../../src/speculate/round_shape.ts";
import { paperGpu } from "../gpu/paper.ts";
import { loadSpeculated, openSpeculated } from "./speculated.ts";

const CAPACITY: EngineSizes = {
  batch: 1,
  shapes: chains([0, 3]),
  prefillRows: 256,
  contextLength: 32,
  pages: 16,
};

function programsOf(
  gpu: Gpu,
  loaded: LoadedWeights,
  without?: ReadonlySet<string>,
): Programs {
  const buffers = roundBuffers(gpu, CAPACITY);
  const models = prepareModels(gpu, loaded, CAPACITY, buffers);
  const target = without ? { ...models.target, without } : models.target;
  return enginePrograms(gpu, {
    models: { ...models, target, promptTarget: target },
    buffers,
    choice: openSamplingKinds(gpu, models.target, CAPACITY),
    capacity: CAPACITY,
    acceptance: undefined,
    relaxed: undefined,
  });
}

const ONE = chain(0);
const FOUR = chain(3);

/** The rewrites that are measured, at each shape. */
function measured(programs: Programs): Record<string, string[]> {
  const namesOf = (planOf: (without: ReadonlySet<string>) => Dispatch[]) =>
    [...otherPlans(planOf, 32)].map((other) => "why" in other ? other.why : other.rewrite);
  return {
    "1 row": namesOf((without) => programs.verifyPlan({ ...ONE, batch: 1 }, without)),
    "4 rows": namesOf((without) =>
      programs.verifyPlan({ ...FOUR, batch: 1, proposed: true }, without)
    ),
    "prompt": namesOf((without) => programs.promptPlan(256, without)),
  };
}

Deno.test("rewrites: those are measured that change what the model's forward dispatches", async () => {
  const gpu = paperGpu({ software: true });
  using models = openModels({ algorithm: "NONE" });
  const loaded = await loadWeights(gpu, models);
  const everywhere = ["gate_in_matmul", "heads_in_matmul", "add_in_norm"];
  const rounds = ["embed_in_norm", "verify_in_norm", ...everywhere, "all"];
  assert.deepEqual(measured(programsOf(gpu, loaded)), {
    "1 row": rounds,
    "4 rows": rounds,
    "prompt": ["embed_in_norm", ...everywhere, "all"],
  });
  // Where EYRIE_WITHOUT has turned some off, they stay off.
  const off = new Set(["add_in_norm", "embed_in_norm"]);
  assert.deepEqual(measured(programsOf(gpu, loaded, off)).prompt, [
    "gate_in_matmul",
    "heads_in_matmul",
    // Takes the sums that the one before it would.
    "add_in_matmul",
    "all",
  ]);
  const none = { "1 row": [], "4 rows": [], "prompt": [] };
  assert.deepEqual(measured(programsOf(gpu, loaded, new Set(["all"]))), none);
});

Deno.test("rewrites: experts have theirs, on hardware", async () => {
  const gpu = paperGpu({ software: false });
  using models = await openSpeculated("qwen3_moe");
  const found = measured(programsOf(gpu, await loadSpeculated(gpu, models)));
  for (const name of ["experts_in_norm", "partials_in_matmul", "all"]) {
    assert.ok(found["1 row"]?.includes(name), `${name}: ${found["1 row"]}`);
  }
  // A prompt's chunk has no head, and this rewrite concerns the head's choice.
  assert.ok(!found["prompt"]?.includes("partials_in_matmul"));
});

function dispatch(label: string, forCells?: CellRange): Dispatch {
  const kernel = { name: "k", code: "", bindings: [], numbers: [] };
  return {
    kernel,
    label,
    buffers: {},
    constants: {},
    workgroups: [1, 1, 1],
    work: undefined,
    ...forCells ? { forCells } : {},
  } as unknown as Dispatch;
}

Deno.test("rewrites: a dispatch for other lengths is no difference, a plan that fails is said", () => {
  const [first, second, third] = REWRITES;
  const planOf = (without: ReadonlySet<string>) => {
    if (without.has(second?.name ?? "")) throw new Error("no kernel\nof this kind");
    const long = dispatch("long", { from: 100, upTo: Infinity });
    return [
      dispatch(without.has("all") ? "plain" : "fused"),
      ...without.has(first?.name ?? "") ? [long] : [],
      ...without.has(third?.name ?? "") ? [dispatch("more")] : [],
    ];
  };
  const found = (cells: number) =>
    [...otherPlans(planOf, cells)].map((other) => [
      other.rewrite,
      "why" in other ? other.why : other.plan.length,
    ]);
  const failed = [second?.name, "no kernel"];
  assert.deepEqual(found(99), [failed, [third?.name, 2], ["all", 1]]);
  assert.deepEqual(found(100), [[first?.name, 2], failed, [third?.name, 2], ["all", 1]]);
});
