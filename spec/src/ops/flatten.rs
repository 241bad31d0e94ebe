//! `torch.flatten(input, start_dim=0, end_dim=-1)`.

use super::args::{ArgReader, ArgWriter};
use super::{op_args, shapes};
use crate::{InferError, TensorType, ValueRef};

op_args! {
    /// The dimensions from `start_dim` to `end_dim` joined into one.
    Flatten {
        /// Any shape, any dtype.
        Required input,
        ;
        /// First joined dimension; negative counts from the end.
        start_dim: i64,
        /// Last joined dimension; negative counts from the end.
        end_dim: i64,
    }
}

impl Flatten<ValueRef> {
    pub(crate) fn parse(args: &mut ArgReader<'_>) -> Result<Self, InferError> {
        Ok(Flatten {
            input: args.tensor("input")?,
            start_dim: args.int("start_dim", Some(0))?,
            end_dim: args.int("end_dim", Some(-1))?,
        })
    }

    pub(crate) fn write(&self, args: &mut ArgWriter<'_>) {
        args.tensor("input", self.input);
        args.unless_default("start_dim", self.start_dim, 0);
        args.unless_default("end_dim", self.end_dim, -1);
    }
}

impl Flatten<TensorType> {
    pub(crate) fn infer(&self) -> Result<Vec<TensorType>, InferError> {
        let shape = &self.input.shape;
        let start = shapes::dimension("start_dim", self.start_dim, shape.len())?;
        let end = shapes::dimension("end_dim", self.end_dim, shape.len())?;
        if start > end {
            return Err(InferError::argument(
                "end_dim",
                format!("dimension {} comes before start_dim {}", self.end_dim, self.start_dim),
            ));
        }
        if shape.is_empty() {
            return Ok(vec![TensorType::new(self.input.dtype, [1])]);
        }
        let joined = crate::tensor::elements_of(&shape[start..=end])
            .ok_or_else(|| InferError::argument("input", format!("{} is too large", self.input)))?;
        let shape = [&shape[..start], &[joined], &shape[end + 1..]].concat();
        Ok(vec![TensorType::new(self.input.dtype, shape)])
    }
}
