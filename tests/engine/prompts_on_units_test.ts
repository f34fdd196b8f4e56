/**
 * Weights that matrix units multiply in prompts alone: which matrices these are, and the text on a device that has
 * units (EYRIE_WEBGPU=dawn, if any).
 */
import assert from "node:assert/strict";
import { allocateTensorMatrices } from "../../src/engine/matrices/tensor.ts";
import { matmulsOf } from "../../src/engine/matrices/matmuls.ts";
import { unitsReport } from "../../src/engine/matrices/units_report.ts";
import { loadWeights, openModels } from "../../src/engine/load/load.ts";
import { hasPromptKernels } from "../../src/gpu/matrices_on_units.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import { openGpu } from "../gpu/shared.ts";
import { variable } from "../variable.ts";
import { assertNextTurns, assertPreempted } from "./greedy.ts";
import { assertNothingHeld } from "./held.ts";
import { openEngine } from "./open.ts";

const UNIT = { m: 16, n: 16, k: 16, lanes: 32 };

Deno.test("only a target has kernels of its own for prompts, not a draft", async () => {
  using _ = variable("EYRIE_MATRIX_UNITS", "auto");
  const gpu = await openGpu();
  const units = {
    ...gpu,
    info: { ...gpu.info, software: false },
    matrixUnit: UNIT,
    limits: {
      ...gpu.limits,
      maxComputeInvocationsPerWorkgroup: 1024,
      maxComputeWorkgroupStorageSize: 49152,
      maxStorageBuffersPerShaderStage: 16,
    },
  };
  using models = openModels({});
  const exact = await loadWeights(gpu, models);
  const quantized = await loadWeights(gpu, models, { quantize: "q8", quantizeDraft: true });
  const place = (loaded: typeof exact) => allocateTensorMatrices(units, loaded);
  const report = (loaded: typeof exact) => {
    const { matrices, prompts } = unitsReport(units, loaded, { contextLength: 512 }) ?? {};
    return { matrices, prompts };
  };

  const mixed = place({ ...exact, draft: quantized.draft });
  assert.equal(hasPromptKernels(mixed.tensor), false);
  assert.equal(report(mixed).prompts, 0);

  const both = place(quantized);
  assert.equal(hasPromptKernels(both.tensor), true);
  const rules = tuning(false, units.limits, "vulkan");
  const ofTarget = matmulsOf({ target: quantized.target, draft: undefined }, rules);
  const shards = new Set(ofTarget.flatMap(({ matrix }) => matrix.shards));
  const there = [...both.tensor?.shards ?? []];
  assert.ok(there.every(([shard, { promptsOnly }]) => !promptsOnly || shards.has(shard)));
  // The head is an embedding and stays bf16, for the target and for its draft.
  const { layers } = quantized.target.weights;
  assert.equal(report(both).prompts, 4 * layers.length);

  // Where all weights do so in prompts alone, neither the layers' matrices nor the head, which the draft shares, are
  // multiplied there in rounds; the draft's own are.
  using __ = variable("EYRIE_MATRIX_UNITS", "prompts");
  const alone = place(exact);
  const { matrices = 0, prompts = 0 } = report(alone);
  assert.equal(prompts, 4 * layers.length + 1);
  assert.ok(matrices > prompts);
  const ofPrompts = [...alone.tensor?.shards ?? []].filter(([, { promptsOnly }]) => promptsOnly);
  assert.ok(ofPrompts.every(([, { stored }]) => stored === "loaded"));
});

const { matrixUnit } = await openGpu();

Deno.test({
  name: "prompts on units, rounds not: preempted requests and later turns have the plain text",
  ignore: matrixUnit === undefined,
  async fn() {
    for (const model of [{}, { quantize: "q8" }] as const) await comparePrompts(model);
  },
});

/** Compares requests of engines whose prompts alone are on units with an engine of one request at a time. */
async function comparePrompts(model: NonNullable<Parameters<typeof openEngine>[0]["model"]>) {
  using _ = variable("EYRIE_MATRIX_UNITS", "prompts");
  const few = { maxBatch: 3, maxKvTokens: 256, contextLength: 160 };
  using plain = await openEngine({
    model: { ...model, draft: "none" },
    limits: { prefixCache: false, contextLength: 512 },
  });
  assert.equal(plain.runner.promptKernels, true);
  for (const maxBatchedRows of [16, 256]) {
    using engine = await openEngine({ model, limits: { ...few, maxBatchedRows } });
    await assertNextTurns(engine, plain, await assertPreempted(engine, plain));
    assertNothingHeld(engine);
  }
}
