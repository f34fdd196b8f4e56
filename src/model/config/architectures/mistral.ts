import { slidingWindow } from "../decoder_config.ts";
import { type Fields, positive, value } from "../../files/fields.ts";
import type { HeadAttention } from "../layer_config.ts";
import { originalPositions, parseRope, ropeFields } from "../rope_config.ts";
import type { Family } from "../types.ts";

/** Mistral Small 3.1 and 4, Ministral 3, Devstral Small 2: the text model's own type says which family it is. */
export const WRAPPERS: NonNullable<Family["wrappers"]> = [{
  architecture: "Mistral3ForConditionalGeneration",
  modelType: "mistral3",
}];

/** Mistral 7B: Llama with a window on every layer; a window of null (since v0.2) means none. */
export const MISTRAL: Family = {
  architecture: "MistralForCausalLM",
  modelType: "mistral",
  wrappers: WRAPPERS,
  // As transformers' MistralConfig: configs with images may leave out what equals it.
  defaults: {
    vocab_size: 32_000,
    hidden_size: 4096,
    intermediate_size: 14_336,
    num_hidden_layers: 32,
    num_attention_heads: 32,
    num_key_value_heads: 8,
    max_position_embeddings: 131_072,
    sliding_window: 4096,
  },
  layer: (config, { attention, mlp }) => ({
    attention: { ...attention, window: slidingWindow(config) },
    mlp,
    norms: "before",
  }),
};

/** Ministral 3: Mistral whose queries grow with their position, once for each original context. */
export const MINISTRAL3: Family = {
  architecture: "Ministral3ForCausalLM",
  modelType: "ministral3",
  wrappers: WRAPPERS,
  // As transformers' Ministral3Config: configs with images leave out what equals it.
  defaults: {
    vocab_size: 131_072,
    hidden_size: 4096,
    intermediate_size: 14_336,
    num_hidden_layers: 34,
    num_attention_heads: 32,
    num_key_value_heads: 8,
    head_dim: 128,
    max_position_embeddings: 262_144,
    rms_norm_eps: 1e-5,
  },
  ropes: (config, headDim) => [parseRope(withRope(config, ROPE), headDim)],
  layer: (config, { attention, mlp }) => ({
    attention: {
      ...attention,
      window: slidingWindow(config),
      ...queryScale(withRope(config, ROPE)),
    },
    mlp,
    norms: "before",
  }),
};

/** What transformers assumes where config.json has no rope. */
const ROPE = {
  rope_type: "yarn",
  rope_theta: 1_000_000,
  factor: 16,
  original_max_position_embeddings: 16_384,
  beta_fast: 32,
  beta_slow: 1,
  mscale: 1,
  mscale_all_dim: 1,
  llama_4_scaling_beta: 0.1,
};

/** The fields, with `rope` added if they have none. */
export function withRope(config: Fields, rope: Readonly<Record<string, unknown>>): Fields {
  const said = ["rope_parameters", "rope_scaling"].some((key) => value(config, key) !== undefined);
  return said ? config : { ...config, values: { ...config.values, rope_parameters: rope } };
}

/** The query scale from `llama_4_scaling_beta` of the config's rope, if it has one. */
export function queryScale(config: Fields): Pick<HeadAttention, "queryScale"> {
  const inside = ropeFields(config);
  if (!inside || !value(inside, "llama_4_scaling_beta")) return {};
  const beta = positive(inside, "llama_4_scaling_beta");
  return { queryScale: { beta, length: originalPositions(config, inside) } };
}
