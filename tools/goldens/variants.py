"""Tiny random checkpoints of configurations that the goldens do not have: python tools/goldens/variants.py OUT SEED WIDER

Run on a GPU with transformers 5.17. WIDER is 1 for a hidden size of 96 and heads of 48, 0 for 64 and 32. For each OUT/NAME
gets the checkpoint in bf16, expected.safetensors with what transformers computes of it in float32, and cast.safetensors
with the logits of the model that was cast to bf16 and back, which torch's Module.to does to buffers too: rope's
frequencies and Gemma's embedding scale.
"""

import os
import sys

import torch
import transformers
from safetensors.torch import save_file

OUT, SEED, WIDER = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
WIDTH, VOCAB, TOKENS = (96, 384, 70) if WIDER else (64, 320, 70)

ROPE = {"rope_type": "default", "rope_theta": 10000.0}
MROPE = {"mrope_section": [2, 1, 1], "mrope_interleaved": True}
BASE = dict(
    vocab_size=VOCAB, hidden_size=WIDTH, intermediate_size=2 * WIDTH, max_position_embeddings=512, rms_norm_eps=1e-6,
    pad_token_id=0, bos_token_id=1, eos_token_id=2,
)
HEADS = dict(num_attention_heads=4, num_key_value_heads=2)
WIDE = dict(**HEADS, head_dim=48 if WIDER else 32)
LATENT = dict(
    num_attention_heads=4, num_key_value_heads=4, num_hidden_layers=3, moe_intermediate_size=32, q_lora_rank=32,
    kv_lora_rank=32, qk_rope_head_dim=16, qk_nope_head_dim=32, v_head_dim=32, n_routed_experts=8, n_shared_experts=1,
    num_experts_per_tok=3,
)
DELTA = dict(
    linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=32, linear_value_head_dim=32,
    linear_conv_kernel_dim=4, num_hidden_layers=4, layer_types=["linear_attention"] * 3 + ["full_attention"],
    rope_parameters={**ROPE, "partial_rotary_factor": 0.25, **MROPE},
)
MIXTURE = dict(num_experts=8, num_experts_per_tok=3, moe_intermediate_size=32)
WINDOWS = ["sliding_attention", "sliding_attention", "full_attention"]

