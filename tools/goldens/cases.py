"""The golden checkpoints: for each a config.json in the published style, and the parts of it that must matter.

`config` is written as config.json word for word, in the style found on the Hugging Face hub
(transformers 4 names: rope_theta, rope_scaling, torch_dtype), so that a golden also tests the config
reader. Beside it, make_goldens.py writes config.v5.json, the same config as transformers saves it.

`ablations` name the features that the case tests. Each is a change of the config (a dict) or a regular
expression of tensors that are set to zero. make_goldens.py fails the case if a change does not show in
the logits, because then a wrong engine would pass too.
"""

from dataclasses import dataclass, field

VOCAB = 320
HIDDEN = 64
ORIGINAL = 32  # tokens, from which on the scaled ropes of the toy models scale


@dataclass(frozen=True)
class Case:
    name: str
    config: dict
    ablations: dict = field(default_factory=dict)
    embed_std: float = 0.5
    # Mean of the last norm's weights. Tied embeddings are small, or every token would predict itself. This
    # mean makes their logits wide enough again for soft caps and greedy margins to show.
    final_norm: float = 1.0
    # Prompts as (file stem, number of tokens, number of tokens that the greedy run begins with).
    prompts: tuple = (("expected", 24, 8),)
    # File stems whose greedy ids are left out, because transformers rotates all keys anew with every token.
    logits_only: tuple = ()

    @property
    def text(self) -> dict:
        """The fields of the text model."""
        return self.config.get("text_config", self.config)


SHORT = ("expected", 24, 8)  # 8 + 24 tokens never pass ORIGINAL
LONG = ("expected_long", 48, 40)  # always past it


def base(model_type: str, architecture: str, **more) -> dict:
    return {
        "architectures": [architecture],
        "model_type": model_type,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "hidden_act": "silu",
        "hidden_size": HIDDEN,
        "intermediate_size": 96,
        "max_position_embeddings": 512,
        "num_attention_heads": 4,
        "num_hidden_layers": 3,
        "num_key_value_heads": 2,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "use_cache": True,
        "vocab_size": VOCAB,
        **more,
    }


def llama(**more) -> dict:
    return base("llama", "LlamaForCausalLM", **more)


def factors(pairs: int, first: float, last: float) -> list:
    """`pairs` numbers that grow from first to last, as published long and short factors do."""
    return [round(first + (last - first) * i / (pairs - 1), 3) for i in range(pairs)]


def longrope(pairs: int, **more) -> dict:
    return {
        "long_factor": factors(pairs, 1.1, 9.0),
        "short_factor": factors(pairs, 1.0, 1.6),
        **more,
    }


NO_SCALING = {"rope_scaling": None}

LLAMAS = [
    Case("llama2", llama(num_key_value_heads=4)),
    Case("llama3_plain", llama(rope_theta=500000.0, num_attention_heads=8, head_dim=16,
                               tie_word_embeddings=True),
         {"theta": {"rope_theta": 10000.0}}, embed_std=0.25),
    Case("llama31", llama(rope_theta=500000.0, head_dim=32, num_hidden_layers=2, rope_scaling={
        "factor": 8.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
        "original_max_position_embeddings": ORIGINAL, "rope_type": "llama3"}),
        {"scaling": NO_SCALING}),
    Case("llama_linear", llama(rope_scaling={"type": "linear", "factor": 4.0}),
         {"scaling": NO_SCALING}, prompts=(SHORT, LONG)),
    Case("llama_dynamic", llama(max_position_embeddings=ORIGINAL,
                                rope_scaling={"type": "dynamic", "factor": 4.0}),
         {"scaling": NO_SCALING}, prompts=(SHORT, LONG), logits_only=("expected_long",)),
    Case("llama_yarn", llama(head_dim=32, num_hidden_layers=2, max_position_embeddings=4 * ORIGINAL,
                             rope_scaling={"rope_type": "yarn", "factor": 4.0,
                                           "original_max_position_embeddings": ORIGINAL}),
         {"scaling": NO_SCALING,
          "attention factor": {"rope_scaling": {
              "rope_type": "yarn", "factor": 4.0, "attention_factor": 1.0,
              "original_max_position_embeddings": ORIGINAL}}}, prompts=(SHORT, LONG)),
    Case("llama_longrope", llama(max_position_embeddings=4 * ORIGINAL, rope_scaling=longrope(
        8, rope_type="longrope", factor=4.0, original_max_position_embeddings=ORIGINAL)),
        {"scaling": NO_SCALING}, prompts=(SHORT, LONG)),
]

