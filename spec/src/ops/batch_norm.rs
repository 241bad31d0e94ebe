//! `torch.nn.functional.batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False,
//! momentum=0.1, eps=1e-5)`.

use super::op_args;

op_args! {
    /// (x - mean) / sqrt(var + eps) * weight + bias per channel (dimension 1). In training the statistics are the batch's
    /// (var biased), and results 1 and 2 are the updated running mean and variance (var unbiased), where these were given.
    BatchNorm {
        /// (N, C, ...), at least two-dimensional.
        Required input,
        /// (C); may be absent in training.
        Optional running_mean,
        /// (C); may be absent in training.
        Optional running_var,
        /// (C)
        Optional weight,
        /// (C)
        Optional bias,
        ;
        /// Use the batch's statistics and update the running ones.
        training: bool,
        /// Weight of the batch's statistics in the update.
        momentum: f64,
        /// Added to the variance.
        eps: f64,
    }
}
