"""The NextN (multi-token prediction) layer of DeepSeek-V3 checkpoints, and what it computes.

The published checkpoints keep it as one more decoder layer, model.layers.{num_hidden_layers}, with
enorm, hnorm, eh_proj and shared_head beside the layer's own tensors; transformers leaves it unread.
"""

import torch

from weights import distribution, noise


def extra_tensors(model, case, seed: int) -> dict:
    """The tensors of the NextN layer that no decoder layer has. `model` was built with NextN as its last layer."""
    hidden, index = case.config["hidden_size"], case.config["num_hidden_layers"]
    prefix = f"model.layers.{index}."
    shapes = {
        "enorm.weight": (hidden,),
        "hnorm.weight": (hidden,),
        "shared_head.norm.weight": (hidden,),
        "eh_proj.weight": (hidden, 2 * hidden),
    }
    tensors = {}
    for name, shape in shapes.items():
        mean, std = distribution(prefix + name, shape, case, gemma=False)
        tensors[prefix + name] = mean + std * noise(case, seed, prefix + name, shape)
    # Copies, as published: the layer shares the target's embedding and head.
    tensors[prefix + "embed_tokens.weight"] = model.model.embed_tokens.weight
    tensors[prefix + "shared_head.head.weight"] = model.lm_head.weight
    return {name: tensor.detach().to(torch.bfloat16).clone() for name, tensor in tensors.items()}


@torch.no_grad()
def expect_nextn(model, extra: dict, ids: torch.Tensor) -> dict:
    """Logits and hidden states of the layer over a prompt of n tokens; row i sees token i + 1.

        x_i = eh_proj [enorm(embed(t_{i+1})); hnorm(h_i)]      h_i after the target's last norm
        y_i = shared_head.norm(layer(x)_i)                     the next step's h
        logits_i = lm_head y_i                                 predicts t_{i+2}

    `model` has the layer as its last; h comes from the layers before it.
    """
    body = model.model
    layer = body.layers[-1]
    hidden = {}
    hook = layer.register_forward_pre_hook(lambda _, args: hidden.update(x=args[0]))
    body(input_ids=ids, use_cache=False)
    hook.remove()
    h = body.norm(hidden["x"])
    count = ids.shape[1] - 1
    extra = {name.split(".", 3)[3]: tensor.float() for name, tensor in extra.items()}
    norm = lambda x, name: rms_norm(x, extra[name], model.config.rms_norm_eps)
    embedded = body.embed_tokens(ids[:, 1:])
    x = torch.cat([norm(embedded, "enorm.weight"), norm(h[:, :-1], "hnorm.weight")], dim=-1)
    x = x @ extra["eh_proj.weight"].T
    positions = torch.arange(count)[None]
    mask = torch.full((count, count), torch.finfo(torch.float32).min).triu(1)[None, None]
    out = layer(x, attention_mask=mask, position_ids=positions,
                position_embeddings=body.rotary_emb(x, position_ids=positions))
    y = norm(out[0] if isinstance(out, tuple) else out, "shared_head.norm.weight")
    return {"input_ids": ids[0].to(torch.int32), "nextn_hidden_states": y[0],
            "nextn_logits": model.lm_head(y)[0]}


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps))
