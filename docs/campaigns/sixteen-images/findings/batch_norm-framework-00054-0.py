"""torch:cpu returns -0.156249285 at batch_norm_1[0, 0, 0, 0] where -0.156249225 is right, at worst 4.43 ulp off and 1.01 times what a correct implementation may lose: the result is bit for bit that of scale and shift folded into x * alpha + beta, computed by PyTorch's own kernel.

Needs torch alone. Ends with 1 where the fault shows, with 0 where it does not.
batch_norm as torch:cpu computes it; cause: framework.
Made by Ulpian 0.1.0 from node batch_norm_1 of p00054-00000, minimised; generated for pattern 54, input 0, seed 20261201: add as call 229 of torchvision:regnet_x_400mf; batch_norm as call 162 of torchvision:regnet_x_400mf; conv2d as call 224 of torchvision:regnet_x_400mf; batch_norm as call 148 of torchvision:regnet_x_400mf."""

import sys

import torch
import torch.nn.functional as F

input = torch.tensor([2.0], dtype=torch.float32).reshape([1, 1, 1, 1])
running_mean = torch.tensor([2.15625], dtype=torch.float32)
running_var = torch.tensor([1.0], dtype=torch.float32)


def compute(input, running_mean, running_var):
    return F.batch_norm(bias=None, eps=1e-5, input=input, momentum=0.1, running_mean=running_mean, running_var=running_var, training=False, weight=None)


with torch.no_grad():
    result = compute(input, running_mean, running_var)
computed = result[0, 0, 0, 0].item()
certified = -0.15624922513961792  # the exact result, rounded once to float32
fault = not abs(computed - certified) <= 2.9802322387695313e-8  # half of the distance that was found, or another class
print(f"computed:  {computed!r} at [0, 0, 0, 0]")
print(f"certified: {certified!r}")
print("the fault shows" if fault else "the fault does not show here")
sys.exit(1 if fault else 0)
