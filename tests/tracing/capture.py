"""Captures a chain of a run as FOLDER/chain.json, for the judge.

    python capture.py PACKAGE_FOLDER FOLDER
"""

import sys

sys.path.insert(0, sys.argv[1])

import torch  # noqa: E402
import torch.nn as nn  # noqa: E402
import ulpian  # noqa: E402

torch.manual_seed(0)
conv, norm = nn.Conv2d(3, 4, 3, padding="same"), nn.BatchNorm2d(4)
relu, drop, linear = nn.ReLU(inplace=True), nn.Dropout(0.25), nn.Linear(16, 5)
norm(torch.randn(8, 4, 6, 6) * 2 + 1)
norm.eval()

x = torch.randn(2, 3, 8, 8)
with ulpian.capture(f"{sys.argv[2]}/chain.json", source="a test"):
    y = norm(conv(x))
    z = relu(y)
    z = z + 0.5
    pooled, positions = nn.functional.max_pool2d(z, 4, return_indices=True)
    # A view is no op of Ulpian's: the chain is cut here.
    rows = pooled.view(2, 16)
    out = linear(drop(rows))
    (out / 3).sum().backward()

# The run itself went its way.
if conv.weight.grad is None or not torch.isfinite(conv.weight.grad).all():
    raise SystemExit("the gradient did not arrive")
print(out.sum().item())
