import { isSliding, layerCount, slidingWindow } from "../decoder_config.ts";
import { type Fields, positive, quote, unusable, value } from "../../files/fields.ts";
import { noRope, parseRope } from "../rope_config.ts";
import { llamaNamesBut } from "../tensor_names.ts";
import type { Family } from "../types.ts";

const ROTATED = 0;
const UNROTATED = 1;

/**
 * Muse-Glimmer: norms around branches have weights 1 + w; norms of heads and of the embedding have none. The output of
 * attention is gated. Counted from the last layer, every fourth has no window and no rope.
 */
export const MUSE_GLIMMER: Family = {
  architecture: "MuseGlimmerForCausalLM",
  modelType: "muse_glimmer_text",
  wrappers: [{ architecture: "MuseGlimmerForConditionalGeneration", modelType: "muse_glimmer" }],
  activation: "hidden_activation",
  // As transformers' MuseGlimmerTextConfig.
  defaults: {
    vocab_size: 202_048,
    hidden_size: 6656,
    intermediate_size: 19_968,
    num_hidden_layers: 52,
    num_attention_heads: 32,
    num_key_value_heads: 2,
    head_dim: 128,
    hidden_activation: "silu",
    max_position_embeddings: 131_072,
    rms_norm_eps: 1e-5,
    post_norm_eps: 1e-8,
    sliding_window: 2048,
    final_logit_softcapping: 20,
    qk_scale_factor: 3.87,
    output_multiplier: 0.19611613513818404,
  },
  layer: (config, { attention, mlp }, i) => ({
    attention: {
      ...attention,
      window: isLocal(config, i) ? slidingWindow(config) : undefined,
      qkNorm: "head",
      qkGains: { q: positive(config, "qk_scale_factor"), k: 1 },
      outputGate: { gating: "sigmoid", per: "element" },
      rope: turns(config, i) ? ROTATED : UNROTATED,
    },
    mlp,
    norms: "around",
  }),
  ropes: (config, headDim) => [parseRope(config, headDim), noRope(headDim)],
  model: (config) => ({
    normOffset: 1,
    finalNormOffset: 0,
    branchNormEps: positive(config, "post_norm_eps"),
    embedNorm: true,
    logitScale: positive(config, "output_multiplier"),
    logitCap: value(config, "final_logit_softcapping") === undefined
      ? undefined
      : positive(config, "final_logit_softcapping"),
  }),
  names: llamaNamesBut({ postNorm: "pre_feedforward_layernorm" }),
};

function isLocal(config: Fields, i: number): boolean {
  return isSliding(config, i, !isFourth(config, i));
}

/** Whether layer `i` is one of every fourth, counted from the last. */
function isFourth(config: Fields, i: number): boolean {
  return (layerCount(config) - 1 - i) % 4 === 0;
}

/**
 * Whether layer `i` has a rope. Of `layer_rope_theta` transformers only reads which numbers are 0: the base is the
 * config's. Without that key the layer's place decides, whatever `layer_types` says.
 */
function turns(config: Fields, i: number): boolean {
  const list = value(config, "layer_rope_theta");
  if (list === undefined) return !isFourth(config, i);
  const theta: unknown = Array.isArray(list) ? list[i] : undefined;
  if (typeof theta === "number") return theta !== 0;
  throw unusable(config, `has layer_rope_theta ${quote(list)}, expected a number for each layer`);
}
