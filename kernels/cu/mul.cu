// mul(input, other) = input * other, broadcast.
//
// Order: one operation, so one rounding. A scalar `other` is rounded to what is computed in first.
// Special values: IEEE's.
// sizes: elements, rank, shape, strides of input, strides of other. operands: input, other. scalars: other where its operand
// is null.

#include "ieee.cuh"

template <typename D>
__device__ typename D::Computed mul(const Launch &launch, Index i) {
    typedef typename D::Computed T;
    Index a, b;
    offsets(launch.sizes + 1, i, &a, &b);
    T other = launch.operands[1] ? operand<D>(launch, 1, b) : (T)launch.scalars[0];
    return operand<D>(launch, 0, a) * other;
}

KERNELS(mul, mul)
