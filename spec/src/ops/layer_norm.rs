//! `torch.nn.functional.layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5)`.

use super::op_args;

op_args! {
    /// (x - mean) / sqrt(var + eps) * weight + bias over the last dimensions (var biased).
    LayerNorm {
        /// (..., *normalized_shape)
        Required input,
        /// normalized_shape
        Optional weight,
        /// normalized_shape
        Optional bias,
        ;
        /// The sizes of the last dimensions.
        normalized_shape: Vec<i64>,
        /// Added to the variance.
        eps: f64,
    }
}