DENSE = [
    # Heads wider than hidden / heads (Mistral-Nemo), a window smaller than the prompt.
    Case("mistral", base("mistral", "MistralForCausalLM", hidden_size=48, num_attention_heads=6,
                         head_dim=16, sliding_window=8, rope_theta=1000000.0),
         {"window": {"sliding_window": None}, "window + 1": {"sliding_window": 9}}),
    Case("qwen2", base("qwen2", "Qwen2ForCausalLM", rope_theta=1000000.0, rms_norm_eps=1e-6,
                       tie_word_embeddings=True, use_sliding_window=False, sliding_window=32768,
                       max_window_layers=3),
         {"q bias": r"q_proj\.bias", "k bias": r"k_proj\.bias", "v bias": r"v_proj\.bias"},
         embed_std=0.25),
    # As Qwen2 with use_sliding_window: the layers from max_window_layers on have the window.
    Case("qwen2_window", base("qwen2", "Qwen2ForCausalLM", rope_theta=1000000.0, rms_norm_eps=1e-6,
                              use_sliding_window=True, sliding_window=8, max_window_layers=1),
         {"window": {"use_sliding_window": False}, "all layers": {"max_window_layers": 0}}),
    Case("qwen3_untied", base("qwen3", "Qwen3ForCausalLM", rope_theta=1000000.0, rms_norm_eps=1e-6,
                       num_attention_heads=8, head_dim=32, num_hidden_layers=2,
                       attention_bias=False)),
    Case("phi3", base("phi3", "Phi3ForCausalLM", num_key_value_heads=4, pad_token_id=2, sliding_window=20,
                      max_position_embeddings=4 * ORIGINAL, attention_bias=False,
                      original_max_position_embeddings=ORIGINAL,
                      rope_scaling=longrope(8, type="longrope")),
         {"scaling": NO_SCALING, "window": {"sliding_window": None}}, prompts=(SHORT, LONG)),
    # Phi-4-mini: rope on three quarters of each head, grouped heads, tied embeddings.
    Case("phi4_mini", base("phi3", "Phi3ForCausalLM", hidden_size=128, pad_token_id=2, num_hidden_layers=2,
                           max_position_embeddings=4 * ORIGINAL, partial_rotary_factor=0.75,
                           original_max_position_embeddings=ORIGINAL, sliding_window=262144,
                           tie_word_embeddings=True,
                           rope_scaling=longrope(12, type="longrope")),
         {"scaling": NO_SCALING}, embed_std=0.08, final_norm=2.0, prompts=(SHORT, LONG)),
    Case("olmo2", base("olmo2", "Olmo2ForCausalLM", rope_theta=500000.0, rms_norm_eps=1e-6,
                       attention_bias=False)),
]

GEMMA = {"hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh",
         "head_dim": 32, "query_pre_attn_scalar": 24, "rms_norm_eps": 1e-6, "sliding_window": 8,
         "tie_word_embeddings": True, "bos_token_id": 2}

GEMMAS = [
    # hidden 48: sqrt(48) is no power of two, as in the published sizes.
    Case("gemma2", base("gemma2", "Gemma2ForCausalLM", **GEMMA | {
        "hidden_size": 48, "num_hidden_layers": 4, "attn_logit_softcapping": 4.0,
        "final_logit_softcapping": 6.0}),
        {"attention cap": {"attn_logit_softcapping": None},
         "final cap": {"final_logit_softcapping": None},
         "window": {"sliding_window": 64},
         "activation": {"hidden_activation": "gelu"},
         "scale": {"query_pre_attn_scalar": 32}}, embed_std=0.08, final_norm=4.0),
    Case("gemma3", base("gemma3_text", "Gemma3ForCausalLM", **GEMMA | {
        "num_hidden_layers": 7, "num_attention_heads": 2, "num_key_value_heads": 1,
        "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0, "sliding_window_pattern": 6,
        "attn_logit_softcapping": None, "final_logit_softcapping": None,
        "rope_scaling": {"factor": 8.0, "rope_type": "linear"}}),
        {"window": {"sliding_window": 64},
         "pattern": {"sliding_window_pattern": 5},
         "local base": {"rope_local_base_freq": 500.0},
         "global base": {"rope_theta": 10000.0},
         "activation": {"hidden_activation": "gelu"},
         "scaling": NO_SCALING,
         "scale": {"query_pre_attn_scalar": 32}}, embed_std=0.06, final_norm=5.0),
]

