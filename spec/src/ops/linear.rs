//! `torch.nn.functional.linear(input, weight, bias=None)`.

use super::args::{ArgReader, ArgWriter};
use super::{op_args, shapes};
use crate::{InferError, TensorType, ValueRef};

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

impl Linear<ValueRef> {
    pub(crate) fn parse(args: &mut ArgReader<'_>) -> Result<Self, InferError> {
        Ok(Linear {
            input: args.tensor("input")?,
            weight: args.tensor("weight")?,
            bias: args.optional_tensor("bias")?,
        })
    }

    pub(crate) fn write(&self, args: &mut ArgWriter<'_>) {
        args.tensor("input", self.input);
        args.tensor("weight", self.weight);
        args.optional_tensor("bias", self.bias);
    }
}

impl Linear<TensorType> {
    pub(crate) fn infer(&self) -> Result<Vec<TensorType>, InferError> {
        let (input, weight) = (&self.input, &self.weight);
        let [ref rows @ .., in_features] = input.shape[..] else {
            return Err(InferError::argument(
                "input",
                format!("expected at least one dimension, got {input}"),
            ));
        };
        let (out, weight_in): (&[usize], usize) = match &weight.shape[..] {
            [k] => (&[], *k),
            [n, k] => (std::slice::from_ref(n), *k),
            _ => {
                return Err(InferError::argument(
                    "weight",
                    format!("expected (out_features, in_features) or (in_features), got {weight}"),
                ));
            }
        };
        shapes::refuse_bool("input", input, "linear")?;
        shapes::require_dtype("weight", weight, "input", input)?;
        if weight_in != in_features {
            return Err(InferError::argument(
                "weight",
                format!("it is for {weight_in} features, input has {in_features}: {weight} for {input}"),
            ));
        }
        if let Some(bias) = &self.bias {
            shapes::require_dtype("bias", bias, "input", input)?;
            if out.is_empty() && rows.len() == 1 {
                return Err(InferError::argument(
                    "bias",
                    "a one-dimensional weight and a two-dimensional input go without a bias; add it afterwards",
                ));
            }
            if !bias.shape.is_empty() || out.is_empty() {
                shapes::require_shape("bias", bias, out)?;
            }
        }
        Ok(vec![TensorType::new(input.dtype, [rows, out].concat())])
    }
}
