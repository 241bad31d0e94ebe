//! `torch.mul(input, other)`.

use super::op_args;

op_args! {
    /// input * other, broadcast.
    Mul {
        /// Any shape and dtype.
        Required input,
        /// A tensor that broadcasts with `input`, or a Python scalar.
        TensorOrScalar other,
        ;
    }
}
