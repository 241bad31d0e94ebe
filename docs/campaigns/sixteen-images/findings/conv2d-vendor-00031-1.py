"""torch:cpu?mkldnn=off returns -0.249999925 at conv2d_1[1, 0, 0, 2] where -0.25 is right, at worst 1.82e37 ulp off and 1.25 times what a correct implementation may lose: nnpack=off makes it vanish, so it is the doing of NNPACK, which PyTorch asks for convolutions of 16 images or more where oneDNN is off.

Needs torch alone. Ends with 1 where the fault shows, with 0 where it does not.
conv2d as torch:cpu?mkldnn=off computes it; cause: vendor.
Made by Ulpian 0.1.0 from node conv2d_1 of p00031-00000, minimised; generated for pattern 31, input 0, seed 20261201: batch_norm as call 78 of torchvision:mobilenet_v2; conv2d as call 89 of torchvision:mobilenet_v2; batch_norm as call 60 of torchvision:mobilenet_v2."""

import sys

import torch
import torch.nn.functional as F

input = torch.tensor([4.0, -2.0, -4.0, -0.25, 0.5, -0.5, -4.0, -1.0, -4.0, 4.0, -1.0, 2.0, -4.0, 2.0, 1.0, -2.0, 4.0, -4.0, 0.125, 2.0, 0.03125, -0.125, 2.0, 4.0, 4.0, 4.0, 4.0, -4.0, -0.5, 1.0, -2.0, 4.0], dtype=torch.float32).reshape([16, 1, 1, 2])
weight = torch.tensor([1.0, 1.0, 1.0, 1.0], dtype=torch.float32).reshape([1, 1, 2, 2])


def compute(input, weight):
    return F.conv2d(bias=None, dilation=[1, 1], groups=1, input=input, padding=[1, 1], stride=[1, 1], weight=weight)


torch._C._set_mkldnn_enabled(False)
with torch.no_grad():
    result = compute(input, weight)
computed = result[1, 0, 0, 2].item()
certified = -0.25  # the exact result, rounded once to float32
fault = not abs(computed - certified) <= 3.725290298461914e-8  # half of the distance that was found, or another class
print(f"computed:  {computed!r} at [1, 0, 0, 2]")
print(f"certified: {certified!r}")
print("the fault shows" if fault else "the fault does not show here")
sys.exit(1 if fault else 0)
