"""Random checkpoints at published widths with a few layers, and what transformers computes of them in float32:

    python tools/goldens/wide.py OUT gpt_oss_20b qwen35_9b ...
    eyrie check -m OUT/NAME --expected OUT/NAME/expected.safetensors

Run in the project's root, on a GPU. Names are files of lab/shapes. Vocabularies are cut to 8,192 tokens. Gemma 4 does
not scale its attention scores, so its norms of q and k get weights near d^(-1/4), which makes a score about 1. With
weights of 1 the model would amplify the rounding of float32 without a bound.
"""

import gc
import json
import os
import sys

import torch
import transformers
from safetensors.torch import save_file

VOCAB = 8192
LAYERS = {
    "gpt_oss_20b": 2,
    "qwen35_9b": 4,
    "qwen36_35b_a3b": 4,
    "gemma4_12b": 6,
    "gemma4_26b_a4b": 6,
    "gemma4_e2b": 10,
    "glm47_flash": 3,
}
UNREAD = {"architectures", "torch_dtype", "dtype", "quantization_config", "num_nextn_predict_layers", "mtp_num_hidden_layers"}


def config_of(name: str):
    with open(f"lab/shapes/{name}.json") as file:
        config = json.load(file)
    config = config.get("text_config", config)
    layers = LAYERS[name]
    if config.get("num_kv_shared_layers"):  # half of the layers have their own keys and values
        config["num_kv_shared_layers"] = layers // 2
        config["layer_types"] = config["layer_types"][: layers // 2] * 2
    for key in ("layer_types", "mlp_layer_types"):
        if config.get(key):
            config[key] = config[key][:layers]
    if "gemma4" in name:
        config["hidden_size_per_layer_input"] = config.get("hidden_size_per_layer_input") or 0
        config["model_type"] = "gemma4_text"
    if "rope_theta" in config:
        rope = {"rope_type": "default", "rope_theta": config.pop("rope_theta")}
        config["rope_parameters"] = {**rope, **config.pop("rope_scaling", {})}
    if config.get("vocab_size_per_layer_input"):
        config["vocab_size_per_layer_input"] = VOCAB
    config |= {"num_hidden_layers": layers, "vocab_size": VOCAB, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    known = {k: v for k, v in config.items() if v is not None and k not in UNREAD}
    return transformers.AutoConfig.for_model(**known)


@torch.no_grad()
def fill(model, name: str) -> None:
    """Draws weights, each rounded to a number that bf16 holds."""
    for key, p in model.named_parameters():
        if p.dim() > 1:
            p.normal_(0, p.shape[-1] ** -0.5)
        elif key.endswith(("q_norm.weight", "k_norm.weight")) and "gemma4" in name:
            p.normal_(1.0, 0.1).mul_(p.shape[0] ** -0.25)
        elif key.endswith("A_log"):
            p.uniform_(0.0, 2.0)
        elif "norm" in key or key.endswith("scale"):
            p.normal_(0.0 if "qwen3" in name and "linear_attn.norm" not in key else 1.0, 0.1)
        else:
            p.normal_(0, 0.1)
        p.copy_(p.to(torch.bfloat16).float())
    for key, buffer in model.named_buffers():
        if key.endswith("layer_scalar"):
            buffer.fill_(0.75)


@torch.no_grad()
def expect(model) -> dict:
    ids = torch.randint(3, VOCAB, (1, 96)).cuda()
    logits = model(input_ids=ids, use_cache=False).logits[0].float()
    text = ids[:, :20]
    for _ in range(12):
        last = model(input_ids=text, use_cache=False).logits[:, -1]
        text = torch.cat([text, last.argmax(-1, keepdim=True)], 1)
    found = {"input_ids": ids[0].to(torch.int32), "logits": logits, "greedy_ids": text[0].to(torch.int32)}
    return {k: v.contiguous().cpu() for k, v in found.items()}


torch.backends.cuda.matmul.allow_tf32 = False
out, *names = sys.argv[1:]
for name in names:
    torch.manual_seed(5)
    with torch.device("cuda"):
        model = transformers.AutoModelForCausalLM.from_config(
            config_of(name), attn_implementation="eager", dtype=torch.float32
        ).eval()
    fill(model, name)
    expected = expect(model)
    folder = f"{out}/{name}"
    os.makedirs(folder, exist_ok=True)
    model.to(torch.bfloat16).save_pretrained(folder)
    save_file(expected, f"{folder}/expected.safetensors")
    print(name, type(model).__name__, "logits vary by", round(expected["logits"].std().item(), 3), flush=True)
    del model
    gc.collect()
    torch.cuda.empty_cache()
