// relu(x) = x where x > 0, 0 otherwise.
//
// Order: one comparison; no rounding.
// Special values: NaN stays; -0.0 gives +0.0.
// sizes: elements. operands: input.

#include "ieee.cuh"

template <typename D>
__device__ typename D::Computed relu(const Launch &launch, Index i) {
    typename D::Computed x = operand<D>(launch, 0, i);
    return x > 0 || x != x ? x : 0;
}

KERNELS(relu, relu)
