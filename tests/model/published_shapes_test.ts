/** Models by the shapes of their published configs, under lab/shapes: parameters, cache, and what fits no kernel. */
import assert from "node:assert/strict";
import { kvBytesPerToken, openPaper } from "../../src/engine/load/paper.ts";
import { openRandomModels } from "../../src/engine/load/random_models.ts";
import { allLayers, capacityOf } from "../../src/engine/load/sizes.ts";
import { PAPER_ADAPTER } from "../../src/gpu/paper.ts";
import { activeParameterCount, parameterCount } from "../../src/model/report/parameters.ts";
import { targetTensors } from "../../src/model/weights/tensors.ts";
import { chains } from "../../src/speculate/round_shape.ts";

/** Billions of parameters, of them for one token, and KiB of keys and values of a token in bf16. */
const SHAPES = [
  ["glm47_flash", 29.94, 3.9, 52.875],
  ["olmo3_7b", 7.3, 7.3, 512],
  ["exaone4_32b", 32, 32, 256],
  ["ministral3_8b", 8.49, 8.49, 136],
  ["muse_glimmer_30b", 27.85, 27.85, 52],
] as const;

for (const [name, all, active, kv] of SHAPES) {
  Deno.test(`${name}: parameters, keys and values, and an engine on paper`, () => {
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
    const most = { maxStorageBufferBindingSize: 2 ** 32 - 4, maxBufferSize: 2 ** 40 };
    const adapter = { ...PAPER_ADAPTER, limits: { ...PAPER_ADAPTER.limits, ...most } };
    const settings = {
      contextLength: 32_768,
      tiers: chains([0, 3]),
      maxBatch: 4,
      kvDtype: "bf16",
    } as const;
    const capacity = capacityOf(settings, adapter, allLayers(models));
    const { weights, scratch } = openPaper(models, {}, adapter).need(capacity);
    assert.ok(Math.abs(weights - 2 * parameterCount(specs)) < 0.01 * weights, `${weights}`);
    assert.ok(scratch < 500e6, `${scratch}`);
  });
}
