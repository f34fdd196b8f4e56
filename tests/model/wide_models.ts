/** Models of random weights that are wide enough for rewrites of wide matrices, and small enough for a software adapter. */
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
};

/** Their names. */
export const WIDE_MODELS: readonly string[] = Object.keys(CONFIGS);

/** One of them, on no GPU yet. */
export async function openWide(name: string): Promise<OpenedModels> {
  const config = await Deno.makeTempFile({ prefix: "eyrie-test-", suffix: ".json" });
  await Deno.writeTextFile(config, JSON.stringify(CONFIGS[name]));
  try {
    return openRandomModels({ target: config });
  } finally {
    await Deno.remove(config);
  }
}
