"""torch:cpu?isa=default returns -9.8821106 at batch_norm_5[0, 0, 0, 0] where -9.88211727 is right, at worst 7.44 ulp off and 1.72 times what a correct implementation may lose: the result is bit for bit that of scale and shift folded into x * alpha + beta, computed by PyTorch's own kernel.

Needs torch alone. Ends with 1 where the fault shows, with 0 where it does not.
batch_norm as torch:cpu?isa=default computes it; cause: framework.
Made by Ulpian 0.1.0 from node batch_norm_5 of p00718-00000, minimised; generated for pattern 718, input 0, seed 20261130: add as call 205 of mmpretrain:mobileone-s0_8xb32_in1k; relu as call 299 of mmpretrain:mobileone-s0_8xb32_in1k; conv2d as call 180 of mmpretrain:hornet-tiny_3rdparty_in1k; batch_norm as call 535 of mmpret."""

import os
os.environ["ATEN_CPU_CAPABILITY"] = "default"
import sys

import torch
import torch.nn.functional as F

input = torch.tensor([1.25], dtype=torch.float32).reshape([1, 1, 1, 1])
running_mean = torch.tensor([1.28125], dtype=torch.float32)
running_var = torch.tensor([0.0], dtype=torch.float32)


def compute(input, running_mean, running_var):
    return F.batch_norm(bias=None, eps=1e-5, input=input, momentum=0.1, running_mean=running_mean, running_var=running_var, training=False, weight=None)


with torch.no_grad():
    result = compute(input, running_mean, running_var)
computed = result[0, 0, 0, 0].item()
certified = -9.88211727142334  # the exact result, rounded once to float32
fault = not abs(computed - certified) <= 3.337860107421875e-6  # half of the distance that was found, or another class
print(f"computed:  {computed!r} at [0, 0, 0, 0]")
print(f"certified: {certified!r}")
print("the fault shows" if fault else "the fault does not show here")
sys.exit(1 if fault else 0)
