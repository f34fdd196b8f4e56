import assert from "node:assert/strict";
import { openRunner } from "../../src/engine/device/device_runner.ts";
import { fitMemory, waysToFit } from "../../src/engine/load/fits.ts";
import type { LoadedWeights } from "../../src/engine/device/models.ts";
import { checkModels, loadWeights, openModels } from "../../src/engine/load/load.ts";
import type { OpenedModels } from "../../src/engine/load/opened_models.ts";
import { loadRandomWeights, openRandomModels } from "../../src/engine/load/random_models.ts";
import { statically } from "../../src/engine/drafting.ts";
import { type Machine, openEngine } from "../../src/engine/open.ts";
import type { LocalOptions } from "../../src/engine/options.ts";
import { openPaper } from "../../src/engine/load/paper.ts";
import { resultOf } from "../../src/engine/schedule/events.ts";
import { allLayers, capacityOf, type SizeSettings } from "../../src/engine/load/sizes.ts";
import { UsageError } from "../../src/errors.ts";
import type { GpuMemory } from "../../src/gpu/memory.ts";
import { PAPER_ADAPTER, type PaperBuffer } from "../../src/gpu/paper.ts";
import type { Gpu } from "../../src/gpu/device.ts";
import { attentionUnitsOf } from "../../src/gpu/matrices_on_units.ts";
import { openGpu } from "../../src/gpu/device.ts";
import { targetUnits } from "../../src/gpu/matrix_unit.ts";
import { windowsOf } from "../../src/engine/device/window_rings.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { chain, chains, isChain } from "../../src/speculate/round_shape.ts";
import { bothOf } from "../model/quantized/checkpoints.ts";
import { type Layout, LAYOUTS } from "../model/quantized/layouts.ts";
import { variable } from "../variable.ts";
import { folderOf, loadSpeculated, openSpeculated, SPECULATED } from "./speculated.ts";
import { drawn } from "../exhaustive.ts";

/**
 * The GPU with `room` bytes: what is asked for beyond them is reported as wgpu reports it, and
 * counted in `asked` all the same. `held` are those of buffers that are not destroyed, by their labels.
 */
