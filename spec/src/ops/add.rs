//! `torch.add(input, other, alpha=1)`.

use super::{Scalar, op_args};

op_args! {
    /// input + alpha * other, broadcast.
    Add {
        /// Any shape and dtype.
        Required input,
        /// A tensor that broadcasts with `input`, or a Python scalar.
        TensorOrScalar other,
        ;
        /// Factor of `other`.
        alpha: Scalar,
    }
}