# Names of the config and of the model in transformers, and the fields that variants change.
FAMILIES = {
    "qwen3_5": ("Qwen3_5TextConfig", "Qwen3_5ForCausalLM", {**BASE, **WIDE, **DELTA, "tie_word_embeddings": False}),
    "qwen3_5_moe": (
        "Qwen3_5MoeTextConfig", "Qwen3_5MoeForCausalLM",
        {**BASE, **WIDE, **DELTA, **MIXTURE, "shared_expert_intermediate_size": 64, "tie_word_embeddings": True},
    ),
    "qwen3_next": (
        "Qwen3NextConfig", "Qwen3NextForCausalLM",
        {**BASE, **WIDE, **DELTA, **MIXTURE, "shared_expert_intermediate_size": 32, "decoder_sparse_step": 1,
         "mlp_only_layers": [], "rope_parameters": {**ROPE, "partial_rotary_factor": 0.25},
         "tie_word_embeddings": False},
    ),
    "gemma4": (
        "Gemma4TextConfig", "Gemma4ForCausalLM",
        {**BASE, **HEADS, "head_dim": 32, "global_head_dim": 64, "sliding_window": 16, "final_logit_softcapping": 30.0,
         "rope_parameters": {
             "sliding_attention": ROPE,
             "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1000000.0},
         },
         "tie_word_embeddings": True, "num_hidden_layers": 6, "layer_types": WINDOWS * 2, "num_kv_shared_layers": 0,
         "hidden_size_per_layer_input": 0},
    ),
    "gpt_oss": (
        "GptOssConfig", "GptOssForCausalLM",
        {**{k: v for k, v in BASE.items() if k != "bos_token_id"}, **HEADS, "intermediate_size": WIDTH,
         "num_hidden_layers": 4, "head_dim": 32, "sliding_window": 16,
         "layer_types": ["sliding_attention", "full_attention"] * 2, "num_local_experts": 8, "num_experts_per_tok": 3,
         "rms_norm_eps": 1e-5, "tie_word_embeddings": False,
         "rope_parameters": {
             "rope_type": "yarn", "rope_theta": 150000.0, "factor": 4.0, "beta_fast": 32.0, "beta_slow": 1.0,
             "truncate": False, "original_max_position_embeddings": 128,
         }},
    ),
    "glm4_moe_lite": (
        "Glm4MoeLiteConfig", "Glm4MoeLiteForCausalLM",
        {**BASE, **LATENT, "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1, "routed_scaling_factor": 1.8,
         "norm_topk_prob": True, "rope_parameters": ROPE, "tie_word_embeddings": False},
    ),
    "mistral4": ("Mistral4Config", "Mistral4ForCausalLM", {**BASE, **LATENT, "first_k_dense_replace": 0}),
    "ministral3": (
        "Ministral3Config", "Ministral3ForCausalLM",
        {**BASE, **WIDE, "num_hidden_layers": 3, "tie_word_embeddings": True,
         "rope_parameters": {
             "rope_type": "yarn", "rope_theta": 1000000.0, "factor": 16.0, "original_max_position_embeddings": 32,
             "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1,
         }},
    ),
    "smollm3": ("SmolLM3Config", "SmolLM3ForCausalLM", {**BASE, **HEADS, "rope_parameters": ROPE}),
    "olmo3": (
        "Olmo3Config", "Olmo3ForCausalLM",
        {**BASE, **HEADS, "num_hidden_layers": 4, "layer_types": ["sliding_attention"] * 3 + ["full_attention"],
         "sliding_window": 16, "tie_word_embeddings": False},
    ),
    "granite": ("GraniteConfig", "GraniteForCausalLM", {**BASE, **HEADS, "num_hidden_layers": 3, "rope_parameters": ROPE}),
    "seed_oss": ("SeedOssConfig", "SeedOssForCausalLM", {**BASE, **WIDE, "num_hidden_layers": 3, "rope_parameters": ROPE}),
    "exaone4": ("Exaone4Config", "Exaone4ForCausalLM", {**BASE, **HEADS, "rope_parameters": ROPE}),
    "lfm2": (
        "Lfm2Config", "Lfm2ForCausalLM",
        {**{k: v for k, v in BASE.items() if k != "rms_norm_eps"}, **HEADS, "num_hidden_layers": 4,
         "rope_parameters": ROPE},
    ),
    "lfm2_moe": (
        "Lfm2MoeConfig", "Lfm2MoeForCausalLM",
        {**{k: v for k, v in BASE.items() if k != "rms_norm_eps"}, **HEADS, "num_hidden_layers": 4,
         "rope_parameters": ROPE},
    ),
    "laguna": (
        "LagunaConfig", "LagunaForCausalLM",
        {**BASE, **WIDE, **MIXTURE, "num_hidden_layers": 4, "gating": "per-head", "sliding_window": 16,
         "layer_types": ["full_attention", "sliding_attention"] * 2, "mlp_layer_types": ["dense"] + ["sparse"] * 3,
         "num_attention_heads_per_layer": [4, 8, 4, 8], "shared_expert_intermediate_size": 48,
         "moe_routed_scaling_factor": 1.5, "moe_router_logit_softcapping": 0.0,
         "rope_parameters": {"full_attention": {**ROPE, "partial_rotary_factor": 0.5}, "sliding_attention": ROPE},
         "tie_word_embeddings": False},
    ),
    "ernie4_5": (
        "Ernie4_5Config", "Ernie4_5ForCausalLM",
        {**BASE, **WIDE, "num_hidden_layers": 3, "use_bias": False, "rope_parameters": ROPE},
    ),
    "ernie4_5_moe": (
        "Ernie4_5_MoeConfig", "Ernie4_5_MoeForCausalLM",
        {**BASE, **HEADS, "num_hidden_layers": 4, "use_bias": False, "rope_parameters": ROPE, "moe_k": 3,
         "moe_intermediate_size": 32, "moe_num_experts": 8, "moe_num_shared_experts": 1, "moe_layer_start_index": 1,
         "moe_layer_end_index": 3, "moe_layer_interval": 1},
    ),
    "hunyuan": (
        "HunYuanDenseV1Config", "HunYuanDenseV1ForCausalLM",
        {**BASE, **WIDE, "num_hidden_layers": 3, "rope_parameters": ROPE, "tie_word_embeddings": False},
    ),
    "granite_swa": (
        "GraniteSWAConfig", "GraniteSWAForCausalLM",
        {**BASE, **HEADS, "num_hidden_layers": 4, "sliding_window": 16, "rope_parameters": ROPE,
         "layer_rope_theta": [0, 10000.0, 10000.0, 500.0], "tie_word_embeddings": False},
    ),
    "llama": ("LlamaConfig", "LlamaForCausalLM", {**BASE, **WIDE, "num_hidden_layers": 3, "rope_parameters": ROPE}),
    "qwen3": ("Qwen3Config", "Qwen3ForCausalLM", {**BASE, **WIDE, "num_hidden_layers": 3, "rope_parameters": ROPE}),
    "qwen3_moe": (
        "Qwen3MoeConfig", "Qwen3MoeForCausalLM",
        {**BASE, **WIDE, **MIXTURE, "num_hidden_layers": 3, "rope_parameters": ROPE, "decoder_sparse_step": 1,
         "mlp_only_layers": [], "norm_topk_prob": True},
    ),
    "qwen2": ("Qwen2Config", "Qwen2ForCausalLM", {**BASE, **HEADS, "num_hidden_layers": 4, "rope_parameters": ROPE}),
    "gemma3": (
        "Gemma3TextConfig", "Gemma3ForCausalLM",
        {**BASE, **WIDE, "num_hidden_layers": 6, "sliding_window": 16, "query_pre_attn_scalar": 32,
         "layer_types": WINDOWS * 2,
         "rope_parameters": {"sliding_attention": ROPE, "full_attention": {**ROPE, "rope_theta": 1000000.0}}},
    ),
    "phi3": (
        "Phi3Config", "Phi3ForCausalLM",
        {**BASE, **HEADS, "num_hidden_layers": 3, "rope_parameters": {**ROPE, "partial_rotary_factor": 1.0}},
    ),
    "deepseek_v3": (
        "DeepseekV3Config", "DeepseekV3ForCausalLM",
        {**BASE, **LATENT, "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1, "routed_scaling_factor": 2.0,
         "norm_topk_prob": True, "rope_parameters": ROPE, "tie_word_embeddings": False},
    ),
}
# Families that add 1 to the weights of their norms.
ONE_ADDED = ("qwen3_5", "qwen3_next", "gemma3")
CONVS = ["conv", "conv", "full_attention", "conv"]

