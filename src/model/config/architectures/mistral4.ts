import { MAX, size } from "../decoder_config.ts";
import { expect, type Fields, flag, positive, unusable, value } from "../../files/fields.ts";
import type { LatentAttention, MlpSpec } from "../layer_config.ts";
import { parseRope, type Rope, ropeFields } from "../rope_config.ts";
import type { BaseLayer, Family } from "../types.ts";
import { groups, parseLatent, parseMlp, ropeDim } from "./deepseek.ts";
import { queryScale, withRope, WRAPPERS } from "./mistral.ts";

/**
 * Mistral Small 4: latent attention and experts as DeepSeek has them, chosen by softmax; queries grow with their
 * position as Ministral 3's do.
 */
export const MISTRAL4: Family = {
  architecture: "Mistral4ForCausalLM",
  modelType: "mistral4",
  partialRope: true,
  wrappers: WRAPPERS,
  // As transformers' Mistral4Config: configs with images leave out what equals it.
  defaults: {
    // These models have no head_dim, and it is not used: heads have three sizes of their own.
    head_dim: 128,
    vocab_size: 131_072,
    hidden_size: 4096,
    intermediate_size: 12_288,
    moe_intermediate_size: 2048,
    num_hidden_layers: 36,
    num_attention_heads: 32,
    n_shared_experts: 1,
    n_routed_experts: 128,
    routed_scaling_factor: 1,
    kv_lora_rank: 256,
    q_lora_rank: 1024,
    qk_rope_head_dim: 64,
    qk_nope_head_dim: 64,
    v_head_dim: 128,
    n_group: 1,
    topk_group: 1,
    num_experts_per_tok: 4,
    first_k_dense_replace: 0,
    norm_topk_prob: true,
    max_position_embeddings: 1_048_576,
    rms_norm_eps: 1e-6,
  },
  ropes: (config) => [parseTurned(withRope(config, ROPE))],
  layer: (config, base, i) => ({
    attention: parseAttention(withRope(config, ROPE), base),
    mlp: parseExperts(config, base, i),
    norms: "before",
  }),
};

/** What transformers assumes where config.json has no rope. */
const ROPE = {
  rope_type: "yarn",
  rope_theta: 10_000,
  factor: 128,
  original_max_position_embeddings: 8192,
  beta_fast: 32,
  beta_slow: 1,
  mscale: 1,
  mscale_all_dim: 1,
  llama_4_scaling_beta: 0.1,
};

/** If the rope has a `partial_rotary_factor`, it is `qk_rope_head_dim` as a fraction of the whole head. */
function parseTurned(config: Fields): Rope {
  const width = ropeDim(config);
  const head = size(config, "qk_nope_head_dim", MAX.headDim) + width;
  const inside = ropeFields(config);
  const isPart = inside && value(inside, "partial_rotary_factor") !== undefined;
  const rope = parseRope(config, isPart ? head : width);
  if (rope.width === width) return rope;
  throw unusable(config, `has a rope of ${rope.width} elements, but qk_rope_head_dim ${width}`);
}

function parseAttention(config: Fields, base: BaseLayer): LatentAttention {
  return {
    ...parseLatent(config, base, flag(config, "rope_interleave", true)),
    ...queryScale(config),
  };
}

function parseExperts(config: Fields, base: BaseLayer, i: number): MlpSpec {
  return parseMlp(config, base, i, () => {
    expect(config, "scoring_func", "softmax");
    return {
      ...groups(config),
      groupBest: 2,
      normalize: flag(config, "norm_topk_prob", true),
      scale: positive(config, "routed_scaling_factor"),
    };
  });
}
