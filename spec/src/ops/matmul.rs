//! `torch.matmul(input, other)`.

use super::op_args;

op_args! {
    /// Matrix product with PyTorch's rules for one-dimensional and batched operands.
    Matmul {
        /// At least one-dimensional.
        Required input,
        /// At least one-dimensional, of the same dtype.
        Required other,
        ;
    }
}
