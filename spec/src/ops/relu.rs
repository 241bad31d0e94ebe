//! `torch.relu(input)`.

use super::args::{ArgReader, ArgWriter};
use super::{op_args, shapes};
use crate::{InferError, TensorType, ValueRef};

op_args! {
    /// max(x, 0); NaN stays.
    Relu {
        /// Any shape; not bool.
        Required input,
        ;
    }
}

impl Relu<ValueRef> {
    pub(crate) fn parse(args: &mut ArgReader<'_>) -> Result<Self, InferError> {
        Ok(Relu { input: args.tensor("input")? })
    }

    pub(crate) fn write(&self, args: &mut ArgWriter<'_>) {
        args.tensor("input", self.input);
    }
}

impl Relu<TensorType> {
    pub(crate) fn infer(&self) -> Result<Vec<TensorType>, InferError> {
        shapes::refuse_bool("input", &self.input, "relu")?;
        Ok(vec![self.input.clone()])
    }
}
