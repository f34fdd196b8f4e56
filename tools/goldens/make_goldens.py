"""Makes small random checkpoints and what transformers computes with them.

    python make_goldens.py OUT [NAME...]

Writes OUT/NAME/{config.json, config.v5.json, generation_config.json, model.safetensors,
expected*.safetensors}, OUT/manifest.json and OUT.tar.gz. CPU, no network, about a minute. Weights are
saved as bf16 and loaded again in float32 with eager attention, as a user would load them, so that
rope frequencies are those of float32. Exits 1 when a case failed; the others are still written.
"""

import json
import os
import re
import sys
import tarfile
import tempfile
import time
import traceback
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import safetensors.torch
import torch
import transformers
from transformers import AutoConfig

from cases import CASES
from expected import conditioning, distance, expect, logits
from nextn import expect_nextn, extra_tensors
from weights import randomize, token_ids

MAX_SEEDS = 60
MIN_MARGIN = 0.02  # of greedy tokens; summing float32 in another order moves logits by about 1e-5
MIN_DISTINCT = 8  # different greedy tokens: a loop of one token tests nothing
MAX_CONDITIONING = 1e-4
NOT_TEXT = re.compile("vision|perception")  # tensors that are not the text model's
MIN_EFFECT = 1e-3  # of an ablation, in standard deviations; tests should hold the engine to 2e-4


