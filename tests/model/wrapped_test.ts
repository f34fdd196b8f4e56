/** Text models whose tensors are named as parts of models that also read images. */
import assert from "node:assert/strict";
import { checkpointOf, openCheckpoint } from "../../src/model/checkpoint/checkpoint.ts";
import type { Checkpoint } from "../../src/model/files/checkpoint_type.ts";
import { parseModelConfig } from "../../src/model/config/config.ts";
import { memoryFolder } from "../../src/model/files/folder.ts";
import {
  checkTarget,
  findTensor,
  targetTensors,
  type TensorSpec,
} from "../../src/model/weights/tensors.ts";
import { fileOf, tensorsOf } from "./safetensors_bytes.ts";

/** Prefixes of the text model and of its head: of transformers 4 and of 5. */
const OLD = ["language_model.model.", "language_model."] as const;
const NEW = ["model.language_model.", ""] as const;

/** Goldens of text models, and the models with images or audio that they are parts of. */
const WRAPPED = [
  ["mistral", "Mistral3ForConditionalGeneration", "mistral3", OLD],
  ["mistral", "Mistral3ForConditionalGeneration", "mistral3", NEW],
  ["ministral3", "Mistral3ForConditionalGeneration", "mistral3", NEW],
  ["mistral4", "Mistral3ForConditionalGeneration", "mistral3", NEW],
  ["gemma3", "Gemma3ForConditionalGeneration", "gemma3", NEW],
  ["gemma4_e", "Gemma4ForConditionalGeneration", "gemma4", NEW],
  ["gemma4_moe", "Gemma4ForConditionalGeneration", "gemma4", NEW],
  ["gemma4_dense", "Gemma4UnifiedForConditionalGeneration", "gemma4_unified", NEW],
  ["qwen3_5", "Qwen3_5ForConditionalGeneration", "qwen3_5", NEW],
  ["qwen3_5_moe", "Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe", NEW],
] as const;

for (const [golden, architecture, modelType, [text, head]] of WRAPPED) {
  Deno.test(`${modelType}: tensors of ${text} are those of the text model, ${golden}`, () => {
    const folder = new URL(`../golden/${golden}`, import.meta.url).pathname;
    const { architectures: _, ...config } = JSON.parse(
      Deno.readTextFileSync(`${folder}/config.json`),
    );
    const inner = modelType === "gemma4_unified"
      ? { ...config, model_type: "gemma4_unified_text" }
      : config;
    const json = { architectures: [architecture], model_type: modelType, text_config: inner };
    const stored = tensorsOf(`${folder}/model.safetensors`);
    const renamed = new Map([...stored].map(([name, tensor]) => [
      name.startsWith("model.") ? name.replace("model.", text) : `${head}${name}`,
      tensor,
    ]));
    const vision = { dtype: "F32", shape: [1], bytes: new Uint8Array(4) };
    const file = fileOf(new Map([...renamed, ["vision_tower.scale", vision]]));
    const files = new Map<string, Uint8Array>([
      ["config.json", new TextEncoder().encode(JSON.stringify(json))],
      ["model.safetensors", file],
    ]);
    using checkpoint = checkpointOf(
      memoryFolder("sees", (name) => files.get(name) as Uint8Array<ArrayBuffer>),
    );
    const parsed = parseModelConfig("sees", checkpoint.json("config.json"), undefined);
    assert.deepEqual(checkTarget(checkpoint, parsed), [
      "sees: 1 tensor for images or audio is not used, only text is read",
    ]);
    using plain = openCheckpoint(folder);
    const own = targetTensors(parseModelConfig("plain", config, undefined));
    assert.equal(own.length, targetTensors(parsed).length);
    for (const [i, spec] of targetTensors(parsed).entries()) {
      const bytes = bytesOf(checkpoint, spec);
      assert.ok(
        bytes.byteLength > 0 && equal(bytes, bytesOf(plain, own[i] as TensorSpec)),
        spec.name,
      );
    }
  });
}

function bytesOf(checkpoint: Checkpoint, spec: TensorSpec): Uint8Array {
  const tensor = findTensor(checkpoint, spec) ?? assert.fail(spec.name);
  const bytes = new Uint8Array(tensor.size);
  checkpoint.read(tensor, 0, bytes);
  return bytes;
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

Deno.test("a model with images ends at the end tokens of its text model too", () => {
  const folder = new URL("../golden/qwen3_5", import.meta.url).pathname;
  const { architectures: _, ...config } = JSON.parse(
    Deno.readTextFileSync(`${folder}/config.json`),
  );
  const json = {
    architectures: ["Qwen3_5ForConditionalGeneration"],
    model_type: "qwen3_5",
    eos_token_id: 7,
    text_config: { ...config, eos_token_id: 5 },
  };
  assert.deepEqual(parseModelConfig("sees", json, undefined).eosTokenIds, [7, 5]);
  assert.deepEqual(parseModelConfig("sees", json, { eos_token_id: [9, 5] }).eosTokenIds, [9, 5]);
});