MIXTURES = [
    Case("mixtral", base("mixtral", "MixtralForCausalLM", num_hidden_layers=2, intermediate_size=64,
                         num_local_experts=6, num_experts_per_tok=2, rope_theta=1000000.0,
                         sliding_window=None, router_aux_loss_coef=0.02,
                         output_router_logits=False),
         {"experts": {"num_experts_per_tok": 1}}),
    Case("qwen3_moe", base("qwen3_moe", "Qwen3MoeForCausalLM", head_dim=32, moe_intermediate_size=32,
                           num_experts=8, num_experts_per_tok=3, norm_topk_prob=True,
                           decoder_sparse_step=1, mlp_only_layers=[1], rope_theta=1000000.0,
                           attention_bias=False, use_sliding_window=False, max_window_layers=3,
                           output_router_logits=False, router_aux_loss_coef=0.001,
                           rms_norm_eps=1e-6),
         {"norm": {"norm_topk_prob": False}, "experts": {"num_experts_per_tok": 2}}),
]

DEEPSEEK = {"attention_bias": False, "first_k_dense_replace": 1, "kv_lora_rank": 32,
            "moe_intermediate_size": 32, "moe_layer_freq": 1, "num_key_value_heads": 4,
            "qk_nope_head_dim": 24, "qk_rope_head_dim": 16, "v_head_dim": 16,
            "rms_norm_eps": 1e-6, "ep_size": 1}


def deepseek_yarn(mscale: float, mscale_all_dim: float) -> dict:
    return {"type": "yarn", "factor": 40, "mscale": mscale, "mscale_all_dim": mscale_all_dim,
            "beta_fast": 32, "beta_slow": 1, "original_max_position_embeddings": ORIGINAL}


def deepseek2(**more) -> dict:
    return base("deepseek_v2", "DeepseekV2ForCausalLM", **DEEPSEEK | {
        "n_shared_experts": 2, "norm_topk_prob": False, "scoring_func": "softmax", **more})


def deepseek3(**more) -> dict:
    return base("deepseek_v3", "DeepseekV3ForCausalLM", **DEEPSEEK | {
        "n_shared_experts": 1, "norm_topk_prob": True, "scoring_func": "sigmoid",
        "topk_method": "noaux_tc", **more})


MLA = [
    # DeepSeek-V2-Lite: no q_lora, greedy routing.
    Case("deepseek_v2_lite", deepseek2(
        q_lora_rank=None, n_routed_experts=8, num_experts_per_tok=3, topk_method="greedy",
        n_group=1, topk_group=1, routed_scaling_factor=1.0,
        max_position_embeddings=40 * ORIGINAL, rope_scaling=deepseek_yarn(0.707, 0.707)),
        {"scaling": NO_SCALING, "mscale": {"rope_scaling": deepseek_yarn(0.707, 1.5)},
         "experts": {"num_experts_per_tok": 2}, "shared": r"shared_experts\.down_proj"}),
    # DeepSeek-V2: q_lora, the best groups by their best expert, scaled weights.
    Case("deepseek_v2_groups", deepseek2(
        q_lora_rank=40, n_routed_experts=12, num_experts_per_tok=3,
        topk_method="group_limited_greedy", n_group=4, topk_group=2, routed_scaling_factor=4.0,
        max_position_embeddings=40 * ORIGINAL, rope_scaling=deepseek_yarn(1.0, 0.707)),
        {"groups": {"topk_group": 1}, "scaled": {"routed_scaling_factor": 1.0},
         "mscale": {"rope_scaling": deepseek_yarn(0.707, 0.707)}}),
    # DeepSeek-V3: sigmoid scores, a correction bias for the choice alone, groups by their best two.
    Case("deepseek_v3", deepseek3(
        q_lora_rank=40, n_routed_experts=9, num_experts_per_tok=4, n_group=3, topk_group=2,
        num_hidden_layers=2,
        routed_scaling_factor=2.5, num_nextn_predict_layers=1,
        max_position_embeddings=40 * ORIGINAL, rope_scaling=deepseek_yarn(1.0, 1.0)),
        {"groups": {"topk_group": 1}, "norm": {"norm_topk_prob": False},
         "correction bias": r"e_score_correction_bias", "scaling": NO_SCALING,
         "mscale": {"rope_scaling": deepseek_yarn(1.0, 0.5)}}),
    # Moonlight and Kimi: DeepSeek-V3 without q_lora, groups and yarn.
    Case("deepseek_v3_plain", deepseek3(
        q_lora_rank=None, n_routed_experts=8, num_experts_per_tok=2, n_group=1, topk_group=1,
        routed_scaling_factor=2.446, n_shared_experts=2, num_nextn_predict_layers=0,
        rope_theta=50000.0, rope_scaling=None),
        {"correction bias": r"e_score_correction_bias", "norm": {"norm_topk_prob": False}}),
]

