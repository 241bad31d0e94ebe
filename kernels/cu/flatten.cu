// flatten: the same elements under another shape.
//
// Order: a copy; no rounding.
// Special values: all stay.
// sizes: elements. operands: input.

#include "ieee.cuh"

template <typename D>
__device__ typename D::Computed flatten(const Launch &launch, Index i) {
    return operand<D>(launch, 0, i);
}

KERNELS(flatten, flatten)
