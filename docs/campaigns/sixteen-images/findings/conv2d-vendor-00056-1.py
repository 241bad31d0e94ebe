"""torch:cpu?mkldnn=off returns 0.0156250075 at conv2d_2[0, 0, 0, 0] where 0.015625 is right, at worst 4 ulp off and 2 times what a correct implementation may lose: nnpack=off makes it vanish, so it is the doing of NNPACK, which PyTorch asks for convolutions of 16 images or more where oneDNN is off.

Needs torch alone. Ends with 1 where the fault shows, with 0 where it does not.
conv2d as torch:cpu?mkldnn=off computes it; cause: vendor.
Made by Ulpian 0.1.0 from node conv2d_2 of p00056-00000, minimised; generated for pattern 56, input 0, seed 20261201: add as call 102 of torchvision:mnasnet0_5; batch_norm as call 73 of torchvision:shufflenet_v2_x0_5; conv2d as call 156 of torchvision:shufflenet_v2_x0_5; conv2d as call 167 of torchvision:shufflenet_v2_x0_5."""

import sys

import torch
import torch.nn.functional as F

input = torch.tensor([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], dtype=torch.float32).reshape([16, 1, 1, 2])
weight = torch.tensor([-0.125, 0.25, 0.25, 0.015625], dtype=torch.float32).reshape([1, 1, 2, 2])


def compute(input, weight):
    return F.conv2d(bias=None, dilation=[1, 1], groups=1, input=input, padding=[1, 1], stride=[1, 1], weight=weight)


torch._C._set_mkldnn_enabled(False)
with torch.no_grad():
    result = compute(input, weight)
computed = result[0, 0, 0, 0].item()
certified = 0.015625  # the exact result, rounded once to float32
fault = not abs(computed - certified) <= 3.725290298461914e-9  # half of the distance that was found, or another class
print(f"computed:  {computed!r} at [0, 0, 0, 0]")
print(f"certified: {certified!r}")
print("the fault shows" if fault else "the fault does not show here")
sys.exit(1 if fault else 0)
