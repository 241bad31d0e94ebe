"""torch:cpu returns -1.490116e-8 at batch_norm_3[0, 0, 0, 0] where 0 is right, at worst 1.06e37 ulp off and 5.32e36 times what a correct implementation may lose: the result is bit for bit that of scale and shift folded into fma(x, alpha, beta), computed by PyTorch's own kernel.

Needs torch alone. Ends with 1 where the fault shows, with 0 where it does not.
batch_norm as torch:cpu computes it; cause: framework.
Made by Ulpian 0.1.0 from node batch_norm_3 of p00714-00000, minimised; generated for pattern 714, input 0, seed 20261130: add as call 208 of mmpretrain:res2net50-w14-s8_3rdparty_8xb32_in1k; relu as call 273 of mmpretrain:res2net50-w14-s8_3rdparty_8xb32_in1k; conv2d as call 314 of mmpretrain:res2net50-w14-s8_3rdparty_8xb32_i."""

import sys

import torch
import torch.nn.functional as F

input = torch.tensor([0.375], dtype=torch.float32).reshape([1, 1, 1, 1])
running_mean = torch.tensor([0.375], dtype=torch.float32)
running_var = torch.tensor([0.251953125], dtype=torch.float32)


def compute(input, running_mean, running_var):
    return F.batch_norm(bias=None, eps=1e-5, input=input, momentum=0.1, running_mean=running_mean, running_var=running_var, training=False, weight=None)


with torch.no_grad():
    result = compute(input, running_mean, running_var)
computed = result[0, 0, 0, 0].item()
certified = 0.0  # the exact result, rounded once to float32
fault = not abs(computed - certified) <= 7.450580596923828e-9  # half of the distance that was found, or another class
print(f"computed:  {computed!r} at [0, 0, 0, 0]")
print(f"certified: {certified!r}")
print("the fault shows" if fault else "the fault does not show here")
sys.exit(1 if fault else 0)
