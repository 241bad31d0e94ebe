"""torch:cpu?layout=channels_last returns 4.9410553 at batch_norm_3[0, 0, 0, 0] where 4.94105864 is right, at worst 7.44 ulp off and 1.72 times what a correct implementation may lose: the result is bit for bit that of scale and shift folded into x * alpha + beta, computed by PyTorch's own kernel.

Needs torch alone. Ends with 1 where the fault shows, with 0 where it does not.
batch_norm as torch:cpu?layout=channels_last computes it; cause: framework.
Made by Ulpian 0.1.0 from node batch_norm_3 of p00152-00000, minimised; generated for pattern 152, input 0, seed 20261201: add as call 77 of torchvision:regnet_x_400mf; relu as call 94 of torchvision:regnet_x_400mf; conv2d as call 100 of timm:convnext_atto; batch_norm as call 225 of torchvision:densenet121; batch_norm as cal."""

import sys

import torch
import torch.nn.functional as F

input = torch.tensor([0.25], dtype=torch.float32).reshape([1, 1, 1, 1]).to(memory_format=torch.channels_last)
running_mean = torch.tensor([0.234375], dtype=torch.float32)
running_var = torch.tensor([0.0], dtype=torch.float32)


def compute(input, running_mean, running_var):
    return F.batch_norm(bias=None, eps=1e-5, input=input, momentum=0.1, running_mean=running_mean, running_var=running_var, training=False, weight=None)


with torch.no_grad():
    result = compute(input, running_mean, running_var)
computed = result[0, 0, 0, 0].item()
certified = 4.94105863571167  # the exact result, rounded once to float32
fault = not abs(computed - certified) <= 1.6689300537109375e-6  # half of the distance that was found, or another class
print(f"computed:  {computed!r} at [0, 0, 0, 0]")
print(f"certified: {certified!r}")
print("the fault shows" if fault else "the fault does not show here")
sys.exit(1 if fault else 0)
