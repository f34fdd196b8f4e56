/**
 * Models of random weights that are wide enough for rewrites of wide matrices, and small enough for a software adapter.
 */
import { openRandomModels } from "../../src/engine/load/random_models.ts";
import type { OpenedModels } from "../../src/engine/load/opened_models.ts";

const WIDE = {
  hidden_size: 512,
  intermediate_size: 2048,
  num_hidden_layers: 2,
  num_attention_heads: 8,
  num_key_value_heads: 4,
  head_dim: 64,
  vocab_size: 512,
  rms_norm_eps: 1e-6,
  max_position_embeddings: 512,
};

const EXPERTS = { num_experts: 8, num_experts_per_tok: 2, moe_intermediate_size: 256 };

const CONFIGS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  wide_llama: { ...WIDE, architectures: ["LlamaForCausalLM"], model_type: "llama" },
  wide_qwen3_moe: {
    ...WIDE,
    ...EXPERTS,
    architectures: ["Qwen3MoeForCausalLM"],
    model_type: "qwen3_moe",
  },
  wide_deepseek: {
    ...WIDE,
    architectures: ["DeepseekV2ForCausalLM"],
    model_type: "deepseek_v2",
    num_key_value_heads: 8,
    first_k_dense_replace: 0,
    kv_lora_rank: 64,
    q_lora_rank: null,
    qk_nope_head_dim: 32,
    qk_rope_head_dim: 32,
    v_head_dim: 32,
    n_routed_experts: 8,
    num_experts_per_tok: 2,
    moe_intermediate_size: 256,
    n_shared_experts: 2,
    topk_method: "greedy",
    scoring_func: "softmax",
  },
  // Values are wider than the part of keys that is not rotated.
  wide_glm: {
    ...WIDE,
    architectures: ["Glm4MoeLiteForCausalLM"],
    model_type: "glm4_moe_lite",
    num_attention_heads: 4,
    num_key_value_heads: 4,
    q_lora_rank: 256,
    kv_lora_rank: 512,
    qk_nope_head_dim: 192,
    qk_rope_head_dim: 64,
    v_head_dim: 256,
    n_routed_experts: 8,
    num_experts_per_tok: 2,
    moe_intermediate_size: 256,
  },
  wide_muse: {
    ...WIDE,
    architectures: ["MuseGlimmerForCausalLM"],
    model_type: "muse_glimmer_text",
    sliding_window: 16,
    output_multiplier: 0.5,
    final_logit_softcapping: 20,
  },
  wide_gpt_oss: {
    ...WIDE,
    intermediate_size: 256,
    num_local_experts: 8,
    num_experts_per_tok: 2,
    sliding_window: 16,
    architectures: ["GptOssForCausalLM"],
    model_type: "gpt_oss",
    quantization_config: { quant_method: "mxfp4" },
  },
  wide_ministral: {
    ...WIDE,
    architectures: ["Ministral3ForCausalLM"],
    model_type: "ministral3",
    rope_parameters: {
      rope_type: "default",
      rope_theta: 10_000,
      llama_4_scaling_beta: 0.1,
      original_max_position_embeddings: 2,
    },
  },
  // All that the sizes have, in one.
  wide_gemma4: {
    ...WIDE,
    architectures: ["Gemma4ForCausalLM"],
    model_type: "gemma4_text",
    num_hidden_layers: 4,
    layer_types: ["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
    global_head_dim: 128,
    num_global_key_value_heads: 2,
    attention_k_eq_v: true,
    num_kv_shared_layers: 2,
    use_double_wide_mlp: true,
    sliding_window: 16,
    hidden_size_per_layer_input: 64,
    vocab_size_per_layer_input: 512,
    enable_moe_block: true,
    num_experts: 8,
    top_k_experts: 2,
    moe_intermediate_size: 256,
    final_logit_softcapping: 30,
  },
};

/** Their names. */
export const WIDE_MODELS: readonly string[] = Object.keys(CONFIGS);

/**
 * One of them, on no GPU yet.
 *
 * @param sizes replace those of the config.
 */
export async function openWide(
  name: string,
  sizes: Readonly<Record<string, number>> = {},
): Promise<OpenedModels> {
  const config = await Deno.makeTempFile({ prefix: "eyrie-test-", suffix: ".json" });
  await Deno.writeTextFile(config, JSON.stringify({ ...CONFIGS[name], ...sizes }));
  try {
    return openRandomModels({ target: config });
  } finally {
    await Deno.remove(config);
  }
}
