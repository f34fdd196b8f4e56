// No value of a plan is overwritten before its last reader, whatever the plan's operations are merged into.

import assert from "node:assert/strict";
import { roundBuffers } from "../../src/engine/device/buffers.ts";
import type { LoadedWeights, Models } from "../../src/engine/device/models.ts";
import { prepareModels } from "../../src/engine/device/models.ts";
import { loadWeights, openModels } from "../../src/engine/load/load.ts";
import { loadRandomWeights } from "../../src/engine/load/random_models.ts";
import { allocateTensorMatrices } from "../../src/engine/matrices/tensor.ts";
import type { Gpu } from "../../src/gpu/device.ts";
import type { Operand } from "../../src/gpu/kernel.ts";
import type { DecoderContext } from "../../src/model/graph/context.ts";
import { draftBody, draftHead, draftLast, draftLevel } from "../../src/model/graph/draft.ts";
import { Graph } from "../../src/model/graph/graph.ts";
import { targetHead, targetLayers, targetNorm } from "../../src/model/graph/target.ts";
import { placed } from "../../src/model/lower/lifetimes.ts";
import { lowered } from "../../src/model/lower/lower.ts";
import { chains } from "../../src/speculate/round_shape.ts";
import { folderOf, loadSpeculated, openSpeculated, SPECULATED } from "../engine/speculated.ts";
import { paperGpu } from "../gpu/paper.ts";
import { storageFaults } from "./stored_values.ts";
import { openWide, WIDE_MODELS } from "./wide_models.ts";

/** Rows of a forward, and how many of them are of one slot. */
const FORWARDS = [[1, 1], [4, 1], [4, 4], [64, 64]] as const;
const BATCHES = [1, 4];

type Load = (gpu: Gpu) => Promise<LoadedWeights>;

const golden = (model: string, algorithm: "NONE" | "NEXTN"): Load => async (gpu) => {
  using models = openModels({ model: folderOf(model), algorithm });
  return await loadWeights(gpu, models);
};

const fledgling = (algorithm: "EAGLE" | "EAGLE3"): Load => async (gpu) => {
  using models = openModels({ algorithm });
  return await loadWeights(gpu, models);
};

const LOADS: Readonly<Record<string, Load>> = {
  ...Object.fromEntries(SPECULATED.map((name): [string, Load] => [name, async (gpu) => {
    using models = await openSpeculated(name);
    return await loadSpeculated(gpu, models);
  }])),
  ...Object.fromEntries(WIDE_MODELS.map((name): [string, Load] => [name, async (gpu) => {
    using models = await openWide(name);
    return await loadRandomWeights(gpu, models, 1);
  }])),
  ...Object.fromEntries(
    ["qwen3_next", "qwen3_5_moe", "lfm2_moe", "granite_hybrid", "smollm3", "exaone4"]
      .map((name) => [name, golden(name, "NONE")] as const),
  ),
  deepseek_v3_nextn: golden("deepseek_v3", "NEXTN"),
  fledgling_eagle1: fledgling("EAGLE"),
  fledgling_eagle3: fledgling("EAGLE3"),
};

const UNIT = { m: 16, n: 16, k: 16, lanes: 32, narrow: 8 };

const ADAPTERS = {
  software: { software: true, storageBuffers: 32 },
  hardware: { software: false, storageBuffers: 10 },
  "hardware of many buffers": { software: false, storageBuffers: 32 },
  "matrix units": { software: false, storageBuffers: 32, units: true },
} as const;

/** The models of an engine on paper. */
async function modelsOf(load: Load, adapter: keyof typeof ADAPTERS) {
  const { units = false, ...of } = { units: undefined, ...ADAPTERS[adapter] };
  const paper = paperGpu(of);
  const limits = { ...paper.limits, maxComputeWorkgroupStorageSize: 49152 };
  const gpu: Gpu = { ...paper, limits, info: { ...paper.info, subgroup: 32 } };
  const loaded = await load(gpu);
  const withUnits: Gpu = units ? { ...gpu, matrixUnit: UNIT } : gpu;
  const weights = units ? allocateTensorMatrices(withUnits, loaded, { maxBatch: 16 }) : loaded;
  const capacity = {
    batch: Math.max(...BATCHES),
    shapes: chains([0, 3]),
    prefillRows: 64,
    contextLength: 4096,
    pages: 300,
  };
  const buffers = roundBuffers(withUnits, capacity);
  return { models: prepareModels(withUnits, weights, capacity, buffers), buffers };
}

