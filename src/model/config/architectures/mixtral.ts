import { slidingWindow } from "../decoder_config.ts";
import type { Family } from "../types.ts";
import { parseMixture } from "../mixture_config.ts";
import { EXPERT, llamaNamesBut } from "../tensor_names.ts";

/** Mixtral 8x7B and 8x22B: Mistral with a mixture of experts in every layer. */
export const MIXTRAL: Family = {
  architecture: "MixtralForCausalLM",
  modelType: "mixtral",
  defaults: {
    max_position_embeddings: 131072,
    num_key_value_heads: 8,
    rms_norm_eps: 1e-5,
    rope_theta: 1_000_000,
    num_local_experts: 8,
    num_experts_per_tok: 2,
  },
  layer: (config, base) => ({
    attention: { ...base.attention, window: slidingWindow(config) },
    mlp: parseMixture(config, base, { experts: "num_local_experts", size: "intermediate_size" }),
    norms: "before",
  }),
  names: llamaNamesBut({
    router: "block_sparse_moe.gate",
    expertGate: `block_sparse_moe.experts.${EXPERT}.w1`,
    expertUp: `block_sparse_moe.experts.${EXPERT}.w3`,
    expertDown: `block_sparse_moe.experts.${EXPERT}.w2`,
  }),
};
