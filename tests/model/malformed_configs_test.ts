/** Broken configs: a UsageError, or a model whose sizes are those of its tensors. */
import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { checkpointOf } from "../../src/model/checkpoint/checkpoint.ts";
import { parseModelConfig } from "../../src/model/config/config.ts";
import type { ModelConfig } from "../../src/model/config/types.ts";
import { parseDraftConfig } from "../../src/model/config/draft_config.ts";
import { misfit } from "../../src/model/config/fit.ts";
import { memoryFolder } from "../../src/model/files/folder.ts";
import { actWidth, headsOf, isRecurrent } from "../../src/model/config/layer_config.ts";
import { sequenceMemory } from "../../src/engine/load/memory_report.ts";
import { tensorsAlone } from "../../src/model/weights/random_checkpoint.ts";
import { ropeTable } from "../../src/model/weights/rope_table.ts";
import { checkTensors, draftTensors, targetTensors } from "../../src/model/weights/tensors.ts";
import { absurd, always, holds, some, spoiled } from "../fuzz.ts";
import { draft, EAGLE1, EAGLE3, target, TARGET_JSON } from "./drafts.ts";

const MORE = [
  "head_dim",
  "max_position_embeddings",
  "rms_norm_eps",
  "rope_theta",
  "rope_scaling",
  "rope_parameters",
  "tie_word_embeddings",
  "attention_bias",
  "hidden_act",
  "layer_types",
  "quantization_config",
  "partial_rotary_factor",
  "bos_token_id",
  "eos_token_id",
];

/** What the rest of the program takes for granted of a config. */
function sound(config: ModelConfig): void {
  const { hiddenSize, vocabSize, rmsNormEps, ropes, layers } = config;
  for (const { attention, mlp } of layers) {
    assert.ok(!isRecurrent(attention));
    const { heads, kvHeads, headDim } = headsOf(attention, { tablePages: 1, kvDtype: "f32" });
    for (const size of [hiddenSize, heads, kvHeads, headDim, vocabSize, actWidth(mlp)]) {
      assert.ok(Number.isSafeInteger(size) && size > 0 && size <= 2 ** 26, String(size));
    }
    assert.equal(heads % kvHeads, 0);
    assert.equal(headDim % 8, 0);
    assert.ok(headDim <= 1024 && attention.scale > 0 && Number.isFinite(attention.scale));
  }
  assert.ok(rmsNormEps > 0 && Number.isFinite(rmsNormEps));
  assert.ok(ropes.every(({ theta }) => theta > 0 && Number.isFinite(theta)));
  for (const rope of ropes) {
    assert.ok(
      !ropeTable(rope, rope.width, { positions: 2, context: 512 }).some(Number.isNaN),
      JSON.stringify(rope),
    );
  }
  const checkpoint = { name: "absurd", tensors: tensorsAlone(targetTensors(config)) };
  const { total } = sequenceMemory({ target: { checkpoint, config }, draft: undefined }, {});
  assert.ok(Number.isSafeInteger(total), String(total));
  for (const id of config.eosTokenIds) assert.ok(id >= 0 && id < vocabSize);
}

Deno.test("targets with absurd configs", () => {
  const generation = fc.oneof(spoiled({ eos_token_id: [1, 2] }, ["bos_token_id"]), absurd);
  const configs = fc.tuple(spoiled(TARGET_JSON, MORE), generation);
  const attempt = ([config, generationConfig]: [unknown, unknown]) =>
    holds(() => {
      const parsed = parseModelConfig("absurd", config, generationConfig);
      sound(parsed);
      assert.ok(targetTensors(parsed).every(({ shape }) => shape.every(Number.isSafeInteger)));
    });
  some(always(configs, attempt, 4000));
});

for (const name of ["mixtral", "qwen3_moe", "deepseek_v2_groups", "deepseek_v3"]) {
  Deno.test(`${name} with absurd configs`, () => {
    const path = new URL(`../golden/${name}/config.json`, import.meta.url);
    const configs = spoiled(JSON.parse(Deno.readTextFileSync(path)), MORE);
    const attempt = (config: unknown) =>
      holds(() => {
        const parsed = parseModelConfig("absurd", config, undefined);
        sound(parsed);
        assert.ok(targetTensors(parsed).every(({ shape }) => shape.every(Number.isSafeInteger)));
      });
    some(always(configs, attempt, 1000));
  });
}

const DRAFT_KEYS = [
  ...MORE,
  "draft_vocab_size",
  "target_hidden_size",
  "eagle_config",
  "eagle_aux_hidden_state_layer_ids",
  "norm_before_residual",
  "norm_before_fc",
  "fc_norm",
  "norm_output",
  "add_para_norm",
  "layernorms",
  "transformer_layer_config",
];

for (const [name, shapes] of [["EAGLE-1", EAGLE1], ["EAGLE-3", EAGLE3]] as const) {
  Deno.test(`${name} drafts with absurd configs`, () => {
    const configs = spoiled({ ...TARGET_JSON, num_hidden_layers: 1 }, DRAFT_KEYS);
    const attempt = (config: Record<string, unknown>) =>
      holds(() => {
        using checkpoint = draft(shapes, config);
        const parsed = parseDraftConfig(checkpoint, target());
        sound(parsed.layer);
        checkTensors(checkpoint, draftTensors(parsed));
        misfit(parsed, target());
      });
    some(always(configs, attempt, 1500));
  });
}

Deno.test("a speculators config with an absurd layer", () => {
  const layer = spoiled({ ...TARGET_JSON, num_hidden_layers: 1 }, MORE);
  const attempt = (transformer_layer_config: unknown) =>
    holds(() => {
      using checkpoint = draft(EAGLE3, { transformer_layer_config, norm_before_residual: true });
      sound(parseDraftConfig(checkpoint, target()).layer);
    });
  some(always(fc.oneof(layer, absurd), attempt, 500));
});

Deno.test("config files that are no JSON, or nested without end", () => {
  const deep = (depth: number) => '{"hidden_size":' + "[".repeat(depth) + "]".repeat(depth) + "}";
  const texts = [deep(10), deep(100_000), '{"a":'.repeat(1e5), "", "\0", "nul", '"', "[]", "1e999"];
  const text = fc.oneof(fc.constantFrom(...texts), fc.string(), fc.json());
  always(text, (json) => {
    const files = new Map([["config.json", json], ["model.safetensors", "\0\0\0\0\0\0\0\0"]]);
    holds(() => {
      const encoded = (file: string) => {
        const found = files.get(file);
        return found === undefined ? undefined : new TextEncoder().encode(found);
      };
      using opened = checkpointOf(memoryFolder("absurd", encoded));
      parseModelConfig("absurd", opened.json("config.json"), undefined);
    });
    return holds(() => parseModelConfig("absurd", parsedOr(json), parsedOr(json)));
  }, 500);
});

function parsedOr(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return json;
  }
}
