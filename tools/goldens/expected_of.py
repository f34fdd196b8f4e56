"""Expected values of existing checkpoints: python tools/goldens/expected_of.py FOLDER...

Computes FOLDER/expected.safetensors anew for the ids in the existing file, in float32 with eager attention. The model
is loaded in float32. If it were cast to bf16 and back, rope's frequencies would be rounded to bf16, because torch's
Module.to casts buffers too.
"""

import sys

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

GIVEN = 8
IDS = 24

from expected import expect

for folder in sys.argv[1:]:
    ids = load_file(f"{folder}/expected.safetensors")["input_ids"][:IDS].long().view(1, -1)

    def load():
        model = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager"
        )
        return model.eval()

    found = expect(load, ids, GIVEN, 1)
    save_file({k: v.contiguous() for k, v in found.tensors.items()}, f"{folder}/expected.safetensors")
    print(folder, "least margin", round(found.min_margin, 4), "distinct", found.distinct)
