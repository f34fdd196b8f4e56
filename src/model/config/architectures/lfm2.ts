import {
  type Fields,
  flag,
  integer,
  integers,
  positive,
  unusable,
  value,
} from "../../files/fields.ts";
import { MOST } from "../decoder_config.ts";
import { llamaNamesBut } from "../tensor_names.ts";
import type { Family } from "../types.ts";

/** LFM2: short convolutions in the place of most attentions, which have norms of q and k; MLPs of a width that is made of another. */
export const LFM2: Family = {
  architecture: "Lfm2ForCausalLM",
  modelType: "lfm2",
  renamed: {
    rms_norm_eps: "norm_eps",
    intermediate_size: "block_ff_dim",
    tie_word_embeddings: "tie_embedding",
    rope_theta: "theta",
  },
  defaults: {
    max_position_embeddings: 128_000,
    rms_norm_eps: 1e-5,
    rope_theta: 1_000_000,
    intermediate_size: 12_288,
    tie_word_embeddings: true,
    conv_L_cache: 3,
    conv_bias: false,
    block_auto_adjust_ff_dim: true,
    block_ffn_dim_multiplier: 1,
    block_multiple_of: 256,
  },
  layer(config, { attention, mlp }, i) {
    const intermediateSize = adjustedWidth(config, mlp.intermediateSize);
    if (flag(config, "conv_bias", false)) {
      throw unusable(config, "has conv_bias true, expected false");
    }
    const taps = integer(config, "conv_L_cache", { least: 2, most: 16 });
    const width = integer(config, "hidden_size", { least: 1, most: MOST.hidden });
    return {
      attention: isAttention(config, i)
        ? { ...attention, qkNorm: "head" }
        : { kind: "conv", width, taps, window: undefined },
      mlp: { ...mlp, intermediateSize },
      norms: "before",
    };
  },
  names: {
    ...llamaNamesBut({
      inputNorm: "operator_norm",
      postNorm: "ffn_norm",
      qNorm: "self_attn.q_layernorm",
      kNorm: "self_attn.k_layernorm",
      o: "self_attn.out_proj",
      gate: "feed_forward.w1",
      up: "feed_forward.w3",
      down: "feed_forward.w2",
    }),
    norm: "embedding_norm",
  },
};

/** By `layer_types`, or by `full_attn_idxs`; without either all layers have attention. */
function isAttention(config: Fields, i: number): boolean {
  const types = value(config, "layer_types");
  if (Array.isArray(types)) return types[i] === "full_attention";
  return integers(config, "full_attn_idxs", 1024)?.includes(i) ?? true;
}

/** The MLPs' width: with `block_auto_adjust_ff_dim` two thirds of `intermediate_size`, multiplied and rounded up. */
function adjustedWidth(config: Fields, width: number): number {
  if (!flag(config, "block_auto_adjust_ff_dim", true)) return width;
  const step = integer(config, "block_multiple_of", { least: 1, most: 2 ** 20 });
  const scaled = Math.trunc(
    positive(config, "block_ffn_dim_multiplier") * Math.trunc(2 * width / 3),
  );
  return step * Math.ceil(scaled / step);
}
