"""Random weights: rounded to bf16, the same for the same case, seed and tensor name."""

import zlib

import torch


@torch.no_grad()
def randomize(model, case, seed: int) -> None:
    """Every parameter and the routers' correction bias, in place; values are those of bf16."""
    gemma = any(name in case.config["model_type"] for name in ("gemma", "muse_glimmer"))
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        if name.endswith(("e_score_correction_bias", "expert_bias")):
            tensor.copy_(noise(case, seed, name, tensor.shape) * 0.15)  # stays F32, as published
        elif isinstance(tensor, torch.nn.Parameter):
            mean, std = distribution(name, tensor.shape, case, gemma)
            values = mean + std * noise(case, seed, name, tensor.shape)
            tensor.copy_(values.to(torch.bfloat16))


def distribution(name: str, shape, case, gemma: bool) -> tuple[float, float]:
    """Mean and standard deviation, chosen so that attention is spread over tokens and logits are not flat."""
    if name.endswith(".bias"):
        return 0.0, 0.5
    if len(shape) == 1:  # a norm; Gemma multiplies by 1 + weight, and so does Muse-Glimmer except in its last norm
        mean = case.final_norm if name == "model.norm.weight" else 1.0
        if name == "model.language_model.norm.weight":
            return mean, 0.25
        return (mean - 1 if gemma else mean), 0.25
    if "embed_tokens" in name:
        return 0.0, case.embed_std
    fan_in = shape[-1] ** 0.5
    if "lm_head" in name or name.endswith("gate.weight"):  # the head, the router
        return 0.0, 2.0 / fan_in
    return 0.0, 1.5 / fan_in


def noise(case, seed: int, name: str, shape) -> torch.Tensor:
    key = zlib.crc32(f"{case.name}/{seed}/{name}".encode())
    return torch.randn(tuple(shape), generator=torch.Generator().manual_seed(key))


def token_ids(case, seed: int, stem: str, count: int) -> torch.Tensor:
    """`count` token ids above the special ones."""
    key = zlib.crc32(f"{case.name}/{seed}/{stem}".encode())
    generator = torch.Generator().manual_seed(key)
    return torch.randint(4, case.text["vocab_size"], (1, count), generator=generator)
