import assert from "node:assert/strict";
import { openCore } from "../../src/engine/device/device_core.ts";
import { waysToFit } from "../../src/engine/load/fits.ts";
import { loadWeights, openModels } from "../../src/engine/load/load.ts";
import { statically } from "../../src/engine/drafting.ts";
import { type Machine, openEngine, type OpenOptions } from "../../src/engine/open.ts";
import {
  allLayers,
  capacityOf,
  memoryNeed,
  type SizeSettings,
} from "../../src/engine/load/sizes.ts";
import { UsageError } from "../../src/errors.ts";
import type { Gpu } from "../../src/gpu/device.ts";
import { openGpu } from "../../src/gpu/device.ts";
import { chain, chains, isChain } from "../../src/speculate/round_shape.ts";

/**
 * The GPU with `room` bytes: what is asked for beyond them is reported as wgpu reports it, and
 * counted in `asked` all the same.
 */
function small(gpu: Gpu, room: number): Gpu & { readonly asked: () => number } {
  let asked = 0;
  const device = new Proxy(gpu.device, {
    get(target, key) {
      if (key === "createBuffer") {
        return (descriptor: GPUBufferDescriptor): GPUBuffer => {
          asked += descriptor.size;
          if (asked > room) {
            const error = new GPUOutOfMemoryError("not enough memory left");
            target.dispatchEvent(new GPUUncapturedErrorEvent("uncapturederror", { error }));
          }
          return target.createBuffer(descriptor);
        };
      }
      const value = Reflect.get(target, key, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  return { ...gpu, device, asked: () => asked };
}

/** A machine whose GPU has `room` bytes and tells, or does not. */
function machine(
  room: number,
  { tells }: { readonly tells: boolean },
): Machine & { tried: number } {
  const made = {
    tried: 0,
    openGpu: async () => {
      const gpu = small(await openGpu(), room);
      return {
        ...gpu,
        [Symbol.dispose]: () => {
          made.tried = gpu.asked();
          gpu[Symbol.dispose]();
        },
      };
    },
    gpuMemory: () => Promise.resolve(tells ? { total: 2 * room, free: room } : undefined),
  };
  return made;
}

async function failure(options: OpenOptions, on: Machine): Promise<string> {
  const error = await openEngine(options, on).then(
    (engine) => engine[Symbol.dispose](),
    (error: unknown) => error,
  );
  assert.ok(error instanceof UsageError, `no usage error but ${error}`);
  return error.message;
}

const OPTIONS: OpenOptions = { maxBatch: 8, speculate: statically(3) };

const TREES = { depth: 8, width: 2, rows: 32 };

Deno.test("sizes: the prediction is what the engine takes", async () => {
  using models = openModels({});
  for (
    const settings of [
      { contextLength: 1024, tiers: chains([3]) },
      { contextLength: 1024, tiers: chains([0, 3]), maxBatch: 8, kvDtype: "bf16" },
      { contextLength: 256, tiers: chains([7]), maxBatch: 64 },
      { contextLength: 256, tiers: [chain(3), { depth: 8, width: 10, rows: 60 }], maxBatch: 8 },
      { contextLength: 256, tiers: chains([3]), maxBatch: 16, drafter: { shapes: [TREES] } },
    ] satisfies SizeSettings[]
  ) {
    using opened = await openGpu();
    const gpu = small(opened, Infinity);
    const capacity = capacityOf(settings, gpu, models.target.config);
    await openCore(gpu, await loadWeights(gpu, models), capacity);
    const { total } = memoryNeed(models, capacity, {
      software: gpu.info.software,
      units: gpu.matrixUnit !== undefined,
    });
    const share = total / gpu.asked();
    assert.ok(Math.abs(share - 1) < 0.03, `${total} of ${gpu.asked()} bytes predicted: ${share}`);
  }
});

Deno.test("sizes: the features that a draft may catch up from fit one binding too", () => {
  using models = openModels({});
  const most = 1 << 20;
  const limits = { maxStorageBufferBindingSize: most, maxBufferSize: most };
  const gpu = { limits, info: { software: true } };
  const pages = (tiers: number[]) => {
    const settings = { contextLength: 1024, tiers: chains(tiers), maxBatch: 64 };
    return capacityOf(
      settings,
      gpu as unknown as Parameters<typeof capacityOf>[1],
      allLayers(models),
    ).pages;
  };
  const features = 3 * models.target.config.hiddenSize;
  assert.equal(pages([0, 3]), Math.floor(most / (16 * features * 4)));
  // Where every round drafts none are kept.
  assert.ok(pages([3]) > pages([0, 3]));
});

Deno.test("sizes: prefill chunks are longer where matrix units multiply", () => {
  using models = openModels({});
  const limits = { maxStorageBufferBindingSize: 1 << 30, maxBufferSize: 1 << 30 };
  const rows = (software: boolean, units: boolean, quantize?: "q8") => {
    const matrixUnit = units ? { m: 16, n: 16, k: 16, lanes: 32 } : undefined;
    const gpu = { limits, info: { software }, matrixUnit };
    const settings = { contextLength: 1024, tiers: chains([0]), ...quantize ? { quantize } : {} };
    const of = gpu as unknown as Parameters<typeof capacityOf>[1];
    return capacityOf(settings, of, models.target.config).prefillRows;
  };
  assert.equal(rows(false, true), 512);
  assert.equal(rows(false, false), 256);
  assert.equal(rows(false, true, "q8"), 256);
  assert.equal(rows(true, true), 256);
});

Deno.test("sizes: the prediction with a whole model as the draft", async () => {
  const draft = new URL("../../models/fledgling/target", import.meta.url).pathname;
  using models = openModels({ draft });
  for (const tiers of [chains([0, 3]), [chain(3), { depth: 4, width: 4, rows: 16 }]]) {
    using opened = await openGpu();
    const gpu = small(opened, Infinity);
    const rejection = tiers.every(isChain) ? "block" as const : undefined;
    const settings = { contextLength: 1024, tiers, maxBatch: 8, rejection };
    const capacity = capacityOf(settings, gpu, allLayers(models));
    await openCore(gpu, await loadWeights(gpu, models), capacity);
    const { total } = memoryNeed(models, capacity, {
      software: gpu.info.software,
      units: gpu.matrixUnit !== undefined,
    });
    const share = total / gpu.asked();
    assert.ok(Math.abs(share - 1) < 0.03, `${total} of ${gpu.asked()} bytes predicted: ${share}`);
  }
});

Deno.test("sizes: what does not fit is refused before loading, with what would fit", async () => {
  const on = machine(70e6, { tells: true });
  const message = await failure(OPTIONS, on);
  assert.match(message, /^Cannot load "fledgling\/target": it takes [\d.]+ MB \(/);
  assert.match(message, /the GPU has 70\.0 MB free of 140 MB; less memory: /);
  assert.match(message, /--max-batch 4 \([\d.]+ MB\)/);
  assert.match(message, /--context-length 512 \([\d.]+ MB\)/);
  assert.equal(on.tried, 0);
});

Deno.test("sizes: where memory is not known, running out of it ends in the same advice", async () => {
  const on = machine(60e6, { tells: false });
  const message = await failure(OPTIONS, on);
  assert.match(message, /^Cannot load "fledgling\/target": it takes [\d.]+ MB \(/);
  assert.match(message, /the GPU ran out of memory; less memory: --kv-dtype bf16 \([\d.]+ MB\)/);
  assert.ok(on.tried > 60e6);
});

Deno.test("sizes: each way fits; together where none is enough; none where nothing is", async () => {
  using gpu = await openGpu();
  using models = openModels({});
  const settings = { contextLength: 1024, tiers: chains([3]), maxBatch: 8 };
  const asked = { models, settings, gpu };
  const total = (change: Partial<SizeSettings>) => {
    const changed = { ...settings, ...change };
    const capacity = capacityOf(changed, gpu, models.target.config);
    const units = gpu.matrixUnit !== undefined;
    return memoryNeed(models, capacity, { ...changed, software: gpu.info.software, units }).total;
  };
  const halved = total({ maxBatch: 4 });
  const ways = waysToFit(asked, halved);
  assert.ok(ways.every(({ bytes }) => bytes <= halved));
  assert.deepEqual(
    ways.find(({ flags }) => flags.startsWith("--max-batch")),
    { flags: "--max-batch 4", bytes: halved },
  );
  const named = { ...asked, settings: { ...settings, sizeFlags: { maxBatch: "--batch-sizes" } } };
  const flags = waysToFit(named, halved).map((way) => way.flags);
  assert.ok(flags.includes("--batch-sizes 4"));
  assert.ok(!flags.some((flag) => flag.startsWith("--context-length")));
  const lean = { quantize: "q4", quantizeDraft: true, kvDtype: "bf16", maxBatch: 1 } as const;
  const least = total({ ...lean, contextLength: 512 });
  assert.deepEqual(waysToFit(asked, least), [{
    flags: "--quantize q4 --quantize-draft --kv-dtype bf16 --max-batch 1 --context-length 512",
    bytes: least,
  }]);
  assert.deepEqual(waysToFit(asked, least - 1), []);
});
