//! `torch.relu(input)`.

use super::op_args;

op_args! {
    /// max(x, 0); NaN stays.
    Relu {
        /// Any shape; not bool.
        Required input,
        ;
    }
}