VARIANTS = {
    "qwen3_5_tied": ("qwen3_5", dict(tie_word_embeddings=True, linear_num_key_heads=4)),
    "qwen3_5_wide_heads": (
        "qwen3_5",
        dict(linear_num_key_heads=2, linear_num_value_heads=6, linear_value_head_dim=64, num_attention_heads=6,
             head_dim=64),
    ),
    "qwen3_5_half": (
        "qwen3_5",
        dict(rope_parameters={**ROPE, "partial_rotary_factor": 0.5, **MROPE, "mrope_section": [4, 2, 2]}),
    ),
    "qwen3_5_moe_tied": ("qwen3_5_moe", dict(num_experts=16, num_experts_per_tok=2, moe_intermediate_size=48)),
    "qwen3_next_dense_layers": ("qwen3_next", dict(mlp_only_layers=[1], norm_topk_prob=True)),
    "qwen3_next_nonorm": ("qwen3_next", dict(decoder_sparse_step=2, norm_topk_prob=False)),
    "gemma4_nokeq": ("gemma4", dict(attention_k_eq_v=False)),
    "gemma4_e_nodouble": (
        "gemma4",
        dict(num_kv_shared_layers=3, use_double_wide_mlp=False, hidden_size_per_layer_input=16,
             vocab_size_per_layer_input=VOCAB),
    ),
    "gemma4_e_double": (
        "gemma4",
        dict(num_kv_shared_layers=3, use_double_wide_mlp=True, hidden_size_per_layer_input=32,
             vocab_size_per_layer_input=VOCAB),
    ),
    "gemma4_e_noshare": ("gemma4", dict(hidden_size_per_layer_input=16, vocab_size_per_layer_input=VOCAB)),
    "gemma4_pat5": (
        "gemma4",
        dict(num_hidden_layers=6, layer_types=["sliding_attention"] * 5 + ["full_attention"], attention_k_eq_v=True,
             num_global_key_value_heads=2, final_logit_softcapping=None),
    ),
    "gemma4_moe_nokeq": (
        "gemma4",
        dict(num_hidden_layers=3, layer_types=WINDOWS, enable_moe_block=True, num_experts=16, top_k_experts=4,
             moe_intermediate_size=48),
    ),
    "gemma4_samehead": ("gemma4", dict(global_head_dim=32)),
    "gpt_oss_heads": (
        "gpt_oss",
        dict(num_attention_heads=8, num_key_value_heads=1, head_dim=64, num_local_experts=32, num_experts_per_tok=4),
    ),
    "gpt_oss_nobias_rope": ("gpt_oss", dict(attention_bias=False, rope_parameters=ROPE)),
    "gpt_oss_full": ("gpt_oss", dict(layer_types=["full_attention"] * 4)),
    "glm_groups": ("glm4_moe_lite", dict(n_group=4, topk_group=2)),
    "glm_noq": ("glm4_moe_lite", dict(q_lora_rank=None)),
    "glm_shared2": (
        "glm4_moe_lite",
        dict(n_shared_experts=2, norm_topk_prob=False, v_head_dim=48, qk_nope_head_dim=48, tie_word_embeddings=True),
    ),
    "ministral3_tied": ("ministral3", {}),
    "ministral3_window": ("ministral3", dict(sliding_window=16)),
    "smollm3_default": ("smollm3", dict(num_hidden_layers=5, tie_word_embeddings=False, no_rope_layer_interval=2)),
    "smollm3_window": (
        "smollm3",
        dict(num_hidden_layers=4, use_sliding_window=True, sliding_window=16,
             layer_types=["sliding_attention", "full_attention"] * 2),
    ),
    "olmo3_yarn": (
        "olmo3",
        dict(rope_parameters={
            "sliding_attention": ROPE,
            "full_attention": {
                "rope_type": "yarn", "rope_theta": 500000.0, "factor": 8.0, "original_max_position_embeddings": 32,
                "beta_fast": 32.0, "beta_slow": 1.0, "attention_factor": 1.2079,
            },
        }),
    ),
    "granite_untied": (
        "granite",
        dict(embedding_multiplier=6.0, attention_multiplier=0.015625, residual_multiplier=0.5, logits_scaling=4.0,
             tie_word_embeddings=False),
    ),
    "seed_outbias": ("seed_oss", dict(attention_bias=True, attention_out_bias=True, tie_word_embeddings=True)),
    "seed_mlpbias": (
        "seed_oss",
        dict(attention_bias=False, attention_out_bias=False, mlp_bias=True, tie_word_embeddings=False),
    ),
    "exaone4_full": (
        "exaone4",
        dict(num_hidden_layers=4, sliding_window=None, layer_types=["full_attention"] * 4, tie_word_embeddings=True,
             rope_parameters={
                 "rope_type": "llama3", "rope_theta": 1000000.0, "factor": 16.0, "low_freq_factor": 1.0,
                 "high_freq_factor": 4.0, "original_max_position_embeddings": 64,
             }),
    ),
    "exaone4_pattern": ("exaone4", dict(num_hidden_layers=6, sliding_window=16, sliding_window_pattern=4)),
    "lfm2_adjust": (
        "lfm2",
        dict(layer_types=["conv", "full_attention"] * 2, block_auto_adjust_ff_dim=True, block_multiple_of=16,
             block_ffn_dim_multiplier=1.0, conv_L_cache=4),
    ),
    "lfm2_bias": (
        "lfm2", dict(layer_types=CONVS, conv_bias=True, block_auto_adjust_ff_dim=False, tie_word_embeddings=False),
    ),
    "lfm2_moe": (
        "lfm2_moe",
        dict(layer_types=["conv", "full_attention"] * 2, moe_intermediate_size=32, num_experts=8,
             num_experts_per_tok=2, num_dense_layers=1, use_expert_bias=True, norm_topk_prob=True,
             routed_scaling_factor=1.0),
    ),
    "mistral4": ("mistral4", {}),
    "laguna_tied": ("laguna", dict(tie_word_embeddings=True, moe_router_logit_softcapping=2.0)),
    "laguna_element": (
        "laguna",
        dict(gating="per-element", num_attention_heads_per_layer=None, mlp_layer_types=["sparse", "dense"] * 2),
    ),
    "laguna_bias": ("laguna", dict(attention_bias=True, num_experts=16, num_experts_per_tok=1)),
    "ernie_untied": ("ernie4_5", dict(tie_word_embeddings=False, num_key_value_heads=4)),
    "ernie_heads": ("ernie4_5", dict(head_dim=16, num_attention_heads=8, num_key_value_heads=1, tie_word_embeddings=True)),
    "ernie_bias": ("ernie4_5", dict(use_bias=True)),
    "ernie_moe_every_other": (
        "ernie4_5_moe", dict(moe_layer_interval=2, moe_layer_start_index=0, moe_layer_end_index=-1, moe_k=1),
    ),
    "ernie_moe_no_shared": ("ernie4_5_moe", dict(moe_num_shared_experts=0, tie_word_embeddings=False)),
    "ernie_moe_some": ("ernie4_5_moe", dict(moe_layer_start_index=1, moe_layer_end_index=2, moe_num_shared_experts=2)),
    "hunyuan_plain": ("hunyuan", {}),
    "hunyuan_bias": ("hunyuan", dict(attention_bias=True, tie_word_embeddings=True)),
    "hunyuan_alpha": (
        "hunyuan",
        dict(num_key_value_heads=1,
             rope_parameters={"rope_type": "dynamic", "rope_theta": 10000.0, "alpha": 50.0, "factor": 1.0}),
    ),
    "granite_swa_default": ("granite_swa", dict(layer_rope_theta=None)),
    "granite_swa_multipliers": (
        "granite_swa",
        dict(embedding_multiplier=6.0, attention_multiplier=0.2, residual_multiplier=0.5, logits_scaling=4.0,
             num_hidden_layers=5, layer_rope_theta=[500.0] * 5, layer_types=["sliding_attention"] * 4 + ["full_attention"]),
    ),
    "llama_bias": ("llama", dict(attention_bias=True, tie_word_embeddings=True)),
    "llama_heads": ("llama", dict(num_attention_heads=2, num_key_value_heads=1, head_dim=80)),
    "qwen3_window": (
        "qwen3",
        dict(use_sliding_window=True, sliding_window=16, max_window_layers=1, num_hidden_layers=4, attention_bias=False),
    ),
    "qwen3_bias": ("qwen3", dict(attention_bias=True, tie_word_embeddings=True)),
    "qwen3_moe_sparse": ("qwen3_moe", dict(decoder_sparse_step=2, num_hidden_layers=4, norm_topk_prob=False)),
    "qwen3_moe_only": ("qwen3_moe", dict(mlp_only_layers=[0, 2], num_experts_per_tok=1)),
    "qwen2_window": ("qwen2", dict(use_sliding_window=True, sliding_window=16, max_window_layers=2)),
    "gemma3_pattern": ("gemma3", dict(num_hidden_layers=4, layer_types=["full_attention", "sliding_attention"] * 2)),
    "gemma3_linear": (
        "gemma3",
        dict(query_pre_attn_scalar=64, num_key_value_heads=1,
             rope_parameters={
                 "sliding_attention": ROPE,
                 "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1000000.0},
             }),
    ),
    "phi3_partial": ("phi3", dict(rope_parameters={**ROPE, "partial_rotary_factor": 0.75}, tie_word_embeddings=True)),
    "phi3_window": ("phi3", dict(sliding_window=16)),
    "deepseek_v3_interleaved": ("deepseek_v3", dict(rope_interleave=True, n_group=2, topk_group=1)),
    "deepseek_v3_halves": ("deepseek_v3", dict(rope_interleave=False, q_lora_rank=None, num_key_value_heads=4)),
}