def mistral4_rope(**more) -> dict:
    return {"rope_type": "yarn", "type": "yarn", "rope_theta": 10000.0, "factor": 16.0,
            "original_max_position_embeddings": ORIGINAL, "beta_fast": 32.0, "beta_slow": 1.0,
            "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.5, **more}


LFM2_MOE = base("lfm2_moe", "Lfm2MoeForCausalLM", num_hidden_layers=4, norm_eps=1e-5, conv_bias=False,
                conv_L_cache=3, layer_types=["conv", "full_attention", "conv", "full_attention"],
                num_dense_layers=1, num_experts=8, num_experts_per_tok=3, moe_intermediate_size=32,
                use_expert_bias=True, norm_topk_prob=True, routed_scaling_factor=1.5)
del LFM2_MOE["rms_norm_eps"]

# Experts are in two groups, unlike in the published model.
MISTRAL4 = base(
    "mistral4", "Mistral4ForCausalLM", num_key_value_heads=4, moe_intermediate_size=32,
    n_routed_experts=8, n_shared_experts=1, num_experts_per_tok=3, n_group=2, topk_group=1,
    first_k_dense_replace=1, norm_topk_prob=True, routed_scaling_factor=1.5, q_lora_rank=40,
    kv_lora_rank=32, qk_nope_head_dim=16, qk_rope_head_dim=16, v_head_dim=24,
    rope_interleave=True, attention_bias=False, max_position_embeddings=16 * ORIGINAL,
    rope_parameters=mistral4_rope())
del MISTRAL4["rope_theta"]

MUSE_TEXT = {
    "model_type": "muse_glimmer_text", "bos_token_id": 0, "eos_token_id": 1, "vocab_size": VOCAB,
    "hidden_size": HIDDEN, "intermediate_size": 96, "num_hidden_layers": 5, "head_dim": 32,
    "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_activation": "silu",
    "rms_norm_eps": 1e-5, "post_norm_eps": 0.05, "sliding_window": 8, "qk_scale_factor": 3.87,
    "output_multiplier": 0.5, "final_logit_softcapping": 2.5, "max_position_embeddings": 512,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
    "tie_word_embeddings": False,
}


def muse(**more) -> dict:
    """The text model with the smallest possible vision tower, whose tensors are not saved."""
    return {"architectures": ["MuseGlimmerForConditionalGeneration"], "model_type": "muse_glimmer",
            "bos_token_id": 0, "eos_token_id": 1, "image_token_id": 2, "video_token_id": 3,
            "tie_word_embeddings": False, "torch_dtype": "bfloat16",
            "out_hidden_size": 128, "projector_hidden_size": 32,
            "vision_config": {"model_type": "muse_glimmer_vision", "hidden_size": 32,
                              "intermediate_size": 32, "num_attention_heads": 2,
                              "num_hidden_layers": 1, "pos_emb_height": 4, "pos_emb_width": 4,
                              "max_position_embeddings": 16},
            "text_config": MUSE_TEXT | more}


def laguna_rope(**full) -> dict:
    return {"full_attention": {"rope_type": "yarn", "rope_theta": 500000.0, "factor": 4.0, "beta_fast": 32.0,
                               "beta_slow": 1.0, "original_max_position_embeddings": ORIGINAL,
                               "attention_factor": 1.2, "partial_rotary_factor": 0.5, **full},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 1.0}}


# The router's soft cap is not used by the published models.
LAGUNA = base("laguna", "LagunaForCausalLM", num_hidden_layers=4, head_dim=32, attention_bias=False, gating="per-head",
              num_attention_heads_per_layer=[4, 8, 6, 8], sliding_window=8, max_position_embeddings=4 * ORIGINAL,
              layer_types=["full_attention", "sliding_attention", "full_attention", "sliding_attention"],
              mlp_layer_types=["dense", "sparse", "sparse", "sparse"], num_experts=8, num_experts_per_tok=3,
              moe_intermediate_size=32, shared_expert_intermediate_size=48, moe_routed_scaling_factor=1.5,
              moe_router_logit_softcapping=1.5, rope_parameters=laguna_rope())
del LAGUNA["rope_theta"]


def hunyuan_rope(alpha: float) -> dict:
    return {"type": "dynamic", "alpha": alpha, "factor": 1.0, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0,
            "mscale_all_dim": 1.0}


