//! `torch.flatten(input, start_dim=0, end_dim=-1)`.

use super::op_args;

op_args! {
    /// The dimensions from `start_dim` to `end_dim` joined into one.
    Flatten {
        /// Any shape, any dtype.
        Required input,
        ;
        /// First joined dimension; negative counts from the end.
        start_dim: i64,
        /// Last joined dimension; negative counts from the end.
        end_dim: i64,
    }
}
