/** Small targets and drafts for tests. */
import type { Checkpoint } from "../../src/model/files/checkpoint_type.ts";
import { parseModelConfig } from "../../src/model/config/config.ts";
import type { ModelConfig } from "../../src/model/config/types.ts";
import { tensorFile, toyCheckpoint } from "./folders.ts";

/** config.json of a target with 16-wide hidden states. */
export const TARGET_JSON: Readonly<Record<string, unknown>> = {
  architectures: ["LlamaForCausalLM"],
  model_type: "llama",
  hidden_size: 16,
  intermediate_size: 24,
  num_hidden_layers: 6,
  num_attention_heads: 2,
  num_key_value_heads: 1,
  vocab_size: 40,
};

/** The target, with changes to its config.json. */
export function target(change: Readonly<Record<string, unknown>> = {}): ModelConfig {
  return parseModelConfig("big", { ...TARGET_JSON, ...change }, undefined);
}

/** Tensors of an EAGLE-3 head for that target, over 12 of the 40 tokens. */
export const EAGLE3: Readonly<Record<string, readonly number[]>> = {
  "fc.weight": [16, 48],
  "midlayer.input_layernorm.weight": [16],
  "midlayer.hidden_norm.weight": [16],
  "midlayer.self_attn.q_proj.weight": [16, 32],
  "midlayer.self_attn.k_proj.weight": [8, 32],
  "midlayer.self_attn.v_proj.weight": [8, 32],
  "midlayer.self_attn.o_proj.weight": [16, 16],
  "midlayer.post_attention_layernorm.weight": [16],
  "midlayer.mlp.gate_proj.weight": [24, 16],
  "midlayer.mlp.up_proj.weight": [24, 16],
  "midlayer.mlp.down_proj.weight": [16, 24],
  "norm.weight": [16],
  "lm_head.weight": [12, 16],
  d2t: [12],
  t2d: [40],
};

/** Tensors of an EAGLE-1 head for that target. */
export const EAGLE1: Readonly<Record<string, readonly number[]>> = {
  "fc.weight": [16, 32],
  "fc.bias": [16],
  "layers.0.self_attn.q_proj.weight": [16, 16],
  "layers.0.self_attn.k_proj.weight": [8, 16],
  "layers.0.self_attn.v_proj.weight": [8, 16],
  "layers.0.self_attn.o_proj.weight": [16, 16],
  "layers.0.post_attention_layernorm.weight": [16],
  "layers.0.mlp.gate_proj.weight": [24, 16],
  "layers.0.mlp.up_proj.weight": [24, 16],
  "layers.0.mlp.down_proj.weight": [16, 24],
};

/** A draft checkpoint in memory with these tensors, one layer, and `config` over the target's. */
export function draft(
  shapes: Readonly<Record<string, readonly number[]>>,
  config: Readonly<Record<string, unknown>> = {},
): Checkpoint {
  return toyCheckpoint({
    "config.json": { ...TARGET_JSON, num_hidden_layers: 1, ...config },
    "model.safetensors": tensorFile(shapes, {
      d2t: "I64",
      t2d: "BOOL",
      "model.d2t": "I64",
      "model.t2d": "BOOL",
    }),
  });
}

/** The same tensors under other names. */
export function renamed(
  shapes: Readonly<Record<string, readonly number[]>>,
  rename: (name: string) => string,
): Record<string, readonly number[]> {
  return Object.fromEntries(Object.entries(shapes).map(([name, shape]) => [rename(name), shape]));
}

/** The same tensors but for one. */
export function without(
  shapes: Readonly<Record<string, readonly number[]>>,
  name: string,
): Record<string, readonly number[]> {
  return Object.fromEntries(Object.entries(shapes).filter(([key]) => key !== name));
}
