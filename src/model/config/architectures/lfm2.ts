import {
  type Fields,
  flag,
  integer,
  integers,
  positive,
  unusable,
  value,
} from "../../files/fields.ts";
import { MAX } from "../decoder_config.ts";
import type { AttentionSpec, HeadAttention, MlpSpec } from "../layer_config.ts";
import { parseMixture } from "../mixture_config.ts";
import { EXPERT, llamaNamesBut, type TensorNames } from "../tensor_names.ts";
import type { BaseLayer, Family } from "../types.ts";

const RENAMED = { rms_norm_eps: "norm_eps", tie_word_embeddings: "tie_embedding" };

const DEFAULTS = {
  max_position_embeddings: 128_000,
  rms_norm_eps: 1e-5,
  rope_theta: 1_000_000,
  tie_word_embeddings: true,
  num_key_value_heads: 8,
  conv_L_cache: 3,
  conv_bias: false,
};

const NAMES: TensorNames = {
  ...llamaNamesBut({
    inputNorm: "operator_norm",
    postNorm: "ffn_norm",
    qNorm: "self_attn.q_layernorm",
    kNorm: "self_attn.k_layernorm",
    o: "self_attn.out_proj",
    gate: "feed_forward.w1",
    up: "feed_forward.w3",
    down: "feed_forward.w2",
    router: "feed_forward.gate",
    routerBias: "feed_forward.expert_bias",
    expertGate: `feed_forward.experts.${EXPERT}.w1`,
    expertUp: `feed_forward.experts.${EXPERT}.w3`,
    expertDown: `feed_forward.experts.${EXPERT}.w2`,
  }),
  expertStacks: {
    gateUp: "feed_forward.experts.gate_up_proj",
    down: "feed_forward.experts.down_proj",
  },
  norm: "embedding_norm",
};

/**
 * LFM2: most layers have a short convolution instead of attention. Attention norms q and k. The width of MLPs is
 * computed from the config's, see `adjustedWidth`.
 */
export const LFM2: Family = {
  architecture: "Lfm2ForCausalLM",
  modelType: "lfm2",
  renamed: { ...RENAMED, intermediate_size: "block_ff_dim", rope_theta: "theta" },
  defaults: {
    ...DEFAULTS,
    intermediate_size: 12_288,
    block_auto_adjust_ff_dim: true,
    block_ffn_dim_multiplier: 1,
    block_multiple_of: 256,
  },
  layer: (config, { attention, mlp }, i) => ({
    attention: mixing(config, attention, i),
    mlp: { ...mlp, intermediateSize: adjustedWidth(config, mlp.intermediateSize) },
    norms: "before",
  }),
  names: NAMES,
};

/** LFM2-MoE: after the first layers mixtures of experts, by sigmoid and a bias that balances their load. */
export const LFM2_MOE: Family = {
  architecture: "Lfm2MoeForCausalLM",
  modelType: "lfm2_moe",
  renamed: RENAMED,
  defaults: {
    ...DEFAULTS,
    intermediate_size: 7168,
    moe_intermediate_size: 1792,
    num_dense_layers: 2,
    num_experts: 32,
    num_experts_per_tok: 4,
    routed_scaling_factor: 1,
  },
  layer: (config, base, i) => ({
    attention: mixing(config, base.attention, i),
    mlp: i < integer(config, "num_dense_layers", { min: 0, max: MAX.layers })
      ? base.mlp
      : mixture(config, base),
    norms: "before",
  }),
  names: NAMES,
};

function mixture(config: Fields, base: BaseLayer): MlpSpec {
  if (!flag(config, "use_expert_bias", true)) {
    throw unusable(config, "has use_expert_bias false, expected true");
  }
  return parseMixture(config, base, { experts: "num_experts", size: "moe_intermediate_size" }, {
    scores: "sigmoid",
    normalize: flag(config, "norm_topk_prob", true),
    scale: positive(config, "routed_scaling_factor"),
  });
}

function mixing(config: Fields, attention: HeadAttention, i: number): AttentionSpec {
  if (flag(config, "conv_bias", false)) {
    throw unusable(config, "has conv_bias true, expected false");
  }
  if (isAttention(config, i)) return { ...attention, qkNorm: "head" };
  const taps = integer(config, "conv_L_cache", { min: 2, max: 16 });
  const width = integer(config, "hidden_size", { min: 1, max: MAX.hidden });
  return { kind: "conv", width, taps, window: undefined };
}

/** Whether layer `i` has attention: by `layer_types`, or by `full_attn_idxs`; without either all have. */
function isAttention(config: Fields, i: number): boolean {
  const types = value(config, "layer_types");
  if (Array.isArray(types)) return types[i] === "full_attention";
  return integers(config, "full_attn_idxs", 1024)?.includes(i) ?? true;
}

/** The MLPs' width: with `block_auto_adjust_ff_dim` two thirds of `intermediate_size`, multiplied and rounded up. */
function adjustedWidth(config: Fields, width: number): number {
  if (!flag(config, "block_auto_adjust_ff_dim", true)) return width;
  const step = integer(config, "block_multiple_of", { min: 1, max: 2 ** 20 });
  const scaled = Math.trunc(
    positive(config, "block_ffn_dim_multiplier") * Math.trunc(2 * width / 3),
  );
  return step * Math.ceil(scaled / step);
}
