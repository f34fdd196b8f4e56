import assert from "node:assert/strict";
import type { LoadedWeights } from "../../src/engine/device/models.ts";
import { unitsReport, unitsText } from "../../src/engine/matrices/units_report.ts";
import type { TensorMatrices } from "../../src/gpu/matrices_on_units.ts";
import type { Matrix } from "../../src/gpu/matrix.ts";
import { checkModels, loadWith } from "../../src/engine/load/load.ts";
import { openCheckpoint } from "../../src/model/checkpoint/checkpoint.ts";
import { checkpointWeights } from "../../src/model/weights/weights.ts";
import { openGpu } from "../gpu/shared.ts";
import { openEngine } from "./open.ts";
import { folderOf } from "./speculated.ts";

const UNIT = { m: 16, n: 16, k: 16, lanes: 32 };

Deno.test("units: matrices there, and the others by the reason", async () => {
  using engine = await openEngine({ model: { draft: "none" } });
  const { runner: { gpu, models } } = engine;
  const { config, weights } = models.target;
  const limits = {
    maxComputeInvocationsPerWorkgroup: 1024,
    maxComputeWorkgroupStorageSize: 32768,
    maxStorageBuffersPerShaderStage: 16,
  } as GPUSupportedLimits;
  const device = { ...gpu, info: gpu.info, matrixUnit: UNIT };
  const [first, ...layers] = weights.layers;
  assert.ok(first?.mlp.kind === "dense" && first.attention.kind === "heads");
  // One matrix of a layer each: integers, and a width that no tile divides.
  const quantized: Matrix = { ...first.mlp.down, format: "q8" };
  const narrow: Matrix = { ...first.attention.qkv, cols: 40 };
  const odd = {
    ...first,
    mlp: { ...first.mlp, down: quantized },
    attention: { ...first.attention, qkv: narrow },
  };
  const scaled = [weights.head, first.mlp.gateUp, first.attention.o];
  const scales = new Map(
    scaled.flatMap(({ shards }) => shards).map((
      shard,
    ) => [shard, { scales: shard.operand, stored: "loaded" as const }]),
  );
  const loaded = {
    target: { config, weights: { ...weights, layers: [odd, ...layers] } },
    draft: undefined,
    tensor: { shards: scales, experts: new Map() } as unknown as TensorMatrices,
  } as LoadedWeights;
  const report = unitsReport({ ...device, limits }, loaded, { contextLength: 40960 });
  assert.equal(report?.unit, "16x16x16");
  assert.deepEqual([report?.matrices, report?.precision], [3, "f16"]);
  // Four matrices a layer that fit and have no scales.
  assert.deepEqual(report?.others, [
    { why: "numbers that f16 cannot hold", count: 4 * layers.length },
    { why: "format q8", count: 1 },
    { why: "shape [rows, cols] in no tile", count: 1 },
  ]);
  const short = unitsReport({ ...device, limits }, loaded, { contextLength: 512 });
  const count = 1 + layers.length;
  assert.deepEqual(
    short?.others.filter(({ why }) => why.startsWith("attention")),
    [{ why: "attention: contexts of at most 512", count }],
  );
  assert.equal(
    unitsReport({ ...device, limits, matrixUnit: undefined }, loaded, { contextLength: 9 }),
    undefined,
  );
  assert.equal(
    unitsText({
      unit: "8x8x8",
      precision: "f32",
      matrices: 1,
      prompts: 0,
      others: [{ why: "format q4", count: 7 }],
    }),
    "1 matrix on units of 8x8x8, precision f32; 7 not: format q4",
  );
  assert.equal(
    unitsText({ unit: "8x8x8", precision: "f16", matrices: 9, prompts: 7, others: [] }),
    "9 matrices on units of 8x8x8, 7 in prompts only",
  );
});

Deno.test("units: both matrices of a mixture are there or neither, and why", async () => {
  const gpu = await openGpu();
  using models = checkModels(openCheckpoint(folderOf("qwen3_moe")), undefined);
  const { target } = await loadWith(
    gpu,
    models,
    (checkpoint) => checkpointWeights(gpu, checkpoint),
  );
  const { layers } = target.weights;
  const mixtures = layers.flatMap(({ mlp }) => mlp.kind === "mixture" ? [mlp] : []);
  const [first, last] = [mixtures[0]!, mixtures[1]!];
  const experts = new Map(
    [first.gateUp, first.down].flatMap(({ shards }) => shards)
      .map((shard) => [shard, { scales: shard.operand, stored: "loaded" as const }]),
  );
  const device = { ...gpu, info: gpu.info, matrixUnit: { m: 8, n: 8, k: 8, lanes: 8 } };
  const report = (mlp: Partial<typeof last>, of: TensorMatrices["experts"] = experts) => {
    const tensor = { shards: new Map(), experts: of } as unknown as TensorMatrices;
    const changed = layers.map((layer) =>
      layer.mlp === last ? { ...layer, mlp: { ...last, ...mlp } } : layer
    );
    const weights = { ...target.weights, layers: changed };
    const loaded = { target: { ...target, weights }, draft: undefined, tensor };
    const found = unitsReport(device, loaded, { contextLength: 512 });
    const left = found?.others.filter(({ why }) => why.startsWith("experts"));
    return { matrices: found?.matrices, left };
  };
  const left = (why: string) => ({ matrices: 2, left: [{ why: `experts: ${why}`, count: 2 }] });
  assert.deepEqual(report({}), left("numbers that f16 cannot hold"));
  assert.deepEqual(report({ down: { ...last.down, format: "q8" } }), left("format q8"));
  const narrow = { ...last.gateUp, cols: 40 };
  assert.deepEqual(report({ gateUp: narrow }), left("shape [rows, cols] in no tile"));
  assert.equal(report({}, new Map()).matrices, 0);
});

Deno.test("units: an engine tells what its device has", async () => {
  const { matrixUnit } = await openGpu();
  // Where there are none, an engine as others open it tells so.
  const quantized = matrixUnit ? { quantize: "q8" } as const : {};
  using engine = await openEngine({ model: { draft: "none", ...quantized } });
  assert.equal(engine.info.units === undefined, matrixUnit === undefined);
  if (engine.info.units === undefined) return;
  // The tests set EYRIE_MATRIX_UNITS; the head is an embedding and stays bf16.
  assert.deepEqual(engine.info.units.others, []);
  const { layers } = engine.runner.models.target.weights;
  assert.equal(engine.info.units.matrices, 4 * layers.length + 1);
  const [layer] = layers;
  assert.ok(layer?.mlp.kind === "dense" && layer.mlp.down.format === "q8");
});
