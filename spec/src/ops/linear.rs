//! `torch.nn.functional.linear(input, weight, bias=None)`.

use super::op_args;

op_args! {
    /// input @ weight^T + bias.
    Linear {
        /// (..., in_features)
        Required input,
        /// (out_features, in_features) or (in_features)
        Required weight,
        /// (out_features) or ()
        Optional bias,
        ;
    }
}
