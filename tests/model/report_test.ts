import assert from "node:assert/strict";
import { openCheckpoint } from "../../src/model/checkpoint/checkpoint.ts";
import { parseModelConfig } from "../../src/model/config/config.ts";
import { parseDraftConfig } from "../../src/model/config/draft_config.ts";
import { allMemory } from "../../src/engine/load/memory_report.ts";
import { kvBytesPerToken, openPaper } from "../../src/engine/load/paper.ts";
import { PAPER_ADAPTER } from "../../src/gpu/paper.ts";
import { parameterCount } from "../../src/model/report/parameters.ts";
import { nextnReport } from "../../src/model/report/layer_report.ts";
import { inspectReport, type TargetReport } from "../../src/model/report/report.ts";
import { targetTensors } from "../../src/model/weights/tensors.ts";
import { draft, EAGLE3, target, TARGET_JSON } from "./drafts.ts";
import { shapesOf, tensorFile, toyCheckpoint } from "./folders.ts";

const CONFIG = target();
const SPECS = targetTensors(CONFIG);
// Each layer: q 16*16, k and v 8*16, o 16*16, three 24*16, two norms of 16.
const LAYER_MATRICES = 256 + 128 + 128 + 256 + 3 * 384;
const MATRICES = 2 * 40 * 16 + 6 * LAYER_MATRICES;
const VECTORS = 6 * 2 * 16 + 16;

function big(): ReturnType<typeof toyCheckpoint> {
  const files = { "config.json": TARGET_JSON, "model.safetensors": tensorFile(shapesOf(SPECS)) };
  return toyCheckpoint(files);
}

Deno.test("parameters and bytes add up", () => {
  assert.equal(parameterCount(SPECS), MATRICES + VECTORS);
  const models = { target: { checkpoint: big(), config: CONFIG }, draft: undefined };
  const { tensorBytes } = openPaper(models, {}, PAPER_ADAPTER).measured;
  assert.equal(tensorBytes.target, 2 * MATRICES + 4 * VECTORS);
  assert.equal(kvBytesPerToken(CONFIG), 2 * 4 * 6 * 8);
});

Deno.test("a report tells of both, and why they do not fit", () => {
  const inspected = { checkpoint: big(), config: CONFIG, warnings: [] };
  const head = draft(EAGLE3, { vocab_size: 48 });
  const config = parseDraftConfig(head, CONFIG);
  const drafting = { checkpoint: head, config, warnings: ["extra"] };
  const all = allMemory({ target: inspected, draft: drafting }, {});
  const report = inspectReport(inspected, drafting, all);
  assert.equal(report.draft?.fits, false);
  assert.match(report.draft.misfit ?? "", /vocabulary/);
  assert.deepEqual(report.draft.warnings, ["extra"]);
  assert.deepEqual(report.target.files, [{
    name: "model.safetensors",
    tensors: SPECS.length,
    bytes: 2 * (MATRICES + VECTORS),
  }]);
  assert.deepEqual(report.draft.dtypes.map(({ name }) => name), ["BF16", "BOOL", "I64"]);
  const { memory } = report;
  const whole = memory.weightBytes + memory.kvBytes + memory.scratchBytes;
  assert.equal(memory.totalBytes, whole);
});

Deno.test("a report without a draft", () => {
  const inspected = { checkpoint: big(), config: CONFIG, warnings: [] };
  const all = allMemory({ target: inspected, draft: undefined }, {});
  const report = inspectReport(inspected, null, all);
  assert.equal(report.draft, null);
  assert.equal(report.memory.kvBytesPerToken, kvBytesPerToken(CONFIG));
});

/** What is reported of a golden, as a target without a draft. */
function golden(name: string): TargetReport {
  using checkpoint = openCheckpoint(new URL(`../golden/${name}`, import.meta.url).pathname);
  const config = parseModelConfig(name, checkpoint.json("config.json"), undefined);
  const inspected = { checkpoint, config, warnings: [] };
  const all = allMemory({ target: inspected, draft: undefined }, {});
  return inspectReport(inspected, null, all).target;
}

