// No run on this machine compiles the kernels of matrix units: Deno's compiler does not know them. Those of plans on
// paper are WGSL as Tint has it; the kernels between them are checked along.

import { deepEqual, ok } from "node:assert/strict";
import { PAGE } from "../../kernels/lib/rows.ts";
import { roundBuffers, storageBuffer } from "../../src/engine/device/buffers.ts";
import { prepareModels } from "../../src/engine/device/models.ts";
import { loadRandomWeights } from "../../src/engine/load/random_models.ts";
import { allocateTensorMatrices } from "../../src/engine/matrices/tensor.ts";
import type { Gpu } from "../../src/gpu/device.ts";
import { ROW_WORDS } from "../../src/model/device_layout.ts";
import { bodyPlan, headPlan } from "../../src/model/lower/target_plans.ts";
import { chains } from "../../src/speculate/round_shape.ts";
import { paperGpu } from "../gpu/paper.ts";
import { openWide, WIDE_MODELS } from "../model/wide_models.ts";
import { CHECK } from "./processes.ts";

const ROOT = new URL("../..", import.meta.url);
/** Rows of forwards: one, few, tiles that are not full, a prompt. */
const ROWS = [1, 4, 40, 256];
/** Requests at a time: with few, rounds of a mixture in bf16 are not on units, and prompts read experts row by row. */
const BATCHES = [16, 1];
/** So long that attention runs on matrix units too, see `attentionForwards`. */
const LONG_CONTEXT = 65536;

/** A GPU on paper as one with matrix units is: many storage buffers and large workgroups. */
function paperWithUnits(): Gpu {
  const gpu = paperGpu({ software: false, storageBuffers: 16 });
  const limits = {
    ...gpu.limits,
    maxComputeWorkgroupStorageSize: 49152,
    maxComputeInvocationsPerWorkgroup: 1024,
  };
  const matrixUnit = { m: 16, n: 16, k: 16, lanes: 32, narrow: 8 };
  return { ...gpu, limits, matrixUnit, info: { ...gpu.info, subgroup: 32 } };
}

/** WGSL of the kernels of forwards, by name. */
async function kernelsOf(
  name: string,
  quantize: "q8" | "q4" | undefined,
  maxBatch: number,
): Promise<Map<string, string>> {
  const gpu = paperWithUnits();
  using opened = await openWide(name);
  const alone = { ...gpu, matrixUnit: undefined };
  const loaded = await loadRandomWeights(alone, opened, 1, quantize ? { quantize } : {});
  const weights = allocateTensorMatrices(gpu, loaded, { maxBatch });
  const capacity = {
    batch: 4,
    shapes: chains([0, 3]),
    prefillRows: Math.max(...ROWS),
    contextLength: LONG_CONTEXT,
    pages: LONG_CONTEXT / PAGE,
    kvDtype: "bf16",
  } as const;
  const models = prepareModels(gpu, weights, capacity, roundBuffers(gpu, capacity));
  const plans = ROWS.flatMap((count) => {
    const rows = storageBuffer(gpu, "rows", count * ROW_WORDS);
    return [models.target, models.promptTarget].flatMap((model) => [
      ...bodyPlan(model, { rows, count, perSlot: count }),
      ...headPlan(model, Math.min(count, 4)),
    ]);
  });
  return new Map(plans.map(({ kernel }) => [kernel.name, kernel.code]));
}

for (const name of WIDE_MODELS) {
  for (const quantize of [undefined, "q8", "q4"] as const) {
    Deno.test(`kernels on matrix units are WGSL: ${name}, ${quantize ?? "bf16"}`, async () => {
      const kernels = new Map<string, string>();
      for (const maxBatch of quantize ? [Math.max(...BATCHES)] : BATCHES) {
        const more = await kernelsOf(name, quantize, maxBatch);
        for (const [name, code] of more) kernels.set(name, code);
      }
      ok([...kernels.values()].some((code) => code.includes("subgroup_matrix")));
      const folder = await Deno.makeTempDir({ prefix: "eyrie-wgsl-units-" });
      try {
        for (const [kernel, code] of kernels) {
          await Deno.writeTextFile(`${folder}/${kernel}-0.wgsl`, code);
        }
        const { code, stdout } = await new Deno.Command(Deno.execPath(), {
          args: [...CHECK, folder],
          cwd: ROOT,
          env: { NO_COLOR: "1" },
          stdin: "null",
        }).output();
        const text = `Tint: ${kernels.size} modules, 0 pipelines, no faults\n`;
        deepEqual({ code, text: new TextDecoder().decode(stdout) }, { code: 0, text });
      } finally {
        await Deno.remove(folder, { recursive: true });
      }
    });
  }
}