function small(gpu: Gpu, room: number): Gpu & {
  readonly asked: () => number;
  readonly held: ReadonlyMap<string, number>;
} {
  let asked = 0;
  const held = new Map<string, number>();
  const device = new Proxy(gpu.device, {
    get(target, key) {
      if (key === "createBuffer") {
        return (descriptor: GPUBufferDescriptor): GPUBuffer => {
          asked += descriptor.size;
          if (asked > room) {
            const error = new GPUOutOfMemoryError("not enough memory left");
            target.dispatchEvent(new GPUUncapturedErrorEvent("uncapturederror", { error }));
          }
          const buffer = target.createBuffer(descriptor);
          // Constants of a software adapter's kernels: a part of its pipelines, and a few words.
          if (descriptor.usage & GPUBufferUsage.UNIFORM) return buffer;
          const { label = "", size } = descriptor;
          const hold = (bytes: number) => held.set(label, (held.get(label) ?? 0) + bytes);
          const destroy = buffer.destroy.bind(buffer);
          hold(size);
          buffer.destroy = () => {
            hold(-size);
            destroy();
          };
          return buffer;
        };
      }
      const value = Reflect.get(target, key, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  return { ...gpu, device, asked: () => asked, held };
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

async function failure(options: LocalOptions, on: Machine): Promise<string> {
  const error = await openEngine(options, on).then(
    (engine) => engine[Symbol.dispose](),
    (error: unknown) => error,
  );
  assert.ok(error instanceof UsageError, `no usage error but ${error}`);
  return error.message;
}

const OPTIONS: LocalOptions = { limits: { maxBatch: 8 }, hooks: { plan: statically(3) } };

const TREES = { depth: 8, width: 2, rows: 32 };

/** Bytes of the buffers whose labels match. */
function held({ held }: Pick<ReturnType<typeof small>, "held">, labels: RegExp): number {
  return [...held].reduce((sum, [label, bytes]) => labels.test(label) ? sum + bytes : sum, 0);
}

/** Labels whose bytes on paper differ from the bytes held, with both. */
function differences(
  paper: readonly PaperBuffer[],
  held: ReadonlyMap<string, number>,
): string {
  const expected = new Map<string, number>();
  for (const { label, bytes } of paper) expected.set(label, (expected.get(label) ?? 0) + bytes);
  return [...new Set([...expected.keys(), ...held.keys()])]
    .filter((label) => (expected.get(label) ?? 0) !== (held.get(label) ?? 0))
    .map((label) => `${label}: ${expected.get(label)} on paper, ${held.get(label)} held`)
    .join("; ");
}

/** Opens the models on a GPU that counts bytes, and asserts that exactly the buffers on paper are allocated. */
async function allocates(
  adapter: Gpu,
  models: OpenedModels,
  settings: SizeSettings,
  load: (gpu: Gpu) => Promise<LoadedWeights> = (gpu) => loadWeights(gpu, models, settings),
): Promise<void> {
  const gpu = small(adapter, Infinity);
  const sizes = capacityOf(settings, gpu, allLayers(models));
  const thresholds = settings.relaxed ? { single: 0.5, acc: 0.9 } : undefined;
  await openRunner(gpu, await load(gpu), sizes, { thresholds });
  const { weights, kv, total, buffers } = openPaper(models, settings, adapter).need(sizes);
  assert.equal(total, held(gpu, /./), differences(buffers, gpu.held));
  assert.equal(weights, held(gpu, settings.elasticDraft ? /^(weights|draft)\.\d+$/ : /^weights\./));
  assert.equal(kv, held(gpu, /^kv\./));
}

/** Weights are scaled for it on any adapter; no program that multiplies with it is made. */
const UNIT = { m: 16, n: 16, k: 16, lanes: 32 };

/** The kernels of hardware, on any adapter. */
const asHardware = (gpu: Gpu): Gpu => ({ ...gpu, info: { ...gpu.info, software: false } });

Deno.test("sizes: what is said is what the engine allocates", async () => {
  using models = openModels({});
  for (
    const settings of [
      { contextLength: 1024, tiers: chains([3]) },
      { contextLength: 1024, tiers: chains([0, 3]), maxBatch: 8, kvDtype: "bf16" },
      { contextLength: 256, tiers: chains([7]), maxBatch: 64 },
      { contextLength: 256, tiers: chains([3]), maxBatch: 16, quantize: "q8", quantizeDraft: true },
      { contextLength: 256, tiers: [chain(3), { depth: 8, width: 10, rows: 60 }], maxBatch: 8 },
      { contextLength: 256, tiers: chains([3]), maxBatch: 16, drafter: { shapes: [TREES] } },
      { contextLength: 256, tiers: chains([0, 3]), maxBatch: 4, elasticDraft: true },
      { contextLength: 256, tiers: chains([3]), relaxed: true, confident: true },
    ] satisfies SizeSettings[]
  ) {
    using gpu = await openGpu();
    await allocates(gpu, models, settings);
    await allocates(asHardware(gpu), models, settings);
  }
});

for (const name of SPECULATED) {
  const { test } = /^(deepseek_v2_groups|gemma4_e|qwen3_5)$/.test(name) ? Deno : drawn;
  test(`sizes: what ${name} allocates, quantized and not`, async () => {
    using gpu = await openGpu();
    using models = await openSpeculated(name);
    const sizes = { contextLength: 64, tiers: chains([0, 3]), maxBatch: 2 };
    // At this length windows of 8 or 16 tokens have rings, if there are windows.
    const long = { ...sizes, contextLength: 512, maxBatchedRows: 32 };
    const all: readonly SizeSettings[] = [
      sizes,
      { ...sizes, kvDtype: "f16", quantize: "q4", quantizeDraft: true },
      ...windowsOf(models.target.config.layers).length > 0
        ? [long, { ...long, elasticDraft: true }]
        : [],
    ];
    for (const settings of all) {
      await allocates(gpu, models, settings, (gpu) => loadSpeculated(gpu, models, settings));
    }
  });
}

Deno.test("sizes: of the drafts that a target has in its own files, and of an EAGLE head", async () => {
  using gpu = await openGpu();
  const own = folderOf("deepseek_v3");
  for (const choice of [{ model: own, algorithm: "NEXTN" }, { algorithm: "EAGLE" }] as const) {
    using models = openModels(choice);
    const settings = { contextLength: 64, tiers: chains([0, 3]), maxBatch: 2 };
    await allocates(gpu, models, settings);
    await allocates(gpu, models, { ...settings, quantize: "q8", quantizeDraft: true });
  }
});

Deno.test("sizes: of checkpoints that are quantized already", async () => {
  using gpu = await openGpu();
  for (const name of ["int8", "awq, groups of 128", "fp8, blocks"]) {
    using models = checkModels(bothOf(LAYOUTS[name] as Layout).quantized, undefined);
    const settings = { contextLength: 64, tiers: chains([0]) };
    await allocates(gpu, models, settings);
    await allocates(gpu, models, { ...settings, quantize: "q8" });
  }
});

/** Small layers below a vocabulary that is sampled from in two passes. */
const MIXTURE = {
  architectures: ["Qwen3MoeForCausalLM"],
  model_type: "qwen3_moe",
  hidden_size: 128,
  intermediate_size: 256,
  moe_intermediate_size: 64,
  num_hidden_layers: 3,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  head_dim: 32,
  num_experts: 32,
  num_experts_per_tok: 4,
  norm_topk_prob: true,
  decoder_sparse_step: 1,
  mlp_only_layers: [],
  vocab_size: 100_352,
  max_position_embeddings: 65536,
  rms_norm_eps: 1e-6,
  rope_theta: 1e6,
  hidden_act: "silu",
  attention_bias: false,
};

/** Whether attention goes to matrix units, and the rest. */
const MIXED: readonly [attention: "on" | "auto", SizeSettings][] = [
  ["on", { contextLength: 16384, tiers: chains([0]) }],
  ["auto", { contextLength: 512, tiers: chains([0]), maxBatch: 32 }],
  ["auto", { contextLength: 512, tiers: chains([0]), quantize: "q8" }],
];

Deno.test("sizes: of a mixture, on hardware's kernels and on matrix units if any", async () => {
  const file = await Deno.makeTempFile({ suffix: ".json" });
  try {
    for (const tied of [false, true]) {
      await Deno.writeTextFile(file, JSON.stringify({ ...MIXTURE, tie_word_embeddings: tied }));
      using models = openRandomModels({ target: file });
      for (const [attention, settings] of tied ? MIXED.slice(0, 1) : MIXED) {
        using _ = variable("EYRIE_ATTENTION_UNITS", attention);
        using gpu = await openGpu();
        const onUnits = attentionUnitsOf(gpu, {
          contextLength: settings.contextLength,
          promptKernels: false,
        }).rounds !== undefined;
        assert.equal(onUnits, attention === "on" && gpu.matrixUnit !== undefined);
        const load = (gpu: Gpu) => loadRandomWeights(gpu, models, 1, settings);
        await allocates(gpu, models, settings, load);
        await allocates(asHardware(gpu), models, settings, load);
      }
    }
  } finally {
    await Deno.remove(file);
  }
});

Deno.test("sizes: with what matrices on matrix units take", async () => {
  const file = await Deno.makeTempFile({ suffix: ".json" });
  try {
    // Small: the software adapter scales every row.
    const few = { vocab_size: 1024, num_experts: 8, num_hidden_layers: 1 };
    await Deno.writeTextFile(file, JSON.stringify({ ...MIXTURE, ...few }));
    using models = openRandomModels({ target: file });
    const inPrompts = ["auto", {
      contextLength: 512,
      tiers: chains([0, 3]),
      quantize: "q8",
    }] as const;
    for (const [attention, settings] of [...MIXED, inPrompts]) {
      using _ = variable("EYRIE_ATTENTION_UNITS", attention);
      using __ = variable("EYRIE_MATRIX_UNITS", settings === inPrompts[1] ? "prompts" : "on");
      using gpu = await openGpu();
      const units = { ...asHardware(gpu), matrixUnit: UNIT };
      const load = (gpu: Gpu) => loadRandomWeights(gpu, models, 1, settings);
      await allocates(units, models, settings, load);
    }
  } finally {
    await Deno.remove(file);
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
  // Where every round drafts, no features are kept.
  assert.ok(pages([3]) > pages([0, 3]));
});

Deno.test("sizes: working memory that the adapter cannot bind is refused before loading", () => {
  using models = openModels({ algorithm: "NONE" });
  const most = 1_000_000;
  const limits = { ...PAPER_ADAPTER.limits, maxStorageBufferBindingSize: most };
  const adapter = { ...PAPER_ADAPTER, limits };
  const need = (maxBatch: number) => {
    const settings = { contextLength: 64, tiers: chains([0]), maxBatch, maxKvTokens: 64 };
    const sizes = capacityOf(settings, adapter, allLayers(models));
    return openPaper(models, {}, adapter).need(sizes);
  };
  const { buffers } = need(64);
  const logits = (batch: number) => 4 * batch * models.target.config.vocabSize;
  assert.ok(buffers.some(({ label, bytes }) => label === "logits" && bytes === logits(64)));
  assert.throws(
    () => need(128),
    new UsageError(
      `Cannot allocate "logits": it takes ${logits(128)} bytes, the adapter binds ${most}; ` +
        `use a smaller --max-batch, --context-length or --max-batched-rows, or fewer draft steps`,
    ),
  );
});

Deno.test("sizes: prefill chunks are longer where matrix units multiply, and of mixtures", () => {
  using models = openModels({});
  const limits = { maxStorageBufferBindingSize: 1 << 30, maxBufferSize: 1 << 30 };
  const rows = (
    software: boolean,
    units: boolean,
    quantize?: "q8",
    maxBatch = 1,
    contextLength = 1024,
    { layers } = models.target.config,
  ) => {
    const matrixUnit = units ? { m: 16, n: 16, k: 16, lanes: 32 } : undefined;
    const gpu = { limits, info: { software }, matrixUnit };
    const tiers = chains([0]);
    const settings = { contextLength, tiers, maxBatch, ...quantize ? { quantize } : {} };
    const of = gpu as unknown as Parameters<typeof capacityOf>[1];
    return capacityOf(settings, of, { layers }).prefillRows;
  };
  assert.equal(rows(false, true), 1024);
  assert.equal(rows(false, false), 256);
  assert.equal(
    rows(false, true, "q8"),
    targetUnits({ batch: 1, mixture: false }).dense === "none" ? 256 : 1024,
  );
  assert.equal(rows(false, true, "q8", 16), 1024);
  assert.equal(rows(false, false, "q8", 16), 256);
  assert.equal(rows(true, true), 256);
  assert.equal(rows(false, true, undefined, 1, 512), 512);
  assert.equal(rows(false, true, undefined, 2, 512), 1024);
  assert.equal(rows(false, true, undefined, 1, 32769), 1024);
  assert.equal(rows(false, false, undefined, 1, 32769), 256);
  using mixture = openModels({ model: new URL("../golden/qwen3_moe", import.meta.url).pathname });
  const { config } = mixture.target;
  assert.equal(rows(false, false, "q8", 1, 1024, config), 512);
  assert.equal(rows(false, true, "q8", 16, 1024, config), 1024);
  assert.equal(rows(true, false, "q8", 1, 1024, config), 256);
});

Deno.test("sizes: --max-batched-rows takes the place of what suits the adapter", () => {
  using models = openModels({});
  const limits = { maxStorageBufferBindingSize: 1 << 30, maxBufferSize: 1 << 30 };
  const of = (maxBatchedRows: number, software = false) => {
    const gpu = { limits, info: { software } } as unknown as Parameters<typeof capacityOf>[1];
    const settings = { contextLength: 1024, tiers: chains([0]), maxBatchedRows };
    const { prefillRows, promptRun = 0 } = capacityOf(settings, gpu, models.target.config);
    assert.equal(prefillRows % promptRun, 0);
    return prefillRows;
  };
  // Programs are made for buckets of rows.
  assert.deepEqual([32, 100, 1024, 1025, 2000].map((rows) => of(rows)), [
    32,
    128,
    1024,
    1536,
    2048,
  ]);
  assert.equal(of(9, true), 16);
});

Deno.test("sizes: with a whole model as the draft", async () => {
  const draft = new URL("../../models/fledgling/target", import.meta.url).pathname;
  using models = openModels({ draft });
  for (const tiers of [chains([0, 3]), [chain(3), { depth: 4, width: 4, rows: 16 }]]) {
    using gpu = await openGpu();
    const rejection = tiers.every(isChain) ? "block" as const : undefined;
    await allocates(gpu, models, { contextLength: 1024, tiers, maxBatch: 8, rejection });
  }
});

Deno.test("sizes: what is checked before loading is what an engine that has answered holds", async () => {
  let gpu: ReturnType<typeof small> | undefined;
  const needs: number[] = [];
  const options: LocalOptions = {
    speculation: { acceptThresholds: { single: 0.5, acc: 0.9 } },
    hooks: { plan: statically(1) },
  };
  using engine = await openEngine(options, {
    openGpu: async () => gpu = small(await openGpu(), Infinity),
    gpuMemory: (_info, need) => {
      needs.push(need);
      return Promise.resolve(undefined);
    },
  });
  const promptIds = engine.text.encodePrompt({ raw: "One day" });
  const request = { promptIds, sampling: GREEDY, maxTokens: 3, stop: [], ignoreEos: false };
  await resultOf(engine.submit(request));
  assert.deepEqual(needs, [held(gpu as ReturnType<typeof small>, /./)]);
});

Deno.test("sizes: what does not fit is refused before loading, with what would fit", async () => {
  // Less than the pages of one sequence take, with eight in flight.
  const on = machine(27e6, { tells: true });
  const message = await failure(OPTIONS, on);
  assert.match(message, /^Cannot load "fledgling\/target": it takes [\d.]+ MB \(/);
  assert.match(message, /the GPU has 27\.0 MB free of 54\.0 MB; less memory: /);
  assert.match(message, /--draft none \([\d.]+ MB\)/);
  assert.match(message, /--context-length 512 \([\d.]+ MB\)/);
  assert.equal(on.tried, 0);
});

/** An 8B shape on a card that binds buffers of any size: 64 sequences in flight, of 8,192 tokens each. */
function large(settings: Partial<SizeSettings> = {}) {
  const shape = new URL("../../lab/shapes/llama8b.json", import.meta.url).pathname;
  const models = openRandomModels({ target: shape });
  const most = { maxStorageBufferBindingSize: 2 ** 40, maxBufferSize: 2 ** 40 };
  const gpu = { ...PAPER_ADAPTER, limits: { ...PAPER_ADAPTER.limits, ...most } };
  const all = { contextLength: 8192, tiers: chains([0]), maxBatch: 64, ...settings };
  const asked = { models, settings: all, gpu, paper: openPaper(models, all, gpu) };
  const needs: number[] = [];
  const fit = async (memory: GpuMemory | undefined, utilization?: number) => {
    const ask = (_: unknown, need: number) => {
      needs.push(need);
      return Promise.resolve(memory);
    };
    const { capacity, known } = await fitMemory(asked, ask, utilization);
    const total = (pages: number) => asked.paper.need({ ...capacity, pages }).total;
    return { pages: capacity.pages, known, total };
  };
  return { fit, needs, [Symbol.dispose]: () => models[Symbol.dispose]() };
}

/** Pages of one sequence: 8,192 tokens, a last round of one, and the row of one more. */
const ONE = 513;

Deno.test("the KV cache has the pages that fit in the share of the GPU's memory beside the weights", async () => {
  using engine = large();
  const card = { total: 80e9, free: 79e9 };
  for (const [utilization, most] of [[undefined, 72e9], [0.5, 40e9], [1, 79e9]] as const) {
    const { pages, known, total } = await engine.fit(card, utilization);
    assert.ok(known && pages > ONE && pages < 64 * ONE, `${pages}`);
    assert.ok(total(pages) <= most && total(pages + 1) > most, `${total(pages)} of ${most}`);
  }
  // An explicit share applies to any card, so the memory is asked for even where the engine needs few bytes.
  assert.deepEqual(engine.needs.map(Number.isFinite), [true, false, false]);
});

Deno.test("the KV cache is at most what all sequences can use, and at least what one needs", async () => {
  using engine = large();
  assert.equal((await engine.fit({ total: 400e9, free: 400e9 })).pages, 64 * ONE);
  // More than 0.9 of the card, but no more than is free.
  const { total } = await engine.fit({ total: 400e9, free: 400e9 });
  const tight = total(ONE);
  assert.equal((await engine.fit({ total: tight, free: tight })).pages, ONE);
  await assert.rejects(
    engine.fit({ total: tight, free: tight - 1 }),
    /^UsageError: Cannot load .* the GPU has [\d.]+ GB free of [\d.]+ GB; less memory: --kv-dtype/,
  );
  await assert.rejects(
    engine.fit({ total: 80e9, free: 80e9 }, 0.2),
    /^UsageError: Cannot load .* 0\.2 of the GPU's memory is 16\.0 GB; less memory: --quantize q8/,
  );
});

Deno.test("of memory that the GPU shares with other programs less is taken, and of what is free", async () => {
  using engine = large();
  const host = { total: 200e9, free: 100e9, shared: true };
  const { pages, total } = await engine.fit(host);
  assert.ok(total(pages) <= 70e9 && total(pages + 1) > 70e9);
  const half = await engine.fit(host, 0.5);
  assert.ok(total(half.pages) <= 50e9 && total(half.pages + 1) > 50e9);
});

Deno.test("a size of the KV cache that was given is taken; where memory is not known all sequences have pages", async () => {
  using given = large({ maxKvTokens: 160_000 });
  assert.equal((await given.fit({ total: 80e9, free: 80e9 }, 0.5)).pages, 10_000);
  await assert.rejects(given.fit({ total: 80e9, free: 30e9 }), /the GPU has 30\.0 GB free/);
  using engine = large();
  const { pages, known } = await engine.fit(undefined, 0.5);
  assert.deepEqual([pages, known], [64 * ONE, false]);
  assert.ok(!(await engine.fit(undefined)).known);
});

Deno.test("an engine has the KV cache that fits, and says how large it is; an unknown memory is named", async () => {
  const lines: string[] = [];
  const open = async (gpuMemory: Machine["gpuMemory"], gpuMemoryUtilization?: number) => {
    using engine = await openEngine({
      limits: { maxBatch: 8, ...gpuMemoryUtilization ? { gpuMemoryUtilization } : {} },
      hooks: { plan: statically(0), onWarning: (line) => lines.push(line) },
    }, { openGpu, gpuMemory });
    assert.equal(engine.runner.pool.total * 16, engine.info.kvTokens);
    return engine.info.kvTokens ?? 0;
  };
  let need = 0;
  const whole = await open((_, bytes) => {
    need = bytes;
    return Promise.resolve(undefined);
  });
  assert.deepEqual([whole, lines], [8 * 1040, []]);
  const fitted = await open(() => Promise.resolve({ total: need, free: need }));
  assert.ok(fitted >= 1040 && fitted < 8 * 1040, `${fitted}`);
  assert.equal(await open(() => Promise.resolve(undefined), 0.5), 8 * 1040);
  assert.match(
    lines.join(),
    /^the memory of .* is not known: the KV cache has 8320 tokens, a whole context for each of 8 requests; /,
  );
});

Deno.test({
  name: "sizes: where memory is not known, running out of it ends in the same advice",
  // The errors of `small` are wgpu's.
  ignore: Deno.env.get("EYRIE_WEBGPU") === "dawn",
  async fn() {
    const on = machine(60e6, { tells: false });
    const message = await failure(OPTIONS, on);
    assert.match(message, /^Cannot load "fledgling\/target": it takes [\d.]+ MB \(/);
    assert.match(message, /the GPU ran out of memory; less memory: --kv-dtype bf16 \([\d.]+ MB\)/);
    assert.ok(on.tried > 60e6);
  },
});

Deno.test("sizes: each way fits; together where none is enough; none where nothing is", async () => {
  using gpu = await openGpu();
  using models = openModels({});
  const settings = { contextLength: 1024, tiers: chains([3]), maxBatch: 8 };
  const asked = { models, settings, gpu, paper: openPaper(models, {}, gpu) };
  const total = (change: Partial<SizeSettings>) => {
    const changed = { ...settings, ...change };
    const sizes = capacityOf(changed, gpu, models.target.config);
    return openPaper(models, changed, gpu).need(sizes).total;
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
