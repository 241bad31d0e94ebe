// add(input, other, alpha) = fma(alpha, other, input), broadcast.
//
// Order: one operation, so one rounding; with alpha = 1 it is the rounded sum. alpha and a scalar `other` are rounded to what
// is computed in first.
// Special values: IEEE's; alpha = 0 times an infinity is NaN.
// sizes: elements, rank, shape, strides of input, strides of other. operands: input, other. scalars: alpha, other where its
// operand is null.

#include "ieee.cuh"

template <typename D>
__device__ typename D::Computed add(const Launch &launch, Index i) {
    typedef typename D::Computed T;
    Index a, b;
    offsets(launch.sizes + 1, i, &a, &b);
    T other = launch.operands[1] ? operand<D>(launch, 1, b) : (T)launch.scalars[1];
    return fused((T)launch.scalars[0], other, operand<D>(launch, 0, a));
}

KERNELS(add, add)
