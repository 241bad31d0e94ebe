//! `torch.nn.functional.dropout(input, p=0.5, training=True)`, with the mask as an extra operand.

use super::op_args;

op_args! {
    /// In training x * mask / (1 - p); the identity otherwise.
    Dropout {
        /// Any shape, floating-point in training.
        Required input,
        /// Which elements are kept: bool, or 0 and 1, of `input`'s shape.
        Optional mask,
        ;
        /// Probability of dropping an element, in [0, 1].
        p: f64,
        /// Drop at all.
        training: bool,
    }
}
