"""Expected values of Gemma 4 in float64, with numpy alone: python tools/goldens/gemma4.py FOLDER OUT [FIRST]

FOLDER holds config.json, model.safetensors and expected.safetensors with input_ids. The script computes logits and
hidden states twice: with rope's frequencies and the embedding factors rounded to bf16 (as in a model that was cast to
bf16 and back), and unrounded. It prints how far those in FOLDER are from both. It writes the unrounded ones for 24 ids
from FIRST on to OUT/expected.safetensors, and prints how far these logits move, in standard deviations, when embeddings
move by one part in 10^6: attention scores without a scale make the logits of some texts move far.
"""

import json
import sys

import numpy as np
from gpt_oss import bf16, expect, f32, load, save

IDS = 24


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def model(config, weights, rounded=False):
    """ids -> logits and hidden states."""
    w = {name: values.astype(np.float64) for name, values in weights.items()}
    hidden, heads, eps = config["hidden_size"], config["num_attention_heads"], config["rms_norm_eps"]
    kinds, width = config["layer_types"], config["hidden_size_per_layer_input"] or 0
    owned = len(kinds) - config["num_kv_shared_layers"]
    root = lambda n: float((bf16 if rounded else f32)(n**0.5))

    def norm(x, weight=1.0):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight

    def frequencies(kind, dim):
        rope = config["rope_parameters"][kind]
        found = f32(1) / (f32(rope["rope_theta"]) ** (f32(2) * np.arange(dim // 2).astype(f32) / f32(dim)))
        if rope["rope_type"] == "proportional":
            found[int(rope["partial_rotary_factor"] * dim // 2) :] = 0
        return bf16(found) if rounded else found.astype(f32)

    def attention(x, layer, at, kept):
        n, kind = len(x), kinds[layer]
        own = config["per_layer_config"].get(str(layer), {})
        dim = own.get("head_dim", config["head_dim"])
        kv_heads = own.get("num_key_value_heads", config["num_key_value_heads"])
        angle = (np.arange(n, dtype=f32)[:, None] * frequencies(kind, dim)[None]).astype(np.float64)[:, None]

        def turned(h):
            a, b = h[..., : dim // 2], h[..., dim // 2 :]
            return np.concatenate([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)], -1)

        linear = lambda name: x @ w[f"{at}self_attn.{name}_proj.weight"].T
        q = turned(norm(linear("q").reshape(n, heads, dim), w[at + "self_attn.q_norm.weight"]))
        if layer < owned:
            k = linear("k").reshape(n, kv_heads, dim)
            is_own = at + "self_attn.v_proj.weight" in w
            v = norm(linear("v").reshape(n, kv_heads, dim) if is_own else k)
            kept[kind] = turned(norm(k, w[at + "self_attn.k_norm.weight"])), v
        k, v = (np.repeat(of, heads // kv_heads, 1) for of in kept[kind])
        before = np.arange(n)[:, None] - np.arange(n)[None]
        seen = before >= 0
        if kind == "sliding_attention":
            seen &= before < config["sliding_window"]
        scores = np.where(seen, np.einsum("ihd,jhd->hij", q, k), -np.inf)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        return np.einsum("hij,jhd->ihd", shares, v).reshape(n, heads * dim) @ w[at + "self_attn.o_proj.weight"].T

    def mlp(x, at):
        act = gelu(x @ w[at + "mlp.gate_proj.weight"].T) * (x @ w[at + "mlp.up_proj.weight"].T)
        return act @ w[at + "mlp.down_proj.weight"].T

    def experts(x, at):
        routed = norm(x, w[at + "router.scale"]) * hidden**-0.5 @ w[at + "router.proj.weight"].T
        x, out = norm(x, w[at + "pre_feedforward_layernorm_2.weight"]), np.zeros_like(x)
        for row, chosen in enumerate(np.argsort(-routed, -1)[:, : config["top_k_experts"]]):
            shares = np.exp(routed[row, chosen] - routed[row, chosen].max())
            shares = shares / shares.sum() * w[at + "router.per_expert_scale"][chosen]
            for e, share in zip(chosen, shares):
                gate, up = np.split(w[at + "experts.gate_up_proj"][e] @ x[row], 2)
                out[row] += share * (w[at + "experts.down_proj"][e] @ (gelu(gate) * up))
        return norm(out, w[at + "post_feedforward_layernorm_2.weight"])

    def embeddings(ids, x):
        shape = (len(ids), len(kinds), width)
        tokens = w["model.embed_tokens_per_layer.weight"][ids].reshape(shape) * root(width)
        projected = (x @ w["model.per_layer_model_projection.weight"].T * hidden**-0.5).reshape(shape)
        return (norm(projected, w["model.per_layer_projection_norm.weight"]) + tokens) * 2**-0.5

    def run(ids):
        x = w["model.embed_tokens.weight"][ids] * root(hidden)
        states, kept, own = [x], {}, embeddings(ids, x) if width else None
        for layer in range(len(kinds)):
            at = f"model.layers.{layer}."
            of = lambda name: w[f"{at}{name}.weight"]
            branch = attention(norm(x, of("input_layernorm")), layer, at, kept)
            x = x + norm(branch, of("post_attention_layernorm"))
            branch = mlp(norm(x, of("pre_feedforward_layernorm")), at)
            if config["enable_moe_block"]:
                branch = norm(branch, of("post_feedforward_layernorm_1")) + experts(x, at)
            x = x + norm(branch, of("post_feedforward_layernorm"))
            if width:
                act = gelu(x @ of("per_layer_input_gate").T) * own[:, layer]
                x = x + norm(act @ of("per_layer_projection").T, of("post_per_layer_input_norm"))
            x = x * w[at + "layer_scalar"]
            states.append(x)
        cap = config["final_logit_softcapping"]
        logits = norm(x, w["model.norm.weight"]) @ w["model.embed_tokens.weight"].T
        return cap * np.tanh(logits / cap), states

    return run


def main(folder, out, first=0):
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
    ids = ids[int(first) :][:IDS]
    noise = 1 + 1e-6 * np.random.default_rng(1).standard_normal(weights["model.embed_tokens.weight"].shape)
    moved = {**weights, "model.embed_tokens.weight": weights["model.embed_tokens.weight"] * noise}
    logits, other = (model(config, of)(ids)[0] for of in (weights, moved))
    print("conditioning", np.abs(logits - other).max() / logits.std())
    states = range(config["num_hidden_layers"])
    save(f"{out}/expected.safetensors", expect(model(config, weights), ids, states))


main(*sys.argv[1:])
