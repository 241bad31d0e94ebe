//! `torch.nn.functional.layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5)`.

use super::args::{ArgReader, ArgWriter};
use super::{op_args, shapes};
use crate::{InferError, TensorType, ValueRef};

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

impl LayerNorm<ValueRef> {
    pub(crate) fn parse(args: &mut ArgReader<'_>) -> Result<Self, InferError> {
        Ok(LayerNorm {
            input: args.tensor("input")?,
            weight: args.optional_tensor("weight")?,
            bias: args.optional_tensor("bias")?,
            normalized_shape: args.ints("normalized_shape")?,
            eps: args.float("eps", 1e-5)?,
        })
    }

    pub(crate) fn write(&self, args: &mut ArgWriter<'_>) {
        args.tensor("input", self.input);
        args.put("normalized_shape", self.normalized_shape.clone());
        args.optional_tensor("weight", self.weight);
        args.optional_tensor("bias", self.bias);
        args.float("eps", self.eps, 1e-5);
    }
}

impl LayerNorm<TensorType> {
    pub(crate) fn infer(&self) -> Result<Vec<TensorType>, InferError> {
        let input = &self.input;
        shapes::require_float("input", input, "layer_norm")?;
        if !self.eps.is_finite() {
            return Err(InferError::argument("eps", format!("expected a number, got {}", self.eps)));
        }
        if self.normalized_shape.is_empty() {
            return Err(InferError::argument("normalized_shape", "expected at least one size"));
        }
        let last =
            input.shape.len().checked_sub(self.normalized_shape.len()).map(|first| &input.shape[first..]);
        let matches = last.is_some_and(|sizes| {
            sizes.iter().zip(&self.normalized_shape).all(|(&s, &n)| usize::try_from(n) == Ok(s))
        });
        let Some(sizes) = last.filter(|_| matches) else {
            return Err(InferError::argument(
                "normalized_shape",
                format!("{:?} is not the end of input's shape {:?}", self.normalized_shape, input.shape),
            ));
        };
        let parameters = [("weight", &self.weight), ("bias", &self.bias)];
        for (argument, t) in parameters {
            let Some(t) = t else { continue };
            shapes::require_shape(argument, t, sizes)?;
        }
        shapes::require_parameter_dtypes(input, &parameters)?;
        Ok(vec![input.clone()])
    }
}
