//! `torch.nn.functional.batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False,
//! momentum=0.1, eps=1e-5)`.

use super::args::{ArgReader, ArgWriter};
use super::{op_args, shapes};
use crate::{InferError, TensorType, ValueRef};

op_args! {
    /// (x - mean) / sqrt(var + eps) * weight + bias per channel (dimension 1). In training the statistics are the batch's
    /// (var biased), and results 1 and 2 are the updated running mean and variance (var unbiased), where these were given;
    /// a batch without a value leaves them as they are.
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
        /// Added to the variance. Positive; 0 is taken in evaluation, as PyTorch does since a release after 2.11.
        eps: f64,
    }
}

impl BatchNorm<ValueRef> {
    pub(crate) fn parse(args: &mut ArgReader<'_>) -> Result<Self, InferError> {
        Ok(BatchNorm {
            input: args.tensor("input")?,
            running_mean: args.optional_tensor("running_mean")?,
            running_var: args.optional_tensor("running_var")?,
            weight: args.optional_tensor("weight")?,
            bias: args.optional_tensor("bias")?,
            training: args.bool("training", false)?,
            momentum: args.float("momentum", 0.1)?,
            eps: args.float("eps", 1e-5)?,
        })
    }

    pub(crate) fn write(&self, args: &mut ArgWriter<'_>) {
        args.tensor("input", self.input);
        args.optional_tensor("running_mean", self.running_mean);
        args.optional_tensor("running_var", self.running_var);
        args.optional_tensor("weight", self.weight);
        args.optional_tensor("bias", self.bias);
        args.unless_default("training", self.training, false);
        args.float("momentum", self.momentum, 0.1);
        args.float("eps", self.eps, 1e-5);
    }
}

impl BatchNorm<TensorType> {
    pub(crate) fn infer(&self) -> Result<Vec<TensorType>, InferError> {
        let input = &self.input;
        let [n, channels, ref rest @ ..] = input.shape[..] else {
            return Err(InferError::argument("input", format!("expected (N, C, ...), got {input}")));
        };
        shapes::require_float("input", input, "batch_norm")?;
        let positive = self.eps > 0.0 || (self.eps == 0.0 && !self.training);
        if !(positive && self.eps.is_finite()) {
            let expected = if self.training { "a positive number" } else { "a number from 0 on" };
            return Err(InferError::argument("eps", format!("expected {expected}, got {}", self.eps)));
        }
        if !self.momentum.is_finite() {
            return Err(InferError::argument(
                "momentum",
                format!("expected a number, got {}", self.momentum),
            ));
        }
        let both = ["running_mean", "running_var"];
        match (&self.running_mean, &self.running_var) {
            (None, _) if !self.training => {
                return Err(InferError::argument(both[0], "needed unless training is true"));
            }
            (_, None) if !self.training => {
                return Err(InferError::argument(both[1], "needed unless training is true"));
            }
            (Some(_), None) => {
                return Err(InferError::argument(both[1], "needed where running_mean is given"));
            }
            (None, Some(_)) => {
                return Err(InferError::argument(both[0], "needed where running_var is given"));
            }
            _ => {}
        }
        if self.training && n == 1 && rest.iter().all(|&size| size == 1) {
            return Err(InferError::argument(
                "input",
                format!("training needs more than one value per channel, got {input}"),
            ));
        }
        let parameters = [
            ("running_mean", &self.running_mean),
            ("running_var", &self.running_var),
            ("weight", &self.weight),
            ("bias", &self.bias),
        ];
        for (argument, t) in parameters {
            let Some(t) = t else { continue };
            shapes::require_shape(argument, t, &[channels])?;
        }
        shapes::require_parameter_dtypes(input, &parameters)?;
        if channels == 0 && (self.weight.is_some() || self.bias.is_some()) {
            return Err(InferError::argument(
                "input",
                format!("there is no channel to scale or shift in {input}"),
            ));
        }
        let mut results = vec![input.clone()];
        if self.training {
            results.extend(self.running_mean.iter().chain(&self.running_var).cloned());
        }
        Ok(results)
    }
}
