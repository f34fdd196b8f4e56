"""What transformers computes: logits, hidden states, greedy tokens and their margins."""

from dataclasses import dataclass

import torch

GREEDY = 24


@dataclass(frozen=True)
class Expected:
    """One prompt through the model, all in float32. tensors: as `eyrie check` reads them."""

    tensors: dict
    min_margin: float
    distinct: int
    has_eos: bool


@torch.no_grad()
def expect(load, ids: torch.Tensor, given: int, eos: int) -> Expected:
    """`load()` gives a fresh model: dynamic rope remembers the longest forward it has seen.

    Greedy tokens follow the first `given` ids; every one is the argmax of a forward over the whole
    text so far, without a cache (with a cache, keys keep the rope of the length they were made at).
    """
    out = load()(input_ids=ids, use_cache=False, output_hidden_states=True)
    tensors = {f"hidden_states.{i}": h[0] for i, h in enumerate(out.hidden_states or ())}
    tensors["logits"] = out.logits[0]
    model = load()
    text, margins = ids[:, :given], []
    for _ in range(GREEDY):
        last = model(input_ids=text, use_cache=False).logits[0, -1]
        best = last.topk(2).values
        margins.append((best[0] - best[1]).item())
        text = torch.cat([text, last.argmax().view(1, 1)], dim=1)
    tensors["input_ids"] = ids[0].to(torch.int32)
    tensors["greedy_ids"] = text[0].to(torch.int32)
    tensors["greedy_margins"] = torch.tensor(margins)
    found = text[0, given:].tolist()
    return Expected(tensors, min(margins), len(set(found)), eos in found)


@torch.no_grad()
def logits(model, ids: torch.Tensor) -> torch.Tensor:
    return model(input_ids=ids, use_cache=False).logits[0]


def distance(found: torch.Tensor, wanted: torch.Tensor) -> float:
    """The largest difference in standard deviations of `wanted`, the measure of `eyrie check`."""
    return ((found - wanted).abs().max() / wanted.std()).item()


@torch.no_grad()
def conditioning(load, ids: torch.Tensor) -> float:
    """How far logits move, in standard deviations, when the embeddings move by one part in 10^6.

    Two experts with nearly the same score show here: routing changes with the order of float sums.
    """
    model, moved = load(), load()
    table = moved.get_input_embeddings().weight
    noise = torch.randn(table.shape, generator=torch.Generator().manual_seed(1))
    tied = moved.config.get_text_config().tie_word_embeddings
    if tied:
        moved.lm_head.weight = torch.nn.Parameter(table.clone())
    table.mul_(1 + 1e-6 * noise)
    return distance(logits(moved, ids), logits(model, ids))