def main() -> int:
    print(f"transformers {transformers.__version__}, torch {torch.__version__}, "
          f"python {sys.version.split()[0]}", flush=True)
    transformers.utils.logging.disable_progress_bar()
    out, names = Path(sys.argv[1]), sys.argv[2:]
    torch.set_num_threads(max(1, (os.cpu_count() or 2) // 2))
    manifest, failed = {}, []
    for case in CASES:
        if names and case.name not in names:
            continue
        start = time.monotonic()
        try:
            manifest[case.name] = make(case, out / case.name)
            print(f"{case.name}: {time.monotonic() - start:.1f} s "
                  f"{json.dumps(manifest[case.name])}", flush=True)
        except Exception:  # an architecture that this transformers lacks must not stop the others
            failed.append(case.name)
            print(f"{case.name}: FAILED\n{traceback.format_exc()}", flush=True)
    versions = {"transformers": transformers.__version__, "torch": torch.__version__}
    (out / "manifest.json").write_text(json.dumps({**versions, "cases": manifest}, indent=1) + "\n")
    archive = out.with_name(out.name + ".tar.gz")
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(out, arcname=out.name)
    print(f"{len(manifest)} made, {len(failed)} failed {failed}; "
          f"{archive} {archive.stat().st_size / 1e6:.1f} MB")
    return 1 if failed else 0


def make(case, folder: Path) -> dict:
    """Writes the checkpoint of the first seed whose greedy tokens have clear margins. Returns the manifest's entry."""
    tried = []
    for seed in range(MAX_SEEDS):
        write_checkpoint(case, folder, seed)
        load = loader(folder)
        worst = conditioning(load, token_ids(case, seed, *case.prompts[-1][:2]))
        if worst > MAX_CONDITIONING:
            tried.append(f"conditioning {worst:.1e}")
            continue
        runs = {stem: expect(load, token_ids(case, seed, stem, count), given, 1)
                for stem, count, given in case.prompts}
        margin = min(run.min_margin for run in runs.values())
        distinct = min(run.distinct for run in runs.values())
        if margin < MIN_MARGIN or distinct < MIN_DISTINCT or any(
                run.has_eos for run in runs.values()):
            tried.append(f"margin {margin:.4f}, {distinct} distinct")
            continue
        for stem, run in runs.items():
            kept = {name: tensor for name, tensor in run.tensors.items()
                    if stem not in case.logits_only or not name.startswith("greedy")}
            save_expected(folder / f"{stem}.safetensors", kept, run.min_margin)
        if nextn_layers(case):
            save_nextn(case, folder, runs["expected"].tensors["input_ids"])
        return {
            "seed": seed,
            "min_margin": round(margin, 4),
            "distinct": distinct,
            "conditioning": float(f"{worst:.2e}"),
            "logits_std": round(runs["expected"].tensors["logits"].std().item(), 3),
            "ablations": ablations(case, folder, runs),
            "bytes": sum(f.stat().st_size for f in folder.iterdir()),
        }
    raise RuntimeError(f"no seed of {MAX_SEEDS} is clear: {tried[-5:]}")


def write_checkpoint(case, folder: Path, seed: int) -> None:
    """Writes config.json as in the case, and the tensors and config.v5.json as transformers saves them."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    write_json(folder / "config.json", case.config)
    special = {key: case.config[key] for key in ("bos_token_id", "eos_token_id")}
    write_json(folder / "generation_config.json", {"_from_model_config": True, **special})
    config = with_nextn(folder, case)
    model = class_of(config)._from_config(config, dtype=torch.float32).eval()
    randomize(model, case, seed)
    for parameter in model.parameters():
        parameter.data = parameter.data.to(torch.bfloat16)
    with tempfile.TemporaryDirectory() as temporary:
        model.save_pretrained(temporary)
        tensors = safetensors.torch.load_file(Path(temporary) / "model.safetensors")
    tensors = {name: tensor for name, tensor in tensors.items() if not NOT_TEXT.search(name)}
    if nextn_layers(case):
        tensors |= extra_tensors(model, case, seed)
    safetensors.torch.save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)
    config = AutoConfig.from_pretrained(folder)
    config.save_pretrained(folder / "v5")
    os.replace(folder / "v5" / "config.json", folder / "config.v5.json")
    (folder / "v5").rmdir()


def class_of(config):
    return getattr(transformers, config.architectures[0])


def nextn_layers(case) -> int:
    return case.config.get("num_nextn_predict_layers", 0)


def with_nextn(folder: Path, case):
    """The config with NextN layers counted as decoder layers, because checkpoints store them as such."""
    config = AutoConfig.from_pretrained(folder)
    if nextn_layers(case):
        config.num_hidden_layers += nextn_layers(case)
    return config


def loader(folder: Path, config=None):
    """A function that loads the checkpoint in float32 with eager attention."""
    def load():
        own = AutoConfig.from_pretrained(folder) if config is None else config
        model = class_of(own).from_pretrained(
            folder, config=own, dtype=torch.float32, attn_implementation="eager")
        return model.eval().requires_grad_(False)
    return load


def ablations(case, folder: Path, runs: dict) -> dict:
    """How far each ablation moves the logits: the largest distance over the prompts."""
    effects = {}
    for name, change in case.ablations.items():
        effect = max(distance(logits(ablated(case, folder, change), run.tensors["input_ids"][None].long()),
                              run.tensors["logits"]) for run in runs.values())
        if not effect >= MIN_EFFECT:
            raise RuntimeError(f"ablation {name!r} moves the logits by {effect:.4f} only")
        effects[name] = round(effect, 4)
    return effects


def ablated(case, folder: Path, change):
    if isinstance(change, dict):
        with tempfile.TemporaryDirectory() as temporary:
            write_json(Path(temporary) / "config.json", case.config | change)
            return loader(folder, AutoConfig.from_pretrained(temporary))()
    model, hit = loader(folder)(), False
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        if re.search(change, name):
            tensor.zero_()
            hit = True
    if not hit:
        raise RuntimeError(f"no tensor matches {change!r}")
    return model


def save_nextn(case, folder: Path, ids: torch.Tensor) -> None:
    """Writes expected_nextn.safetensors: the outputs of the NextN layer over the same prompt."""
    layer = f"model.layers.{case.config['num_hidden_layers']}."
    own = ("enorm", "hnorm", "eh_proj", "shared_head.norm")
    tensors = safetensors.torch.load_file(folder / "model.safetensors")
    extra = {name: tensor for name, tensor in tensors.items()
             if name.startswith(tuple(layer + part for part in own))}
    model = loader(folder, with_nextn(folder, case))()
    save_expected(folder / "expected_nextn.safetensors",
                  expect_nextn(model, extra, ids[None].long()))


def save_expected(path: Path, tensors: dict, margin: float | None = None) -> None:
    made_by = f"transformers {transformers.__version__}, torch {torch.__version__}"
    if margin is not None:
        made_by += f", least greedy margin {margin:.4f}"
    tensors = {name: tensor.contiguous().clone() for name, tensor in tensors.items()}
    # Only one key, because safetensors writes several keys in an order that changes from run to run.
    safetensors.torch.save_file(tensors, path, metadata={"made_by": made_by})
    path.chmod(0o644)


def write_json(path: Path, value: dict) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
