"""Writes the files beside it with PyTorch (2.13 made the ones kept here): python make.py"""

import argparse
import collections
import pathlib

import torch

here = pathlib.Path(__file__).parent
base = torch.arange(24, dtype=torch.float32)
tensors = collections.OrderedDict(
    bf16=torch.arange(6, dtype=torch.bfloat16).reshape(2, 3),
    f16=torch.tensor([1.5, -2.0], dtype=torch.float16),
    i64=torch.tensor([1, -2, 2**40]),
    i32=torch.tensor([5], dtype=torch.int32),
    u8=torch.tensor([1, 2], dtype=torch.uint8),
    f8=torch.tensor([1.0, 2.0]).to(torch.float8_e4m3fn),
    mask=torch.tensor([True, False]),
    scalar=torch.tensor(3.25),
    part=base[6:18].reshape(3, 4),
    whole=base,
    empty=torch.zeros(0, 4),
    parameter=torch.nn.Parameter(torch.tensor([1.0, 2.0])),
    step=7,
    note="not a tensor",
    rate=1e-3,
    nothing=None,
)
torch.save(tensors, here / "tensors.bin")
module = torch.nn.Linear(2, 1)
torch.nn.init.constant_(module.weight, 0.5)
torch.nn.init.constant_(module.bias, -1)
torch.save({"state_dict": module.state_dict(), "epoch": 3}, here / "nested.pt")
torch.save({"a": torch.arange(6).reshape(2, 3).t()}, here / "transposed.pt")
torch.save({"a": torch.arange(6)}, here / "legacy.pt", _use_new_zipfile_serialization=False)
torch.save({"a": torch.arange(6), "args": argparse.Namespace(x=1)}, here / "namespace.pt")
torch.save(module, here / "module.pt")
torch.jit.save(torch.jit.script(module), here / "script.pt")
