"""Writes into the folder of the first argument what torch.save makes: tensors, code in disguise, a shape without bytes."""

import os
import sys

import torch

folder = sys.argv[1]


class Evil:
    def __reduce__(self):
        return os.system, (f"touch {folder}/executed",)


x = torch.arange(6, dtype=torch.float32).reshape(2, 3)
torch.save({"x": x, "fc": {"weight": x.to(torch.bfloat16).t()}}, f"{folder}/tensors.pt")
torch.save({"x": x, "evil": Evil()}, f"{folder}/evil.pt")
torch.save({"x": x, "evil": Evil()}, f"{folder}/old_evil.pt", _use_new_zipfile_serialization=False)
torch.save({"x": torch.ones(1).expand(2**40)}, f"{folder}/expanded.pt")
torch.save({"x": torch.empty(2, device="meta")}, f"{folder}/meta.pt")
