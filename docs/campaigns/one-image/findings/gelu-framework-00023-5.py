"""torch:cpu?threads=1 returns -0.0455000997 at gelu_0[0, 0, 14] where -0.0455002636 is right, at worst 44.1 ulp off and 2.52 times what a correct implementation may lose: it is computed by PyTorch's own kernel, and none of 3 switches mends it.

Needs torch alone. Ends with 1 where the fault shows, with 0 where it does not.
gelu as torch:cpu?threads=1 computes it; cause: framework.
Made by Ulpian 0.1.0 from node gelu_0 of p00023-00000, minimised; generated for pattern 23, input 0, seed 20261130: gelu as call 53 of mmpretrain:t2t-vit-t-14_8xb64_in1k; linear as call 55 of mmpretrain:t2t-vit-t-14_8xb64_in1k."""

import sys

import torch
import torch.nn.functional as F

input = torch.tensor([1.0, -0.25, -0.0625, -0.015625, -1.0, -0.25, -0.125, 0.5, 1.0, 0.5, -1.0, -0.5, 1.0, 0.25, -2.0, -0.125], dtype=torch.float32).reshape([1, 1, 16])


def compute(input):
    return F.gelu(approximate="none", input=input)


torch.set_num_threads(1)
with torch.no_grad():
    result = compute(input)
computed = result[0, 0, 14].item()
certified = -0.0455002635717392  # the exact result, rounded once to float32
fault = not abs(computed - certified) <= 8.195638656616211e-8  # half of the distance that was found, or another class
print(f"computed:  {computed!r} at [0, 0, 14]")
print(f"certified: {certified!r}")
print("the fault shows" if fault else "the fault does not show here")
sys.exit(1 if fault else 0)
