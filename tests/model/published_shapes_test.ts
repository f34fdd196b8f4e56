/** Models by the shapes of their published configs, under lab/shapes: parameters, cache, and what fits no kernel. */
import assert from "node:assert/strict";
import { kvBytes, kvBytesPerToken, openPaper, stateBytes } from "../../src/engine/load/paper.ts";
import { openRandomModels } from "../../src/engine/load/random_models.ts";
import { allLayers, capacityOf, type SizeSettings } from "../../src/engine/load/sizes.ts";
import { PAPER_ADAPTER } from "../../src/gpu/paper.ts";
import { activeParameterCount, parameterCount } from "../../src/model/report/parameters.ts";
import { targetTensors } from "../../src/model/weights/tensors.ts";
import { exhaustive } from "../exhaustive.ts";
import { chains } from "../../src/speculate/round_shape.ts";

/**
 * Billions of parameters, billions of them used for one token, and KiB of keys and values per token in bf16; GiB of
 * weights as the file has them, where they are not bf16.
 */
const SHAPES = [
  ["glm47_flash", 29.94, 3.9, 52.875],
  ["laguna_xs", 33.44, 3.02, 160],
  ["olmo3_7b", 7.3, 7.3, 512],
  ["exaone4_32b", 32, 32, 256],
  ["ministral3_3b", 3.43, 3.43, 104],
  ["ministral3_8b", 8.49, 8.49, 136],
  ["ministral3_14b", 13.51, 13.51, 160],
  ["devstral_small2_24b", 23.57, 23.57, 160],
  ["mistral_small32_24b", 23.57, 23.57, 160],
  ["muse_glimmer_30b", 27.85, 27.85, 52],
  // 15 layers of E2B and 24 of E4B have keys and values; the table of embeddings for each layer is only gathered.
  ["gemma4_e2b", 4.63, 2.28, 18],
  ["gemma4_e4b", 7.46, 4.64, 56],
  ["gemma4_12b", 11.91, 11.91, 336],
  ["gemma4_26b_a4b", 25.23, 3.82, 220],
  ["gemma4_31b", 30.7, 30.7, 880],
  ["qwen35_9b", 8.95, 8.95, 32],
  ["qwen36_27b", 26.9, 26.9, 64],
  ["qwen36_35b_a3b", 34.66, 3.45, 20],
  ["qwen35_122b_a10b", 122.11, 9.77, 24],
  ["qwen3_next_80b", 79.67, 3.87, 24],
  ["smollm3_3b", 3.08, 3.08, 72],
  ["granite41_8b", 8.38, 8.38, 160],
  ["ernie45_21b_a3b", 21.83, 3.35, 56],
  ["seed_oss_36b", 36.15, 36.15, 256],
  ["lfm2_1b", 1.17, 1.17, 12],
  ["lfm2_8b_a1b", 8.34, 1.56, 12],
  ["mistral_small4", 118.97, 6.63, 22.5],
  ["gpt_oss_20b", 20.91, 4.19, 48, 12.8],
  ["gpt_oss_120b", 116.83, 5.71, 72, 60.8],
] as const;

/**
 * For layers that keep the whole sequence, KiB per token in bf16. For layers with a window: how many, their cells, and
 * bytes of a cell in one layer.
 */
const WINDOWS = [
  ["gemma4_12b", 16, 40, 1024, 8192],
  ["gemma4_26b_a4b", 20, 25, 1024, 8192],
  ["gemma4_31b", 80, 50, 1024, 16_384],
  ["gpt_oss_20b", 24, 12, 128, 2048],
  ["muse_glimmer_30b", 13, 39, 2048, 1024],
  ["laguna_xs", 40, 30, 512, 4096],
  ["olmo3_7b", 128, 24, 4096, 16_384],
] as const;

/** A card that binds buffers of 4 GiB. */
const LARGE = {
  ...PAPER_ADAPTER,
  limits: {
    ...PAPER_ADAPTER.limits,
    maxStorageBufferBindingSize: 2 ** 32 - 4,
    maxBufferSize: 2 ** 40,
  },
};

const SETTINGS = {
  contextLength: 32_768,
  tiers: chains([0, 3]),
  maxBatch: 4,
  kvDtype: "bf16",
} as const;

