// dropout(input, mask, p, training): in training input * (mask / (1 - p)), otherwise input.
//
// Order: 1 - p in float64, rounded to what is computed in; one division, one product; 16-bit dtypes round once, at the end.
// p = 1 drops everything (input * 0); p = 0 nothing.
// Special values: a dropped infinity or NaN is NaN, a dropped number a zero of its sign.
// sizes: elements, mode (0 identity, 1 by the mask, 2 all dropped). operands: input, mask (bytes, 0 or 1). scalars: 1 - p.

#include "ieee.cuh"

template <typename D>
__device__ typename D::Computed dropout(const Launch &launch, Index i) {
    typedef typename D::Computed T;
    T x = operand<D>(launch, 0, i);
    Index mode = launch.sizes[1];
    if (mode == 0) {
        return x;
    }
    if (mode == 2) {
        return x * (T)0;
    }
    T kept = (T)((const unsigned char *)launch.operands[1])[i];
    return x * (kept / (T)launch.scalars[0]);
}

KERNELS(dropout, dropout)