/** The faults of a graph's plan, each after the plan's name. */
function faultsOf(
  name: string,
  context: DecoderContext,
  record: (graph: Graph) => void,
): string[] {
  const graph = new Graph();
  record(graph);
  const ops = lowered(graph, context);
  assert.ok(ops.length > 0);
  const at = placed(ops, context.scratch);
  // Parts run one after the other, whatever the order of the operations.
  const parts = [...new Set(graph.ops.map(({ part }) => part))];
  const inOrder = ops.toSorted((a, b) => parts.indexOf(a.part) - parts.indexOf(b.part));
  return storageFaults(inOrder, at).map((fault) => `${name}: ${fault}`);
}

/** The faults of all forwards of the target and the draft. */
function faultsOfModels(
  { target, promptTarget, draft }: Models,
  { rows, extendRows, batchSlots, last }: Awaited<ReturnType<typeof modelsOf>>["buffers"],
): string[] {
  const aux = draft?.draft.algorithm === "EAGLE3"
    ? draft.draft.auxLayers.map((layer, i) => ({
      layer,
      out: draft.features,
      outCols: draft.featureCols,
      outFirst: i * target.config.hiddenSize,
    }))
    : [];
  const ofTargets = [...new Set([target, promptTarget])].flatMap((model) =>
    FORWARDS.flatMap(([count, perSlot]) =>
      [model.final, undefined].flatMap((final?: Operand) =>
        faultsOf(`target of ${count} rows`, model, (graph) => {
          const x = targetLayers(graph, model, { rows, count, perSlot }, aux);
          const early = final && targetNorm(graph, model, x, final);
          graph.begin("choose");
          const normed = early ?? targetNorm(graph, model, x);
          const logits = targetHead(graph, model, normed, model.logits);
          const { vocabSize: vocab } = model.config;
          // Both a head whose logits are kept, and one that may keep none.
          const read = final ? logits : graph.partials(logits, { choice: "argmax", vocab }, "end");
          graph.begin("accept");
          graph.call({ reads: [read], writes: [], record: () => [] }, "end");
        })
      )
    )
  );
  if (!draft) return ofTargets;
  const { hidden, features } = draft;
  const bodies = FORWARDS.flatMap(([count, perSlot]) =>
    faultsOf(`draft of ${count} rows`, draft, (graph) => {
      draftBody(graph, draft, { rows: extendRows, count, perSlot }, { features });
    })
  );
  const heads = BATCHES.flatMap((count) =>
    [
      (graph: Graph) => draftLast(graph, draft, { rows: extendRows, last }, count),
      (graph: Graph) =>
        draftLevel(graph, draft, { rows, count, perSlot: 1 }, { hidden, index: batchSlots }),
    ].flatMap((ends) =>
      faultsOf(`draft head of ${count} rows`, draft, (graph) => {
        draftHead(graph, draft, batchSlots, { x: ends(graph), step: 0, keepHidden: true });
      })
    )
  );
  return [...ofTargets, ...bodies, ...heads];
}

for (const adapter of Object.keys(ADAPTERS) as (keyof typeof ADAPTERS)[]) {
  Deno.test(`values are where their readers look for them: ${adapter}`, async () => {
    for (const [name, load] of Object.entries(LOADS)) {
      const { models, buffers } = await modelsOf(load, adapter);
      assert.deepEqual(faultsOfModels(models, buffers), [], name);
    }
  });
}

Deno.test("a value that is overwritten too early is found", async () => {
  const { models: { target }, buffers: { rows } } = await modelsOf(
    LOADS["llama2"] as Load,
    "hardware",
  );
  const graph = new Graph();
  const x = targetLayers(graph, target, { rows, count: 4, perSlot: 4 }, []);
  targetNorm(graph, target, x);
  const ops = lowered(graph, target);
  const { buffer } = target.final;
  const faults = storageFaults(ops, (value) => value.at ?? { buffer });
  assert.ok(faults.some((fault) => /writes .* where .* is$/.test(fault)), faults.join("\n"));
  assert.ok(faults.some((fault) => /reads .*, where .* is stored$/.test(fault)));
});