Deno.test("keys and values of windows take what the windows do, whatever the context", () => {
  for (const [name, kib, layers, window, bytes] of WINDOWS) {
    const target = new URL(`../../lab/shapes/${name}.json`, import.meta.url).pathname;
    using models = openRandomModels({ target }, "NONE");
    const { config } = models.target;
    const sizes = capacityOf(SETTINGS, LARGE, allLayers(models));
    const { token, windows } = kvBytes(config, sizes);
    assert.equal(token, kib * 1024);
    // A page where the window begins, and one for drafts that are rejected.
    assert.equal(windows, layers * (window + 32) * bytes);
    const tokens = SETTINGS.contextLength;
    const ideal = tokens * token + layers * window * bytes;
    assert.ok(tokens * token + windows < 1.05 * ideal, name);
  }
});

Deno.test("Gemma 4 31B: four sequences of 32k tokens, which took 118 GB", () => {
  const target = new URL("../../lab/shapes/gemma4_31b.json", import.meta.url).pathname;
  using models = openRandomModels({ target }, "NONE");
  const paper = openPaper(models, {}, LARGE);
  const kv = (change: Partial<SizeSettings>) =>
    paper.need(capacityOf({ ...SETTINGS, ...change }, LARGE, allLayers(models))).kv;
  const page = 16 * 50 * 16_384;
  const full = 8196 * 16 * 80 * 1024;
  // A window of each, and the rows of a forward of prompts.
  assert.equal(kv({ prefixCache: false }), full + (4 * 66 + 16) * page);
  // The windows of six prefixes.
  assert.equal(kv({}), full + (4 * 66 + 16 + 6 * 64) * page);
  // Where the context is short, whole contexts take less.
  assert.equal(kv({ contextLength: 512, maxBatch: 1 }), 33 * (page + 16 * 80 * 1024));
});

for (const [name, all, active, kv, gib] of SHAPES) {
  // Thousands of tensors of experts take seconds.
  const { test } = all > active && name !== "glm47_flash" && name !== "gpt_oss_20b"
    ? exhaustive
    : Deno;
  test(`${name}: parameters, keys and values, and an engine on paper`, () => {
    const target = new URL(`../../lab/shapes/${name}.json`, import.meta.url).pathname;
    using models = openRandomModels({ target }, "NONE");
    const { config } = models.target;
    const specs = targetTensors(config);
    const billions = (count: number) => Math.round(count / 1e7) / 100;
    assert.deepEqual(
      [billions(parameterCount(specs)), billions(activeParameterCount(specs))],
      [all, active],
    );
    assert.equal(kvBytesPerToken(config, "bf16") / 1024, kv);
    const capacity = capacityOf(SETTINGS, LARGE, allLayers(models));
    const { weights, scratch } = openPaper(models, {}, LARGE).need(capacity);
    const stored = gib ? gib * 2 ** 30 : 2 * parameterCount(specs);
    assert.ok(Math.abs(weights - stored) < 0.01 * weights, `${weights}`);
    assert.ok(scratch < 500e6, `${scratch}`);
  });
}

Deno.test("a sequence has a state of fixed size, whatever its context", () => {
  const bytes = (name: string) => {
    const target = new URL(`../../lab/shapes/${name}.json`, import.meta.url).pathname;
    using models = openRandomModels({ target }, "NONE");
    return stateBytes(models.target.config, chains([0, 3]));
  };
  // 48 layers of 48 heads of 128 x 128 numbers, four headers each; twice for each of 4 rows a decay, a key and a
  // value; 7 rows of 10,240.
  const heads = 48 * (128 * 128 + 4 * 4 + 2 * 4 * 260);
  assert.equal(bytes("qwen36_27b"), 48 * 4 * (heads + 7 * 10_240));
  // 10 layers that keep 6 rows of 2,048.
  assert.equal(bytes("lfm2_1b"), 10 * 4 * 6 * 2048);
  assert.equal(bytes("llama8b"), 0);
});

Deno.test("what makes the decays of Gated DeltaNets is never quantized: they multiply over all tokens", () => {
  const target = new URL("../../lab/shapes/qwen35_9b.json", import.meta.url).pathname;
  using models = openRandomModels({ target }, "NONE");
  const { measured } = openPaper(models, { quantize: "q8" }, PAPER_ADAPTER);
  const formats = measured.weights.target.weights.layers.flatMap(({ attention }) =>
    attention.kind === "delta" ? [`${attention.input.format}, ${attention.rates.format}`] : []
  );
  assert.deepEqual([formats.length, ...new Set(formats)], [24, "q8, bf16"]);
});
