import { isSliding, slidingWindow } from "../decoder_config.ts";
import type { BaseLayer, DecoderConfig, Family } from "../types.ts";
import { expect, type Fields, integer, positive, value } from "../../files/fields.ts";
import type { LayerConfig } from "../layer_config.ts";
import { parseLayerRope, parseRope, type Rope } from "../rope_config.ts";
import { llamaNamesBut } from "../tensor_names.ts";

const DEFAULTS = {
  head_dim: 256,
  query_pre_attn_scalar: 256,
  sliding_window: 4096,
  hidden_activation: "gelu_pytorch_tanh",
  tie_word_embeddings: true,
};

const MODULES = { postNorm: "pre_feedforward_layernorm" };

/** Gemma 2: norms around branches, soft caps, a window on every other layer. */
export const GEMMA2: Family = {
  architecture: "Gemma2ForCausalLM",
  modelType: "gemma2",
  activation: "hidden_activation",
  defaults: {
    ...DEFAULTS,
    max_position_embeddings: 8192,
    attn_logit_softcapping: 50,
    final_logit_softcapping: 30,
  },
  layer: (config, base, i) =>
    layer(config, base, {
      cap: cap(config, "attn_logit_softcapping"),
      window: isSliding(config, i, i % 2 === 0) ? slidingWindow(config) : undefined,
    }),
  model,
  names: llamaNamesBut(MODULES),
};

/** Gemma 3, text: heads of q and k are normed; local layers have a window and a rope of their own. */
export const GEMMA3: Family = {
  architecture: "Gemma3ForCausalLM",
  modelType: "gemma3_text",
  // Models of 4B parameters and more.
  wrappers: [{ architecture: "Gemma3ForConditionalGeneration", modelType: "gemma3" }],
  activation: "hidden_activation",
  // As transformers' Gemma3TextConfig: configs with images leave out what equals it.
  defaults: {
    ...DEFAULTS,
    vocab_size: 262_208,
    hidden_size: 2304,
    intermediate_size: 9216,
    num_hidden_layers: 26,
    num_attention_heads: 8,
    num_key_value_heads: 4,
    max_position_embeddings: 131_072,
    rope_theta: 1_000_000,
    rope_local_base_freq: 10_000,
    sliding_window_pattern: 6,
  },
  layer(config, base, i) {
    const pattern = integer(config, "sliding_window_pattern", { min: 1, max: 1024 });
    const local = isSliding(config, i, (i + 1) % pattern > 0);
    const window = local ? slidingWindow(config) : undefined;
    return layer(config, base, { qkNorm: "head", window, rope: local ? LOCAL : GLOBAL });
  },
  ropes,
  model: (config, hiddenSize) => ({
    ...model(config, hiddenSize),
    // Published values already include rope scaling.
    maxPositions: integer(config, "max_position_embeddings", { min: 1, max: 2 ** 25 }),
  }),
  names: llamaNamesBut(MODULES),
};

const GLOBAL = 0;
const LOCAL = 1;

/** The ropes of global and of local layers, in this order. transformers 5 has a nested object per kind of layer. */
function ropes(config: Fields, headDim: number): readonly Rope[] {
  const local = positive(config, "rope_local_base_freq");
  const ofLocal = { ...config, values: { ...config.values, rope_theta: local } };
  return [
    parseLayerRope(config, "full_attention", headDim) ?? parseRope(config, headDim),
    parseLayerRope(ofLocal, "sliding_attention", headDim) ??
      { theta: local, width: headDim, scaling: { kind: "default" } },
  ];
}

function layer(
  config: Fields,
  { attention, mlp }: BaseLayer,
  own: Partial<BaseLayer["attention"]>,
): LayerConfig {
  const scale = positive(config, "query_pre_attn_scalar") ** -0.5;
  return {
    attention: { ...attention, scale, ...own },
    mlp,
    norms: "around",
  };
}

/** transformers rounds the factor to the dtype it computes in, which here is float32. */
function model(config: Fields, hiddenSize: number): Partial<DecoderConfig> {
  expect(config, "use_bidirectional_attention", false);
  return {
    normOffset: 1,
    embedScale: Math.fround(Math.sqrt(hiddenSize)),
    logitCap: cap(config, "final_logit_softcapping"),
  };
}

function cap(config: Fields, key: string): number | undefined {
  return value(config, key) === undefined ? undefined : positive(config, key);
}
