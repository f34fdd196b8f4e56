"""Expected values of gpt-oss in float64, with numpy alone: python tools/goldens/gpt_oss.py FOLDER [OUT]

FOLDER holds config.json, model.safetensors with experts in bf16, and expected.safetensors with input_ids. The script
computes logits and hidden states twice: with rope's frequencies rounded to bf16 (as in a model that was cast to bf16
and back), and unrounded. It prints how far those in FOLDER are from both, and writes the unrounded ones to
OUT/expected.safetensors. With --mxfp4 it writes to OUT the first two layers, with experts rounded to MXFP4 as gpt-oss
is published, and their expected values.
"""

import json
import os
import shutil
import struct
import sys

import numpy as np

f32 = np.float32
LUT = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
TYPES = {"F32": np.float32, "I32": np.int32, "U8": np.uint8}
NAMES = {"float32": "F32", "int32": "I32", "uint8": "U8", "uint16": "BF16"}


def load(path):
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(size))
        data = file.read()
    out = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        raw = data[begin:end]
        if entry["dtype"] == "BF16":
            values = (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(f32)
        else:
            values = np.frombuffer(raw, TYPES[entry["dtype"]])
        out[name] = values.reshape(entry["shape"])
    return out


def save(path, tensors):
    header, at, data = {}, 0, b""
    for name in sorted(tensors):
        raw = tensors[name].tobytes()
        dtype = NAMES[str(tensors[name].dtype)]
        header[name] = {"dtype": dtype, "shape": list(tensors[name].shape), "data_offsets": [at, at + len(raw)]}
        at += len(raw)
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def bf16(x):
    bits = f32(x).view(np.uint32).astype(np.uint64)
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return (bits.astype(np.uint32) << 16).view(f32)


def frequencies(rope, dim, rounded):
    """yarn, truncate false, in float32 as transformers computes them."""
    i = np.arange(dim // 2).astype(f32)
    powers = (f32(rope["rope_theta"]) ** (f32(2) * i / f32(dim))).astype(f32)
    context, log = rope["original_max_position_embeddings"], np.log(rope["rope_theta"])
    pair = lambda turns: dim * np.log(context / (turns * 2 * np.pi)) / (2 * log)
    low, high = max(pair(rope["beta_fast"]), 0), min(pair(rope["beta_slow"]), dim - 1)
    kept = f32(1) - np.clip((i - f32(low)) / f32(high - low), 0, 1).astype(f32)
    slowed = f32(1) / (f32(rope["factor"]) * powers)
    found = (slowed * (f32(1) - kept) + f32(1) / powers * kept).astype(f32)
    return bf16(found) if rounded else found


def model(config, weights, rounded=False):
    """ids -> logits and hidden states."""
    w = {name: values.astype(np.float64) for name, values in weights.items()}
    rope, dim = config["rope_parameters"], config["head_dim"]
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    limit, top_k = config.get("swiglu_limit", 7.0), config["num_experts_per_tok"]
    freq = frequencies(rope, dim, rounded)
    scale = f32(0.1 * np.log(rope["factor"]) + 1)

    def norm(x, weight):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + config["rms_norm_eps"]) * weight

    def attention(x, at, kind):
        n = len(x)
        angle = (np.arange(n, dtype=f32)[:, None] * freq[None]).astype(np.float64)
        cos = (np.cos(angle).astype(f32) * scale).astype(np.float64)[:, None]
        sin = (np.sin(angle).astype(f32) * scale).astype(np.float64)[:, None]

        def turned(h):
            a, b = h[..., : dim // 2], h[..., dim // 2 :]
            return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

        def linear(name, of):
            return of @ w[f"{at}self_attn.{name}_proj.weight"].T + w[f"{at}self_attn.{name}_proj.bias"]

        q = turned(linear("q", x).reshape(n, heads, dim))
        k = turned(linear("k", x).reshape(n, kv_heads, dim))
        v = linear("v", x).reshape(n, kv_heads, dim)
        k, v = np.repeat(k, heads // kv_heads, 1), np.repeat(v, heads // kv_heads, 1)
        before = np.arange(n)[:, None] - np.arange(n)[None]
        seen = before >= 0
        if kind == "sliding_attention":
            seen &= before < config["sliding_window"]
        scores = np.where(seen, np.einsum("ihd,jhd->hij", q, k) * dim**-0.5, -np.inf)
        sinks = np.broadcast_to(w[at + "self_attn.sinks"][:, None, None], (heads, n, 1))
        scores = np.concatenate([scores, sinks], -1)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares = (shares / shares.sum(-1, keepdims=True))[..., :-1]
        return linear("o", np.einsum("hij,jhd->ihd", shares, v).reshape(n, heads * dim))

    def mixture(x, at):
        logits = x @ w[at + "router.weight"].T + w[at + "router.bias"]
        out = np.zeros_like(x)
        for row, chosen in enumerate(np.argsort(-logits, -1)[:, :top_k]):
            shares = np.exp(logits[row, chosen] - logits[row, chosen].max())
            for e, share in zip(chosen, shares / shares.sum()):
                both = x[row] @ w[at + "experts.gate_up_proj"][e] + w[at + "experts.gate_up_proj_bias"][e]
                gate, up = np.minimum(both[0::2], limit), np.clip(both[1::2], -limit, limit)
                act = gate / (1 + np.exp(-1.702 * gate)) * (up + 1)
                out[row] += share * (act @ w[at + "experts.down_proj"][e] + w[at + "experts.down_proj_bias"][e])
        return out

    def run(ids):
        x = w["model.embed_tokens.weight"][ids]
        states = [x]
        for layer, kind in enumerate(config["layer_types"]):
            at = f"model.layers.{layer}."
            x = x + attention(norm(x, w[at + "input_layernorm.weight"]), at, kind)
            x = x + mixture(norm(x, w[at + "post_attention_layernorm.weight"]), at + "mlp.")
            states.append(x)
        return norm(x, w["model.norm.weight"]) @ w["lm_head.weight"].T, states

    return run


def expect(run, ids, states, given=8, count=24):
    logits, hidden = run(ids)
    text, margins = list(ids[:given]), []
    for _ in range(count):
        last = run(np.array(text))[0][-1]
        first, second = np.sort(last)[[-1, -2]]
        margins.append(first - second)
        text.append(int(last.argmax()))
    print("least margin", round(min(margins), 4), "distinct", len(set(text[given:])))
    found = {"input_ids": ids, "logits": logits.astype(f32), "greedy_ids": np.array(text, np.int32)}
    return {**found, **{f"hidden_states.{i}": hidden[i].astype(f32) for i in states}}


def in_mxfp4(weights, layers):
    """The tensors of the first layers as stored, and the numbers that they represent."""
    stored, numbers = {}, {}
    for name, values in weights.items():
        if any(f".layers.{i}." in name for i in range(layers, 100)):
            continue
        numbers[name] = values
        if not name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            stored[name] = (values.view(np.uint32) >> 16).astype(np.uint16)
            continue
        rows = values.transpose(0, 2, 1).astype(np.float64)
        groups = rows.reshape(*rows.shape[:2], -1, 32)
        exponents = np.floor(np.log2(np.abs(groups).max(-1))) - 2
        codes = np.abs(groups[..., None] / 2.0 ** exponents[..., None, None] - LUT).argmin(-1).astype(np.uint8)
        codes[0, 0, 0, :16] = np.arange(16)  # every code occurs at least once
        stored[name + "_blocks"] = codes[..., 0::2] | codes[..., 1::2] << 4
        stored[name + "_scales"] = (exponents + 127).astype(np.uint8)
        values = (LUT[codes] * 2.0 ** exponents[..., None]).reshape(rows.shape)
        numbers[name] = values.transpose(0, 2, 1).astype(f32)
    return stored, numbers


def published(config):
    rope = dict(config["rope_parameters"])
    kept = ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]
    quantized = {"modules_to_not_convert": kept, "quant_method": "mxfp4"}
    return {
        **{key: value for key, value in config.items() if key != "rope_parameters"},
        "rope_theta": rope.pop("rope_theta"),
        "rope_scaling": rope,
        "experts_per_token": config["num_experts_per_tok"],
        "initial_context_length": rope["original_max_position_embeddings"],
        "swiglu_limit": 7.0,
        "quantization_config": quantized,
    }


def main(folder, out=None, kind=None):
    with open(f"{folder}/config.json") as file:
        config = json.load(file)
    weights = load(f"{folder}/model.safetensors")
    given = load(f"{folder}/expected.safetensors")
    ids = given["input_ids"]
    for rounded in (True, False):
        logits, hidden = model(config, weights, rounded)(ids)
        found = {"logits": logits, **{f"hidden_states.{i}": x for i, x in enumerate(hidden)}}
        errors = {name: np.abs(found[name] - x).max() / x.std() for name, x in given.items() if name in found}
        print("bf16" if rounded else "float32", "frequencies:", {name: f"{e:.2g}" for name, e in errors.items()})
    if out is None:
        return
    os.makedirs(out, exist_ok=True)
    if kind == "--mxfp4":
        config = {**config, "num_hidden_layers": 2, "layer_types": config["layer_types"][:2]}
        stored, weights = in_mxfp4(weights, 2)
        save(f"{out}/model.safetensors", stored)
        with open(f"{out}/config.json", "w") as file:
            json.dump(published(config), file, indent=2)
            file.write("\n")
        shutil.copy(f"{folder}/generation_config.json", out)
    states = [1] if kind == "--mxfp4" else [1, 2]
    save(f"{out}/expected.safetensors", expect(model(config, weights), ids, states))


if __name__ == "__main__":
    main(*sys.argv[1:])
