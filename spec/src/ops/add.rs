//! `torch.add(input, other, alpha=1)`.

use super::args::{ArgReader, ArgWriter};
use super::{Scalar, TensorOrScalar, op_args, shapes};
use crate::dtype::power_of_two;
use crate::promotion::{Operand, result_type};
use crate::{DType, InferError, TensorType, ValueRef};

op_args! {
    /// input + alpha * other, broadcast.
    Add {
        /// Any shape and dtype.
        Required input,
        /// A tensor that broadcasts with `input`, or a Python scalar.
        TensorOrScalar other,
        ;
        /// Factor of `other`.
        alpha: Scalar,
    }
}

impl Add<ValueRef> {
    pub(crate) fn parse(args: &mut ArgReader<'_>) -> Result<Self, InferError> {
        Ok(Add {
            input: args.tensor("input")?,
            other: args.tensor_or_scalar("other")?,
            alpha: args.scalar("alpha", Scalar::Int(1))?,
        })
    }

    pub(crate) fn write(&self, args: &mut ArgWriter<'_>) {
        args.tensor("input", self.input);
        args.tensor_or_scalar("other", self.other);
        args.scalar("alpha", self.alpha, Scalar::Int(1));
    }
}

impl Add<TensorType> {
    pub(crate) fn infer(&self) -> Result<Vec<TensorType>, InferError> {
        let dtype = result_type(&[Operand::Tensor(&self.input), Operand::from(&self.other)]);
        let shape = match &self.other {
            TensorOrScalar::Tensor(other) => shapes::broadcast(&self.input, "other", other)?,
            TensorOrScalar::Scalar(_) => self.input.shape.clone(),
        };
        check_alpha(self.alpha, dtype).map_err(|e| InferError::argument("alpha", e))?;
        Ok(vec![TensorType::new(dtype, shape)])
    }
}

/// alpha's category may not be above the result's, and its value must fit the result's dtype (a negative one into an unsigned
/// dtype by its magnitude).
fn check_alpha(alpha: Scalar, dtype: DType) -> Result<(), String> {
    if matches!(alpha, Scalar::Bool(_)) && dtype != DType::Bool {
        return Err(format!("a bool goes with bool results only, this one is {dtype}"));
    }
    match (dtype.float_format(), alpha) {
        (None, Scalar::Float(x)) => Err(format!(
            "the float {x} does not go with an integer result, this one is {dtype}; give an integer"
        )),
        (None, Scalar::Int(n)) => {
            let (least, greatest) = dtype.integer_range().unwrap_or((i64::MIN, i64::MAX));
            let least = if least == 0 { -greatest } else { least };
            if dtype == DType::Bool || (least..=greatest).contains(&n) {
                return Ok(());
            }
            Err(format!("{n} does not fit the result's dtype {dtype}"))
        }
        (Some(format), alpha) => {
            let x = alpha.as_f64();
            let greatest = (2.0 - 2.0 * format.unit_roundoff()) * power_of_two(format.max_exponent);
            if x.is_finite() && x.abs() > greatest {
                return Err(format!("{x} does not fit the result's dtype {dtype}"));
            }
            Ok(())
        }
        (None, Scalar::Bool(_)) => Ok(()),
    }
}
