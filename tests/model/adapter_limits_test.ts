/**
 * Launches have the storage buffers, workgroup memory and invocations that adapters have. Deno's WebGPU checks the
 * first of the three.
 */
import assert from "node:assert/strict";
import { canBeJoined } from "../../kernels/joined.ts";
import { roundBuffers, storageBuffer } from "../../src/engine/device/buffers.ts";
import { prepareModels } from "../../src/engine/device/models.ts";
import { loadRandomWeights } from "../../src/engine/load/random_models.ts";
import { allocateTensorMatrices } from "../../src/engine/matrices/tensor.ts";
import type { Gpu } from "../../src/gpu/device.ts";
import type { Dispatch } from "../../src/gpu/kernel.ts";
import { workgroupInvocations, workgroupMemory } from "../../src/gpu/workgroup.ts";
import { ROW_WORDS } from "../../src/model/device_layout.ts";
import { bodyPlan, headPlan } from "../../src/model/lower/target_plans.ts";
import { chains } from "../../src/speculate/round_shape.ts";
import { paperGpu } from "../gpu/paper.ts";
import { openWide, WIDE_MODELS } from "./wide_models.ts";

const ROWS = [1, 2, 4, 8, 40, 256];

interface Adapter {
  readonly storageBuffers: number;
  readonly workgroupBytes: number;
  readonly invocations: number;
  readonly units?: boolean;
}

const ADAPTERS: readonly Adapter[] = [
  { storageBuffers: 10, workgroupBytes: 16384, invocations: 256 },
  { storageBuffers: 16, workgroupBytes: 16384, invocations: 256 },
  { storageBuffers: 16, workgroupBytes: 32768, invocations: 256 },
  { storageBuffers: 32, workgroupBytes: 49152, invocations: 1024 },
  { storageBuffers: 16, workgroupBytes: 49152, invocations: 1024, units: true },
];

/** What MLA's kernels need. */
const LATENT_BYTES = 32768;

/** Sizes of layers whose MLP, joined, would take more workgroup memory than one of the adapters has. */
const LARGE_JOINED = [
  { hidden_size: 2560, intermediate_size: 960 },
  { hidden_size: 1024, intermediate_size: 6400 },
  { hidden_size: 512, intermediate_size: 9728 },
  { hidden_size: 512, intermediate_size: 11008 },
] as const;

const MODELS: readonly (readonly [name: string, sizes?: Readonly<Record<string, number>>])[] = [
  ...WIDE_MODELS.map((name) => [name] as const),
  ...LARGE_JOINED.map((sizes) => ["wide_llama", sizes] as const),
];

function gpuOf({ storageBuffers, workgroupBytes, invocations, units }: Adapter): Gpu {
  const gpu = paperGpu({ software: false, storageBuffers });
  const limits = {
    ...gpu.limits,
    maxComputeWorkgroupStorageSize: workgroupBytes,
    maxComputeInvocationsPerWorkgroup: invocations,
  };
  const matrixUnit = units ? { m: 16, n: 16, k: 16, lanes: 32, narrow: 8 } : undefined;
  return { ...gpu, limits, matrixUnit, info: { ...gpu.info, subgroup: 32, backend: "vulkan" } };
}

/** @param forwards numbers of rows. */
async function launchesOf(
  [name, sizes]: (typeof MODELS)[number],
  adapter: Adapter,
  quantize: "q8" | "q4" | undefined,
  forwards: readonly number[] = ROWS,
): Promise<Dispatch[]> {
  const gpu = gpuOf(adapter);
  using opened = await openWide(name, sizes);
  const alone = { ...gpu, matrixUnit: undefined };
  const loaded = await loadRandomWeights(alone, opened, 1, quantize ? { quantize } : {});
  const weights = allocateTensorMatrices(gpu, loaded, { maxBatch: 16 });
  const capacity = {
    batch: 4,
    shapes: chains([0, 3]),
    prefillRows: Math.max(...forwards),
    contextLength: 4096,
    pages: 300,
    kvDtype: "bf16",
  } as const;
  const { target } = prepareModels(gpu, weights, capacity, roundBuffers(gpu, capacity));
  return forwards.flatMap((count) => {
    const rows = storageBuffer(gpu, "rows", count * ROW_WORDS);
    return [
      ...bodyPlan(target, { rows, count, perSlot: count }),
      ...headPlan(target, Math.min(count, 4)),
    ];
  });
}

Deno.test("of the most rows that may be asked for, launches fit one dimension of an adapter", async () => {
  for (const adapter of ADAPTERS.slice(-2)) {
    // Eight experts of each of 8,192 rows are one job more than there are workgroups.
    const model = ["wide_qwen3_moe", { num_experts_per_tok: 8 }] as const;
    const launches = await launchesOf(model, adapter, undefined, [8192]);
    assert.ok(launches.length > 0); // `dispatch` throws where there are more
  }
});

for (const adapter of ADAPTERS) {
  const { storageBuffers, workgroupBytes: most, invocations, units } = adapter;
  const kind = `${storageBuffers} buffers, ${most} bytes${units ? ", matrix units" : ""}`;
  Deno.test(`launches fit an adapter: ${kind}`, async () => {
    let joined = 0;
    for (const model of MODELS) {
      if (most < LATENT_BYTES && /deepseek|glm/.test(model[0])) continue;
      for (const quantize of [undefined, "q8", "q4"] as const) {
        for (const launch of await launchesOf(model, adapter, quantize)) {
          const { label, kernel: { name, bindings } } = launch;
          const what = `${model[0]} ${JSON.stringify(model[1])}, ${quantize}, ${label}: ${name}`;
          assert.ok(bindings.length <= storageBuffers, `${what}: ${bindings.length}`);
          const bytes = workgroupMemory(launch);
          assert.ok(bytes <= most, `${what}: ${bytes}`);
          assert.ok(
            workgroupInvocations(launch) <= invocations,
            `${what}: ${workgroupInvocations(launch)}`,
          );
          if (!name.startsWith("joined_")) continue;
          joined++;
          const room = { storageBuffers: bindings.length, workgroupBytes: bytes };
          assert.ok(canBeJoined(launch, room));
          assert.ok(!canBeJoined(launch, { ...room, workgroupBytes: bytes - 1 }));
          assert.ok(!canBeJoined(launch, { ...room, storageBuffers: bindings.length - 1 }));
        }
      }
    }
    assert.equal(joined > 0, !units);
  });
}
