/** Text models whose tensors are named as parts of models that also read images. */
import assert from "node:assert/strict";
import { checkpointOf } from "../../src/model/checkpoint/checkpoint.ts";
import { parseModelConfig } from "../../src/model/config/config.ts";
import { memoryFolder } from "../../src/model/files/folder.ts";
import { checkTarget, findTensor, targetTensors } from "../../src/model/weights/tensors.ts";
import { fileOf, tensorsOf } from "./safetensors_bytes.ts";

const GOLDEN = new URL("../golden/mistral", import.meta.url).pathname;

/** Prefixes of the text model and of its head: of transformers 4 and of 5. */
const NAMES = [
  ["language_model.model.", "language_model."],
  ["model.language_model.", ""],
] as const;

for (const [text, head] of NAMES) {
  Deno.test(`mistral3: tensors of ${text} are those of the text model`, () => {
    const { architectures: _, ...config } = JSON.parse(
      Deno.readTextFileSync(`${GOLDEN}/config.json`),
    );
    const json = {
      architectures: ["Mistral3ForConditionalGeneration"],
      model_type: "mistral3",
      text_config: config,
    };
    const stored = tensorsOf(`${GOLDEN}/model.safetensors`);
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
    const parsed = parseModelConfig("sees", json, undefined);
    assert.deepEqual(checkTarget(checkpoint, parsed), [
      "sees: 1 tensor for images or audio is not used, only text is read",
    ]);
    const specs = targetTensors(parsed);
    for (const spec of specs) {
      const tensor = findTensor(checkpoint, spec) ?? assert.fail(spec.role);
      const bytes = new Uint8Array(tensor.size);
      checkpoint.read(tensor, 0, bytes);
      assert.deepEqual(bytes, stored.get(spec.name)?.bytes, spec.name);
    }
  });
}
