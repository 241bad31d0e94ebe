// linear: y[r, j] = sum over k of input[r, k] * weight[j, k], plus bias[j].
//
// Order: s = +0, then s = fma(input[k], weight[k], s) for k ascending, then s + bias[j]; 16-bit dtypes sum in float and round
// once, after the bias.
// Error: with n products |s - exact| <= (n + 1) u / (1 - (n + 1) u) (sum |input[k] weight[k]| + |bias|).
// Special values: IEEE's; without a bias a sum of no product is +0.
// sizes: elements, columns, inner size, stride of bias (0 where it is one number for all). operands: input, weight, bias.

#include "ieee.cuh"

template <typename D>
__device__ typename D::Computed linear(const Launch &launch, Index i) {
    Index columns = launch.sizes[1], inner = launch.sizes[2];
    Index column = i % columns, row = i / columns;
    typename D::Computed sum = 0;
    for (Index k = 0; k < inner; ++k) {
        sum = fused(operand<D>(launch, 0, row * inner + k), operand<D>(launch, 1, column * inner + k), sum);
    }
    return launch.operands[2] ? sum + operand<D>(launch, 2, column * launch.sizes[3]) : sum;
}

KERNELS(linear, linear)
