// Muse-Glimmer beside its golden, which has no greedy text: it is compared with a plain model in float64.
import assert from "node:assert/strict";
import { checkModel } from "../../src/engine/check/check.ts";
import { parseModelConfig } from "../../src/model/config/config.ts";
import { targetTensors } from "../../src/model/weights/tensors.ts";
import { openGpu } from "../gpu/shared.ts";
import { denseLayer } from "../model/dense_layer.ts";
import { fileOf, type StoredTensor } from "../model/safetensors_bytes.ts";
import { MUSE_GLIMMER, museGlimmerFolder, randomWeights, reference } from "./muse_glimmer.ts";

const IDS = [3, 17, 42, 5, 60, 9, 33, 150, 2, 2, 88, 101, 7, 64, 19, 20, 21, 140, 77, 1];

function stored(rows: readonly (readonly number[])[]): StoredTensor {
  const bytes = new Uint8Array(Float32Array.from(rows.flat()).buffer);
  return { dtype: "F32", shape: [rows.length, rows[0]?.length ?? 0], bytes };
}

Deno.test("muse_glimmer computes what a plain model in float64 does", async () => {
  const weights = randomWeights();
  await using folder = await museGlimmerFolder(weights);
  const { hidden, logits } = reference(weights, IDS);
  const ids = {
    dtype: "I32",
    shape: [IDS.length],
    bytes: new Uint8Array(Int32Array.from(IDS).buffer),
  };
  const tensors = new Map<string, StoredTensor>([
    ["input_ids", ids],
    ["logits", stored(logits)],
    ...hidden.map((rows, i): [string, StoredTensor] => [`hidden_states.${i}`, stored(rows)]),
  ]);
  const expected = `${folder.path}/expected.safetensors`;
  await Deno.writeFile(expected, fileOf(tensors));
  const report = await checkModel({ model: folder.path, expected, tolerance: 2e-4 }, openGpu);
  const past = report.tensors.filter(({ ok }) => !ok);
  assert.deepEqual(past.map(({ name, relToStd }) => ({ name, relToStd })), []);
  assert.equal(report.argmaxAgreement.same, report.argmaxAgreement.total);
});

Deno.test("muse_glimmer: the published layers, ropes and tensors", () => {
  const path = new URL("../../lab/shapes/muse_glimmer_30b.json", import.meta.url);
  const json = JSON.parse(Deno.readTextFileSync(path));
  const config = parseModelConfig("muse", json, undefined);
  const attention = config.layers.map((layer) => denseLayer(layer).attention);
  const globals = attention.flatMap(({ window }, i) => window === undefined ? [i] : []);
  assert.deepEqual(globals, Array.from({ length: 13 }, (_, i) => 4 * i + 3));
  const kinds = attention.map(({ rope }) => config.ropes[rope]?.scaling.kind);
  assert.deepEqual(kinds, attention.map(({ window }) => window ? "default" : "none"));
  const { rope_parameters } = json.text_config;
  const silent = { model_type: "muse_glimmer_text", rope_parameters, eos_token_id: 200_001 };
  const assumed = parseModelConfig("muse", { ...json, text_config: silent }, undefined);
  assert.deepEqual(assumed, config);
  const specs = new Map(targetTensors(config).map((spec) => [spec.role, spec]));
  assert.deepEqual(specs.get("layers.3.outputGate")?.shape, [4096, 6656]);
  assert.equal(specs.has("layers.3.qNorm"), false);
  const list = json.text_config.num_hidden_layers;
  const own = { ...json.text_config, layer_rope_theta: Array(list).fill(1e4).fill(0, 4) };
  const { ropes, layers } = parseModelConfig("muse", { ...json, text_config: own }, undefined);
  assert.deepEqual(ropes.map(({ theta, scaling }) => [theta, scaling.kind]), [
    [5e5, "default"],
    [1, "none"],
  ]);
  assert.deepEqual(layers.slice(3, 5).map((layer) => denseLayer(layer).attention.rope), [0, 1]);
  const wrong = { ...MUSE_GLIMMER, text_config: { ...own, layer_rope_theta: [1] } };
  assert.throws(
    () => parseModelConfig("muse", wrong, undefined),
    /layer_rope_theta \[1\], expected/,
  );
});
