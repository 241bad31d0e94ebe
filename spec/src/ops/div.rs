//! `torch.div(input, other, rounding_mode=None)`.

use super::{RoundingMode, op_args};

op_args! {
    /// input / other, broadcast; true division unless a rounding mode is given.
    Div {
        /// Any shape and dtype.
        Required input,
        /// A tensor that broadcasts with `input`, or a Python scalar.
        TensorOrScalar other,
        ;
        /// Rounding of the quotient to an integer.
        rounding_mode: Option<RoundingMode>,
    }
}
