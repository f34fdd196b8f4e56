import { expect, type Fields, integer } from "../../files/fields.ts";
import { MAX } from "../decoder_config.ts";
import type { HeadAttention, MlpSpec } from "../layer_config.ts";
import { parseMixture } from "../mixture_config.ts";
import { llamaNamesBut } from "../tensor_names.ts";
import type { BaseLayer, Family } from "../types.ts";

const DEFAULTS = {
  max_position_embeddings: 131_072,
  rms_norm_eps: 1e-5,
  rope_theta: 500_000,
  tie_word_embeddings: true,
};

/** ERNIE 4.5 without experts (0.3B): Llama whose rope pairs are stored side by side. */
export const ERNIE4_5: Family = {
  architecture: "Ernie4_5ForCausalLM",
  modelType: "ernie4_5",
  defaults: { ...DEFAULTS, head_dim: 128, num_key_value_heads: 2 },
  layer: (config, { attention, mlp }) => ({
    attention: interleaved(config, attention),
    mlp,
    norms: "before",
  }),
};

/** ERNIE 4.5 with experts (21B-A3B): softmax and a bias that balances their load, and experts that every row runs. */
export const ERNIE4_5_MOE: Family = {
  architecture: "Ernie4_5_MoeForCausalLM",
  modelType: "ernie4_5_moe",
  // transformers takes the usual names too.
  renamed: { moe_num_experts: "num_experts", moe_k: "num_experts_per_tok" },
  defaults: {
    ...DEFAULTS,
    num_key_value_heads: 4,
    moe_intermediate_size: 1536,
    moe_k: 6,
    moe_num_experts: 64,
    moe_num_shared_experts: 2,
    moe_layer_start_index: 1,
    moe_layer_end_index: -1,
    moe_layer_interval: 1,
  },
  layer: (config, base, i) => ({
    attention: interleaved(config, base.attention),
    mlp: isSparse(config, i) ? mixture(config, base) : base.mlp,
    norms: "before",
  }),
  names: llamaNamesBut({ routerBias: "mlp.moe_statics.e_score_correction_bias" }),
};

function interleaved(config: Fields, attention: HeadAttention): HeadAttention {
  expect(config, "use_bias", false);
  return { ...attention, interleaved: true };
}

/** Whether layer `i` is one of every `moe_layer_interval` from the first to the last mixture; -1 is the last layer. */
function isSparse(config: Fields, i: number): boolean {
  const index = (key: string, min: number) => integer(config, key, { min, max: MAX.layers });
  const last = index("moe_layer_end_index", -1);
  const within = i >= index("moe_layer_start_index", 0) && (last === -1 || i <= last);
  return within && (i + 1) % index("moe_layer_interval", 1) === 0;
}

function mixture(config: Fields, base: BaseLayer): MlpSpec {
  // transformers divides by at least this much. A sum of shares is not as small, so it is not computed here.
  expect(config, "moe_norm_min", 1e-12);
  const keys = { experts: "moe_num_experts", size: "moe_intermediate_size", chosen: "moe_k" };
  const experts = parseMixture(config, base, keys, { scores: "biased_softmax" });
  const shared = integer(config, "moe_num_shared_experts", { min: 0, max: 64 });
  if (shared === 0) return experts;
  return {
    ...experts,
    shared: { ...base.mlp, intermediateSize: shared * experts.intermediateSize },
  };
}
