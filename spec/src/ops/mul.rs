//! `torch.mul(input, other)`.

use super::args::{ArgReader, ArgWriter};
use super::{TensorOrScalar, op_args, shapes};
use crate::promotion::{Operand, result_type};
use crate::{InferError, TensorType, ValueRef};

op_args! {
    /// input * other, broadcast.
    Mul {
        /// Any shape and dtype.
        Required input,
        /// A tensor that broadcasts with `input`, or a Python scalar.
        TensorOrScalar other,
        ;
    }
}

impl Mul<ValueRef> {
    pub(crate) fn parse(args: &mut ArgReader<'_>) -> Result<Self, InferError> {
        Ok(Mul { input: args.tensor("input")?, other: args.tensor_or_scalar("other")? })
    }

    pub(crate) fn write(&self, args: &mut ArgWriter<'_>) {
        args.tensor("input", self.input);
        args.tensor_or_scalar("other", self.other);
    }
}

impl Mul<TensorType> {
    pub(crate) fn infer(&self) -> Result<Vec<TensorType>, InferError> {
        let dtype = result_type(&[Operand::Tensor(&self.input), Operand::from(&self.other)]);
        let shape = match &self.other {
            TensorOrScalar::Tensor(other) => shapes::broadcast(&self.input, "other", other)?,
            TensorOrScalar::Scalar(_) => self.input.shape.clone(),
        };
        Ok(vec![TensorType::new(dtype, shape)])
    }
}
