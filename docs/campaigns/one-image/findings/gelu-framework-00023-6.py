"""torch:cpu?compile=on returns -0.0455000997 at gelu_0[0, 0, 0] where -0.0455002636 is right, at worst 44.1 ulp off and 2.52 times what a correct implementation may lose: the result is bit for bit that of 0.5 x (1 + erf(x / sqrt 2)) in float32, erf by a polynomial, computed by PyTorch's own kernel.

Needs torch alone. Ends with 1 where the fault shows, with 0 where it does not.
gelu as torch:cpu?compile=on computes it; cause: framework.
Made by Ulpian 0.1.0 from node gelu_0 of p00023-00000, minimised; generated for pattern 23, input 0, seed 20261130: gelu as call 53 of mmpretrain:t2t-vit-t-14_8xb64_in1k; linear as call 55 of mmpretrain:t2t-vit-t-14_8xb64_in1k."""

import sys

import torch
import torch.nn.functional as F

input = torch.tensor([-2.0, -0.125], dtype=torch.float32).reshape([1, 1, 2])


def compute(input):
    return F.gelu(approximate="none", input=input)


compute = torch.compile(compute, fullgraph=True, dynamic=False)
with torch.no_grad():
    result = compute(input)
computed = result[0, 0, 0].item()
certified = -0.0455002635717392  # the exact result, rounded once to float32
fault = not abs(computed - certified) <= 8.195638656616211e-8  # half of the distance that was found, or another class
print(f"computed:  {computed!r} at [0, 0, 0]")
print(f"certified: {certified!r}")
print("the fault shows" if fault else "the fault does not show here")
sys.exit(1 if fault else 0)
