"""torch:cpu?batch=1 returns -0.0455000997 at gelu_3[0, 0, 15] where -0.0455002636 is right, at worst 44.1 ulp off and 2.52 times what a correct implementation may lose: it is computed by PyTorch's own kernel, and none of 4 switches mends it.

Needs torch alone. Ends with 1 where the fault shows, with 0 where it does not.
gelu as torch:cpu?batch=1 computes it; cause: framework.
Made by Ulpian 0.1.0 from node gelu_3 of p00352-00000, minimised; generated for pattern 352, input 0, seed 20261130: add as call 50 of mmpretrain:t2t-vit-t-14_8xb64_in1k; layer_norm as call 168 of mmpretrain:van-tiny_3rdparty_in1k; linear as call 55 of mmpretrain:t2t-vit-t-14_8xb64_in1k; gelu as call 53 of mmpretrain:t2t-vit."""

import sys

import torch
import torch.nn.functional as F

input = torch.tensor([-0.25, 0.03125, 1.0, 0.25, -1.0, -0.125, 0.25, -0.5, 0.25, 0.0625, 1.0, 0.125, 1.0, -0.25, -0.125, -2.0], dtype=torch.float32).reshape([1, 1, 16])


def compute(input):
    return F.gelu(approximate="none", input=input)


with torch.no_grad():
    result = torch.cat([compute(row.clone()) for row in input.split(1)])
computed = result[0, 0, 15].item()
certified = -0.0455002635717392  # the exact result, rounded once to float32
fault = not abs(computed - certified) <= 8.195638656616211e-8  # half of the distance that was found, or another class
print(f"computed:  {computed!r} at [0, 0, 15]")
print(f"certified: {certified!r}")
print("the fault shows" if fault else "the fault does not show here")
sys.exit(1 if fault else 0)