@torch.no_grad()
def fill(model, family: str) -> None:
    """Draws weights. Norm weights are around 0 in families that add 1 to them."""
    for key, p in model.named_parameters():
        if p.dim() > 1:
            p.normal_(0, 0.12)
        elif key.endswith("A_log"):
            p.uniform_(0.0, 2.0)
        elif "norm" in key or key.endswith(("scale", "layer_scalar")):
            p.normal_(0.0 if family.startswith(ONE_ADDED) and "linear_attn.norm" not in key else 1.0, 0.2)
        else:
            p.normal_(0, 0.1)
    for key, buffer in model.named_buffers():
        if key.endswith("layer_scalar"):
            buffer.fill_(0.7)


@torch.no_grad()
def expect(model, ids) -> dict:
    found = model(input_ids=ids, output_hidden_states=True, use_cache=False)
    tensors = {"input_ids": ids[0].to(torch.int32), "logits": found.logits[0].float()}
    for i in (1, len(found.hidden_states) // 2):
        tensors[f"hidden_states.{i}"] = found.hidden_states[i][0].float()
    text = ids[:, :20]
    for _ in range(24):
        last = model(input_ids=text, use_cache=False).logits[:, -1]
        text = torch.cat([text, last.argmax(-1, keepdim=True)], 1)
    return {**tensors, "greedy_ids": text[0].to(torch.int32)}


def make(name: str, family: str, changes: dict) -> None:
    config, kind, fields = FAMILIES[family]
    torch.manual_seed(SEED + sum(map(ord, name)))
    loaded = getattr(transformers, kind)
    model = loaded(getattr(transformers, config)(**{**fields, **changes})).eval().float()
    fill(model, family)
    folder = f"{OUT}/{name}"
    os.makedirs(folder, exist_ok=True)
    model.to(torch.bfloat16).save_pretrained(folder)
    cast = model.float().cuda()
    cast.set_attn_implementation("eager")
    exact = loaded.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval().cuda()
    ids = torch.randint(3, VOCAB, (1, TOKENS)).cuda()
    with torch.no_grad():
        logits = cast(input_ids=ids, use_cache=False).logits[0].float()
    for file, tensors in (
        ("expected", expect(exact, ids)),
        ("cast", {"input_ids": ids[0].to(torch.int32), "logits": logits}),
    ):
        save_file({k: v.contiguous().cpu() for k, v in tensors.items()}, f"{folder}/{file}.safetensors")
    print(name, kind, flush=True)


def main() -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    for name, (family, changes) in VARIANTS.items():
        try:
            make(name, family, changes)
        except Exception as error:  # one that this transformers refuses must not stop the others
            print(name, "FAILED", type(error).__name__, error, flush=True)


if __name__ == "__main__":
    main()
