//! `torch.nn.functional.softmax(input, dim, dtype=None)`.

use super::{DType, op_args};

op_args! {
    /// exp(x_i) / sum_j exp(x_j) along `dim`.
    Softmax {
        /// Any shape.
        Required input,
        ;
        /// The dimension that sums to 1; negative counts from the end.
        dim: i64,
        /// The dtype `input` is converted to first.
        dtype: Option<DType>,
    }
}
