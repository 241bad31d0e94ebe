"""torch:cpu?mkldnn=off returns -0.12944904 at gelu_3[0, 0, 7] where -0.129448906 is right, at worst 8.74 ulp off and 1.17 times what a correct implementation may lose: the result is bit for bit that of 0.5 x (1 + erf(x / sqrt 2)) in vectors of 8 float32, erf by a polynomial, computed by PyTorch's own kernel.

Needs torch alone. Ends with 1 where the fault shows, with 0 where it does not.
gelu as torch:cpu?mkldnn=off computes it; cause: framework.
Made by Ulpian 0.1.0 from node gelu_3 of p00352-00000, minimised; generated for pattern 352, input 0, seed 20261130: add as call 50 of mmpretrain:t2t-vit-t-14_8xb64_in1k; layer_norm as call 168 of mmpretrain:van-tiny_3rdparty_in1k; linear as call 55 of mmpretrain:t2t-vit-t-14_8xb64_in1k; gelu as call 53 of mmpretrain:t2t-vit."""

import sys

import torch
import torch.nn.functional as F

input = torch.tensor([-0.9645360708236694, 0.9715336561203003, 0.24394947290420532, -0.10189145803451538, -1.0564556121826172, 0.8171306848526001, -0.6442762613296509, -1.271166205406189, 0.34243178367614746, -0.8382409811019897, -0.08014795929193497, 1.3674747943878174, 0.41772595047950745, 0.3984833359718323, 0.7327491044998169, 0.44750693440437317], dtype=torch.float32).reshape([1, 1, 16])


def compute(input):
    return F.gelu(approximate="none", input=input)


torch._C._set_mkldnn_enabled(False)
with torch.no_grad():
    result = compute(input)
computed = result[0, 0, 7].item()
certified = -0.12944890558719635  # the exact result, rounded once to float32
fault = not abs(computed - certified) <= 6.705522537231445e-8  # half of the distance that was found, or another class
print(f"computed:  {computed!r} at [0, 0, 7]")
print(f"certified: {certified!r}")
print("the fault shows" if fault else "the fault does not show here")
sys.exit(1 if fault else 0)