# transformers 5.17.
MODELS_2026 = [
    Case("lfm2_moe", LFM2_MOE,
         {"experts": {"num_experts_per_tok": 2}, "norm": {"norm_topk_prob": False},
          "scaled": {"routed_scaling_factor": 1.0}, "expert bias": r"expert_bias"}),
    # Queries grow past ORIGINAL.
    Case("mistral4", MISTRAL4,
        {"scaling": {"rope_parameters": mistral4_rope(factor=4.0)},
         "query scale": {"rope_parameters": mistral4_rope(llama_4_scaling_beta=0.0)},
         "groups": {"topk_group": 2}, "norm": {"norm_topk_prob": False},
         "experts": {"num_experts_per_tok": 2}, "shared": r"shared_experts\.down_proj"},
        prompts=(SHORT, LONG)),
    Case("muse_glimmer", muse(),
         {"window": {"text_config": MUSE_TEXT | {"sliding_window": 9}},
          "scale": {"text_config": MUSE_TEXT | {"qk_scale_factor": 1.0}},
          "multiplier": {"text_config": MUSE_TEXT | {"output_multiplier": 0.4}},
          "cap": {"text_config": MUSE_TEXT | {"final_logit_softcapping": 5.0}},
          "post norms": {"text_config": MUSE_TEXT | {"post_norm_eps": 1e-5}},
          "rotated": {"text_config": MUSE_TEXT | {"layer_rope_theta": [10000.0] * 5}},
          "gate": r"self_attn\.gate_proj"},
         # Its text contains ids of images and videos, for which transformers uses other embeddings.
         logits_only=("expected",)),
    Case("laguna", LAGUNA,
         {"window": {"sliding_window": 9}, "experts": {"num_experts_per_tok": 2},
          "scaled": {"moe_routed_scaling_factor": 1.0}, "router cap": {"moe_router_logit_softcapping": 0.0},
          "rope": {"rope_parameters": laguna_rope(partial_rotary_factor=1.0)},
          "expert bias": r"e_score_correction_bias", "shared": r"shared_experts\.down_proj",
          "gate": r"self_attn\.g_proj"},
         prompts=(SHORT, LONG)),
    # Poolside's other gate, of each number of the output, and heads as many in every layer.
    Case("laguna_element", LAGUNA | {"gating": "per-element", "num_hidden_layers": 3,
                                     "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
                                     "mlp_layer_types": ["sparse", "dense", "sparse"],
                                     "num_attention_heads_per_layer": None,
                                     "moe_router_logit_softcapping": 0.0},
         {"gate": r"self_attn\.g_proj"}),
    Case("ernie4_5", base("ernie4_5", "Ernie4_5ForCausalLM", head_dim=32, use_bias=False,
                          rope_theta=500000.0, tie_word_embeddings=True),
         {"theta": {"rope_theta": 10000.0}}, embed_std=0.25),
    Case("ernie4_5_moe", base("ernie4_5_moe", "Ernie4_5_MoeForCausalLM", num_hidden_layers=4, use_bias=False,
                              rope_theta=500000.0, tie_word_embeddings=True, moe_intermediate_size=32, moe_k=3,
                              moe_num_experts=8, moe_num_shared_experts=2, moe_layer_start_index=1,
                              moe_layer_end_index=3, moe_layer_interval=1, moe_use_aux_free=True),
         {"experts": {"moe_k": 2}, "expert bias": r"e_score_correction_bias",
          "shared": r"shared_experts\.down_proj"}, embed_std=0.25),
    # Norms of q and k behind rope, and a rope of type dynamic whose base is larger at every length.
    Case("hunyuan_dense", base("hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM", head_dim=32, attention_bias=False,
                               use_qk_norm=True, tie_word_embeddings=True, rope_scaling=hunyuan_rope(1000.0)),
         {"alpha": {"rope_scaling": hunyuan_rope(10.0)}}, embed_std=0.25, prompts=(SHORT, LONG)),
    Case("granite_swa", base("granite_swa", "GraniteSWAForCausalLM", num_hidden_layers=4, sliding_window=8,
                             embedding_multiplier=12.0, logits_scaling=2.0, residual_multiplier=0.3,
                             attention_multiplier=0.2, attention_bias=False, mlp_bias=False,
                             layer_rope_theta=[0, 10000.0, 10000.0, 500.0],
                             layer_types=["full_attention", *["sliding_attention"] * 3]),
         {"window": {"sliding_window": 9}, "rotated": {"layer_rope_theta": [10000.0] * 4},
          "residual": {"residual_multiplier": 0.4}, "sinks": r"self_attn\.sinks"}),
]

CASES = [*LLAMAS, *DENSE, *GEMMAS, *MIXTURES, *MLA, *MODELS_2026]
