//! `torch.div(input, other, rounding_mode=None)`.

use super::args::{ArgReader, ArgWriter};
use super::{RoundingMode, Scalar, TensorOrScalar, op_args, shapes};
use crate::promotion::{DEFAULT_DTYPE, Operand, result_type};
use crate::{DType, InferError, TensorType, ValueRef};

op_args! {
    /// input / other, broadcast; true division unless a rounding mode is given.
    Div {
        /// Any shape and dtype.
        Required input,
        /// A tensor that broadcasts with `input`, or a Python scalar.
        TensorOrScalar other,
        ;
        /// Rounding of the quotient to an integer.
        rounding_mode: Option<RoundingMode>,
    }
}

impl Div<ValueRef> {
    pub(crate) fn parse(args: &mut ArgReader<'_>) -> Result<Self, InferError> {
        let rounding_mode = match args.text("rounding_mode")?.as_deref() {
            None => None,
            Some("trunc") => Some(RoundingMode::Trunc),
            Some("floor") => Some(RoundingMode::Floor),
            Some(_) => {
                return Err(InferError::argument("rounding_mode", "expected null, \"trunc\" or \"floor\""));
            }
        };
        Ok(Div { input: args.tensor("input")?, other: args.tensor_or_scalar("other")?, rounding_mode })
    }

    pub(crate) fn write(&self, args: &mut ArgWriter<'_>) {
        args.tensor("input", self.input);
        args.tensor_or_scalar("other", self.other);
        match self.rounding_mode {
            None => {}
            Some(RoundingMode::Trunc) => args.put("rounding_mode", "trunc"),
            Some(RoundingMode::Floor) => args.put("rounding_mode", "floor"),
        }
    }
}

impl Div<TensorType> {
    pub(crate) fn infer(&self) -> Result<Vec<TensorType>, InferError> {
        let promoted = result_type(&[Operand::Tensor(&self.input), Operand::from(&self.other)]);
        let dtype = match self.rounding_mode {
            None if !promoted.is_float() => DEFAULT_DTYPE,
            Some(_) if promoted == DType::Bool => {
                return Err(InferError::argument(
                    "rounding_mode",
                    "bool by bool is divided without a rounding mode only; convert one of them to an integer dtype",
                ));
            }
            _ => promoted,
        };
        let shape = match &self.other {
            TensorOrScalar::Tensor(other) => shapes::broadcast(&self.input, "other", other)?,
            TensorOrScalar::Scalar(_) => self.input.shape.clone(),
        };
        if let TensorOrScalar::Scalar(Scalar::Int(divisor)) = self.other
            && dtype.is_integer()
            && wraps_to_zero(divisor, dtype)
            && self.input.elements() != Some(0)
        {
            return Err(InferError::argument(
                "other",
                format!("{divisor} is 0 in {dtype}: integer division by zero"),
            ));
        }
        if self.other == TensorOrScalar::Scalar(Scalar::Bool(false))
            && dtype.is_integer()
            && self.input.elements() != Some(0)
        {
            return Err(InferError::argument("other", "false is 0: integer division by zero"));
        }
        Ok(vec![TensorType::new(dtype, shape)])
    }
}

/// PyTorch converts an integer operand to the result's dtype modulo 2^bits before it divides.
pub(crate) fn wraps_to_zero(divisor: i64, dtype: DType) -> bool {
    divisor.trailing_zeros() >= 8 * dtype.size() as u32
}
