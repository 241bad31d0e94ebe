"""torch:cpu?batch=1 returns 2.980232e-8 at batch_norm_1[0, 0, 0, 0] where 0 is right, at worst 2.13e37 ulp off and 1.06e37 times what a correct implementation may lose: the result is bit for bit that of scale and shift folded into fma(x, alpha, beta), computed by PyTorch's own kernel.

Needs torch alone. Ends with 1 where the fault shows, with 0 where it does not.
batch_norm as torch:cpu?batch=1 computes it; cause: framework.
Made by Ulpian 0.1.0 from node batch_norm_1 of p00034-00000, minimised; generated for pattern 34, input 0, seed 20261130: add as call 197 of mmpretrain:poolformer-s12_3rdparty_32xb128_in1k; batch_norm as call 256 of mmpretrain:seresnet50_8xb32_in1k; batch_norm as call 56 of mmpretrain:resnet18_8xb32_in1k."""

import sys

import torch
import torch.nn.functional as F

input = torch.tensor([-0.375], dtype=torch.float32).reshape([1, 1, 1, 1])
running_mean = torch.tensor([-0.375], dtype=torch.float32)
running_var = torch.tensor([0.12890625], dtype=torch.float32)


def compute(input, running_mean, running_var):
    return F.batch_norm(bias=None, eps=1e-5, input=input, momentum=0.1, running_mean=running_mean, running_var=running_var, training=False, weight=None)


with torch.no_grad():
    result = torch.cat([compute(row.clone(), running_mean, running_var) for row in input.split(1)])
computed = result[0, 0, 0, 0].item()
certified = 0.0  # the exact result, rounded once to float32
fault = not abs(computed - certified) <= 1.4901161193847656e-8  # half of the distance that was found, or another class
print(f"computed:  {computed!r} at [0, 0, 0, 0]")
print(f"certified: {certified!r}")
print("the fault shows" if fault else "the fault does not show here")
sys.exit(1 if fault else 0)
