//! `torch.nn.functional.softmax(input, dim, dtype=None)`.

use super::args::{ArgReader, ArgWriter};
use super::{DType, op_args, shapes};
use crate::{InferError, TensorType, ValueRef};

op_args! {
    /// exp(x_i) / sum_j exp(x_j) along `dim`.
    Softmax {
        /// Any shape.
        Required input,
        ;
        /// The dimension that sums to 1; negative counts from the end.
        dim: i64,
        /// The dtype `input` is converted to first.
        dtype: Option<DType>,
    }
}

impl Softmax<ValueRef> {
    pub(crate) fn parse(args: &mut ArgReader<'_>) -> Result<Self, InferError> {
        Ok(Softmax { input: args.tensor("input")?, dim: args.int("dim", None)?, dtype: args.dtype("dtype")? })
    }

    pub(crate) fn write(&self, args: &mut ArgWriter<'_>) {
        args.tensor("input", self.input);
        args.put("dim", self.dim);
        if let Some(dtype) = self.dtype {
            args.put("dtype", dtype.name());
        }
    }
}

impl Softmax<TensorType> {
    pub(crate) fn infer(&self) -> Result<Vec<TensorType>, InferError> {
        shapes::dimension("dim", self.dim, self.input.shape.len())?;
        let dtype = self.dtype.unwrap_or(self.input.dtype);
        if !dtype.is_float() {
            let (argument, given) = match self.dtype {
                Some(dtype) => ("dtype", dtype.to_string()),
                None => ("input", self.input.to_string()),
            };
            return Err(InferError::argument(
                argument,
                format!("softmax returns floating-point numbers, got {given}; give a floating-point `dtype`"),
            ));
        }
        Ok(vec![TensorType::new(dtype, self.input.shape.clone())])
    }
}
