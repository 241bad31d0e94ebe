"""torch:cpu?isa=default returns -0.12944904 at gelu_3[0, 0, 1] where -0.129448906 is right, at worst 8.74 ulp off and 1.17 times what a correct implementation may lose: mkldnn=off makes it vanish, so it is the doing of oneDNN, since the bits change without it.

Needs torch alone. Ends with 1 where the fault shows, with 0 where it does not.
gelu as torch:cpu?isa=default computes it; cause: vendor.
Made by Ulpian 0.1.0 from node gelu_3 of p00352-00000, minimised; generated for pattern 352, input 0, seed 20261130: add as call 50 of mmpretrain:t2t-vit-t-14_8xb64_in1k; layer_norm as call 168 of mmpretrain:van-tiny_3rdparty_in1k; linear as call 55 of mmpretrain:t2t-vit-t-14_8xb64_in1k; gelu as call 53 of mmpretrain:t2t-vit."""

import os
os.environ["ATEN_CPU_CAPABILITY"] = "default"
import sys

import torch
import torch.nn.functional as F

input = torch.tensor([-0.6442762613296509, -1.271166205406189], dtype=torch.float32).reshape([1, 1, 2])


def compute(input):
    return F.gelu(approximate="none", input=input)


with torch.no_grad():
    result = compute(input)
computed = result[0, 0, 1].item()
certified = -0.12944890558719635  # the exact result, rounded once to float32
fault = not abs(computed - certified) <= 6.705522537231445e-8  # half of the distance that was found, or another class
print(f"computed:  {computed!r} at [0, 0, 1]")
print(f"certified: {certified!r}")
print("the fault shows" if fault else "the fault does not show here")
sys.exit(1 if fault else 0)
