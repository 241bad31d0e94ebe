// matmul: y[b, i, j] = sum over k of input[b, i, k] * other[b, k, j]; a vector is a row on the left, a column on the right.
//
// Order: s = +0, then s = fma(input[k], other[k], s) for k ascending; 16-bit dtypes sum in float and round s once.
// Error: with n products |s - exact| <= n u / (1 - n u) sum |input[k] other[k]|, as any order of n fused operations.
// Special values: IEEE's; a sum of no product is +0.
// sizes: elements, rows, columns, inner size, then of the batch: rank, shape, strides of input, strides of other (in
// elements). operands: input, other.

#include "ieee.cuh"

template <typename D>
__device__ typename D::Computed matmul(const Launch &launch, Index i) {
    Index rows = launch.sizes[1], columns = launch.sizes[2], inner = launch.sizes[3];
    Index column = i % columns, row = i / columns % rows, a, b;
    offsets(launch.sizes + 4, i / columns / rows, &a, &b);
    typename D::Computed sum = 0;
    for (Index k = 0; k < inner; ++k) {
        sum = fused(operand<D>(launch, 0, a + row * inner + k), operand<D>(launch, 1, b + k * columns + column), sum);
    }
    return sum;
}

KERNELS(matmul, matmul)
