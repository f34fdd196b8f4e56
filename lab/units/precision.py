"""Errors of logits against float32, in standard deviations of the logits. Two kinds of inference are measured: bf16, as
PyTorch computes it, and float32 whose matmuls read x as one f16 number with a power of two for each row
(`--precision f16`), or as bytes with one step for every eight numbers (q8 and q4; weights are not quantized here).

python3 lab/units/precision.py GOLDEN...   checkpoints with input_ids and logits of float32
python3 lab/units/precision.py             random weights of Llama-3.1-8B's shape
"""
import sys
import torch
from transformers import AutoConfig, AutoModelForCausalLM, LlamaConfig
from safetensors.torch import load_file

torch.backends.cuda.matmul.allow_tf32 = False
device = "cuda" if torch.cuda.is_available() else "cpu"


def as_f16(module, inputs):
    (x,) = inputs
    peak = x.abs().amax(-1, keepdim=True).clamp_min(2.0**-60)
    scale = torch.exp2(14 - torch.floor(torch.log2(peak)))
    return ((x * scale).to(torch.float16).to(x.dtype) / scale,)


def as_bytes(module, inputs):
    (x,) = inputs
    eights = x.reshape(*x.shape[:-1], -1, 8)
    peak = eights.abs().amax(-1, keepdim=True).clamp_min(2.0**-67)
    above = peak + torch.exp2(torch.floor(torch.log2(peak)) - 7)
    quarter = torch.exp2(torch.floor(torch.log2(above)) - 2)
    step = quarter * (torch.floor(above / quarter) + 1) / 128
    return (((eights / step).round() * step).reshape(x.shape),)


def error(found, expected):
    return ((found.float() - expected).abs().max() / expected.std()).item(), (
        (found.float() - expected).pow(2).mean().sqrt() / expected.std()
    ).item()


def line(name, found, expected):
    worst, mean = error(found, expected)
    print(f"{name:40} largest {worst:.2e}  root mean square {mean:.2e}", flush=True)


def hooked(model, hook):
    hooks = [
        each.register_forward_pre_hook(hook)
        for each in model.modules()
        if isinstance(each, torch.nn.Linear)
    ]
    return lambda: [hook.remove() for hook in hooks]


@torch.no_grad()
def compare(name, model, ids, expected=None):
    model = model.float().to(device).eval()
    plain = model(ids).logits.float()
    if expected is not None:
        line(f"{name} float32, this machine", plain, expected.to(device))
    expected = plain
    for what, hook in (("f16 with a scale a row", as_f16), ("bytes with a step an eight", as_bytes)):
        remove = hooked(model, hook)
        line(f"{name} {what}", model(ids).logits, expected)
        remove()
    line(f"{name} bf16", model.to(torch.bfloat16)(ids).logits, expected)


for folder in sys.argv[1:]:
    tensors = load_file(f"{folder}/expected.safetensors")
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    ids = tensors["input_ids"].reshape(1, -1).long().to(device)
    compare(folder.split("/")[-1], model, ids, tensors["logits"].reshape(1, ids.shape[1], -1))

if len(sys.argv) == 1:
    config = LlamaConfig(
        vocab_size=128256, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32,
        num_attention_heads=32, num_key_value_heads=8, max_position_embeddings=8192,
        rope_theta=500000.0, rms_norm_eps=1e-5, tie_word_embeddings=False,
    )
    torch.manual_seed(1)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(config)
    torch.set_default_dtype(torch.float32)
    ids = torch.randint(0, 128256, (1, 256), device=device)
    compare("Llama-3.1-8B's shape", model, ids)
