import assert from "node:assert/strict";
import { UsageError } from "../../src/errors.ts";
import { parseModelConfig } from "../../src/model/config/config.ts";
import { parseNextnConfig } from "../../src/model/config/nextn_config.ts";
import {
  checkDraft,
  draftTensors,
  targetTensors,
  type TensorSpec,
} from "../../src/model/weights/tensors.ts";
import { shapesOf, tensorFile, toyCheckpoint } from "./folders.ts";

type Json = Readonly<Record<string, unknown>>;
type Shapes = Readonly<Record<string, readonly number[]>>;

function golden(name: string): Json {
  const url = new URL(`../golden/${name}/config.json`, import.meta.url);
  return JSON.parse(Deno.readTextFileSync(url));
}

/** Whole tensors, also where specs ask for rows of them. */
function stored(specs: readonly TensorSpec[]): Shapes {
  return shapesOf(specs.map(({ part, shape, ...spec }) => ({
    ...spec,
    shape: part ? [part.of, ...shape.slice(1)] : shape,
  })));
}

/** A checkpoint of the model with the tensors that NEXTN drafts with, and `more`. */
function checkpointOf(json: Json, more: Shapes = {}) {
  const model = stored(targetTensors(parseModelConfig("toy", json, undefined)));
  const of = (shapes: Shapes) =>
    toyCheckpoint({ "config.json": json, "model.safetensors": tensorFile(shapes) });
  const seed = of({ ...model, "mtp.fc.weight": [1] });
  return of({ ...model, ...stored(draftTensors(parseNextnConfig(seed))), ...more });
}

const DEEPSEEK = golden("deepseek_v3");
const QWEN = golden("qwen3_5");
const L = `model.layers.${DEEPSEEK.num_hidden_layers}`;

Deno.test("NEXTN: the layer's copies of the embedding and the head are read past", () => {
  const deepseek = checkpointOf(DEEPSEEK, {
    [`${L}.embed_tokens.weight`]: [8],
    [`${L}.shared_head.head.weight`]: [8],
    [`${L}.self_attn.rotary_emb.inv_freq`]: [8],
  });
  assert.deepEqual(checkDraft(deepseek, parseNextnConfig(deepseek)), []);
  const qwen = checkpointOf(QWEN);
  assert.deepEqual(checkDraft(qwen, parseNextnConfig(qwen)), []);
});

Deno.test("NEXTN: of several layers the first one drafts, with a warning", () => {
  const next = `model.layers.${Number(DEEPSEEK.num_hidden_layers) + 1}.enorm.weight`;
  for (
    const checkpoint of [
      checkpointOf({ ...DEEPSEEK, num_nextn_predict_layers: 2 }, { [next]: [8] }),
      checkpointOf(QWEN, { "mtp.layers.1.input_layernorm.weight": [8] }),
    ]
  ) {
    assert.deepEqual(checkDraft(checkpoint, parseNextnConfig(checkpoint)), [
      "toy: of several NextN layers only the first one drafts, so later drafts are worse",
    ]);
  }
});

for (
  const [what, json, tensor] of [
    ["a norm in the layer", DEEPSEEK, `${L}.pre_feedforward_layernorm.weight`],
    ["a norm beside the layer", QWEN, "mtp.pre_fc_norm_more.weight"],
    ["sinks", QWEN, "mtp.layers.0.self_attn.sinks"],
  ] as const
) {
  Deno.test(`NEXTN: ${what}, which would be left out, is refused`, () => {
    const checkpoint = checkpointOf(json, { [tensor]: [8] });
    assert.throws(() => checkDraft(checkpoint, parseNextnConfig(checkpoint)), (error: unknown) => {
      assert.ok(error instanceof UsageError, String(error));
      assert.match(
        error.message,
        /^Cannot use .* belongs to a kind of draft that is not supported$/,
      );
      assert.ok(error.message.includes(`"${tensor}"`));
      return true;
    });
  });
}

Deno.test("NEXTN: a layer with an embedding of its own is refused", () => {
  const own = { mtp_use_dedicated_embeddings: true };
  const { architectures: _, ...text } = QWEN;
  const wrapped = {
    architectures: ["Qwen3_5ForConditionalGeneration"],
    model_type: "qwen3_5",
    text_config: { ...text, ...own },
  };
  for (const json of [{ ...QWEN, ...own }, wrapped]) {
    const checkpoint = toyCheckpoint({
      "config.json": json,
      "model.safetensors": tensorFile({ "mtp.fc.weight": [8] }),
    });
    assert.throws(
      () => parseNextnConfig(checkpoint),
      /has mtp_use_dedicated_embeddings true, expected false for NEXTN/,
    );
  }
});