Deno.test("a report tells the kinds of layers", () => {
  assert.deepEqual(golden("qwen3_5").layerKinds, [
    { kind: "gated_deltanet", layers: 4, indices: [0, 1, 2, 4] },
    { kind: "attention", layers: 2, indices: [3, 5] },
  ]);
  assert.deepEqual(golden("lfm2").layerKinds, [
    { kind: "short_convolution", layers: 3, indices: [0, 1, 3] },
    { kind: "attention", layers: 1, indices: [2] },
  ]);
  assert.deepEqual(golden("glm4_moe_lite").layerKinds, [
    { kind: "latent_attention", layers: 3, indices: [0, 1, 2] },
  ]);
  assert.deepEqual(golden("llama3").layerKinds, [
    { kind: "attention", layers: 4, indices: [0, 1, 2, 3] },
  ]);
});

Deno.test("a report tells which layers have a window, which rope, and none", () => {
  const gemma = golden("gemma4_e");
  assert.deepEqual([gemma.window, gemma.windowLayers], [16, 4]);
  assert.deepEqual(gemma.windowIndices, [0, 1, 3, 4]);
  assert.equal(gemma.perLayerEmbeddingWidth, 16);
  const ropes = ({ ropes }: TargetReport) =>
    ropes.map(({ theta, scaling, indices }) => [theta, scaling.kind, ...indices]);
  assert.deepEqual(ropes(gemma), [
    [1_000_000, "proportional", 2, 5],
    [10_000, "default", 0, 1, 3, 4],
  ]);
  assert.deepEqual(ropes(golden("smollm3")), [[10_000, "default", 0, 1, 2], [1, "none", 3]]);
  assert.deepEqual(ropes(golden("qwen3_5")), [[10_000, "default", 3, 5]]);
  const llama = golden("llama3");
  assert.deepEqual([llama.window, llama.windowIndices, llama.ropes.length], [null, [], 1]);
  assert.equal(llama.perLayerEmbeddingWidth, null);
});

Deno.test("a report tells which layers have other heads", () => {
  const { heads, otherHeads } = golden("laguna");
  assert.equal(heads, 4);
  assert.deepEqual(otherHeads, [
    { layers: 2, heads: 8, kvHeads: 2, headDim: 32 },
    { layers: 1, heads: 6, kvHeads: 2, headDim: 32 },
  ]);
  assert.deepEqual(golden("gemma4_dense").otherHeads.map(({ kvHeads }) => kvHeads).length, 1);
});

Deno.test("a report tells of output gates and attention sinks", () => {
  const marks = (name: string) => {
    const { outputGate, attentionSinks } = golden(name);
    return [outputGate, attentionSinks];
  };
  assert.deepEqual(marks("qwen3_5"), [true, false]);
  assert.deepEqual(marks("muse_glimmer"), [true, false]);
  assert.deepEqual(marks("laguna"), [true, false]);
  assert.deepEqual(marks("gpt_oss"), [false, true]);
  assert.deepEqual(marks("granite_swa"), [false, true]);
  assert.deepEqual(marks("glm4_moe_lite"), [false, false]);
  assert.deepEqual(marks("llama3"), [false, false]);
});

Deno.test("a report tells whether a NextN layer is in the checkpoint", () => {
  assert.deepEqual(golden("deepseek_v3").nextn, { layers: 1, inCheckpoint: true });
  assert.deepEqual(golden("qwen3_5").nextn, { layers: 1, inCheckpoint: false });
  assert.equal(golden("llama3").nextn, null);
  const { tensors } = toyCheckpoint({
    "config.json": TARGET_JSON,
    "model.safetensors": tensorFile({ "mtp.fc.weight": [16, 32] }),
  });
  const mtp = { ...CONFIG, mtp: true };
  assert.deepEqual(nextnReport({ tensors }, mtp), { layers: 1, inCheckpoint: true });
  const nextn = { ...CONFIG, nextnLayers: 2 };
  assert.deepEqual(nextnReport({ tensors }, nextn), { layers: 2, inCheckpoint: false });
});
