// div(input, other, rounding_mode): the quotient; with a rounding mode the floor of the exact quotient, or that quotient
// truncated.
//
// Order: q = input / other, rounded once. With a mode: n = floor(q) or trunc(q), and r = fma(-n, other, input). Both operands
// are multiples of the least subnormal number, n is an integer, so r never underflows and has the sign of the exact remainder.
// Where q was rounded to an integer beyond the exact quotient (r's sign says so), n is moved back by 1, unless n +- 1 is not
// exact: then |q| >= 2^precision, and q stays. A scalar `other` is rounded to what is computed in first.
// Special values: those of the IEEE quotient; the modes leave its infinities, zeros and NaN as they are.
// sizes: elements, mode (0 none, 1 trunc, 2 floor), rank, shape, strides of input, strides of other. operands: input, other.
// scalars: other where its operand is null.

#include "ieee.cuh"

template <typename D>
__device__ typename D::Computed div(const Launch &launch, Index i) {
    typedef typename D::Computed T;
    Index mode = launch.sizes[1], at, bt;
    offsets(launch.sizes + 2, i, &at, &bt);
    T a = operand<D>(launch, 0, at);
    T b = launch.operands[1] ? operand<D>(launch, 1, bt) : (T)launch.scalars[0];
    T q = a / b;
    if (mode == 0) {
        return q;
    }
    T n = mode == 1 ? toward_zero(q) : downward(q);
    T r = fused(-n, b, a);
    // Has the exact quotient the sign of n, but a smaller magnitude (trunc), or is it below n (floor)?
    bool beyond = mode == 1 ? (n != 0 && ((r < 0 && a > 0) || (r > 0 && a < 0)))
                            : ((r < 0 && b > 0) || (r > 0 && b < 0));
    T step = mode == 1 && n < 0 ? (T)-1 : (T)1;
    T back = n - step;
    return beyond && n - back == step ? back : n;
}

KERNELS(div, div)
