//! Type promotion: `torch.result_type` over tensors and Python scalars.
//!
//! Operands fall into three classes: tensors with dimensions, 0-dimensional tensors, Python scalars. Within a class the
//! dtypes are promoted; a lower class counts only where its category (bool < integer < float) is above that of the
//! classes before it. (PyTorch: `aten/src/ATen/native/TypeProperties.cpp`, `combine_categories`.)
//!
//! ```
//! use ulpian_spec::ops::Scalar;
//! use ulpian_spec::promotion::{Operand, result_type};
//! use ulpian_spec::{DType, TensorType};
//!
//! let half = TensorType::new(DType::F16, [3]);
//! let zero_dim = TensorType::new(DType::F64, []);
//! // A 0-dimensional float64 does not widen a float16 tensor, nor does a Python float.
//! assert_eq!(result_type(&[Operand::Tensor(&half), Operand::Tensor(&zero_dim)]), DType::F16);
//! assert_eq!(result_type(&[Operand::Tensor(&half), Operand::Scalar(Scalar::Float(2.0))]), DType::F16);
//! // But a Python float turns integers into the default dtype.
//! let ints = TensorType::new(DType::I16, [3]);
//! assert_eq!(result_type(&[Operand::Tensor(&ints), Operand::Scalar(Scalar::Float(2.0))]), DType::F32);
//! ```

use crate::ops::{Scalar, TensorOrScalar};
use crate::{DType, TensorType};

/// The dtype of Python floats, and of a true division of integers.
pub const DEFAULT_DTYPE: DType = DType::F32;

/// What takes part in a promotion.
#[derive(Debug, Clone, Copy)]
pub enum Operand<'t> {
    /// A tensor, of any dimension.
    Tensor(&'t TensorType),
    /// A Python scalar.
    Scalar(Scalar),
}

impl<'t> From<&'t TensorOrScalar<TensorType>> for Operand<'t> {
    fn from(operand: &'t TensorOrScalar<TensorType>) -> Operand<'t> {
        match operand {
            TensorOrScalar::Tensor(t) => Operand::Tensor(t),
            TensorOrScalar::Scalar(s) => Operand::Scalar(*s),
        }
    }
}

/// The dtype that the operands are promoted to; bool where there are none.
pub fn result_type(operands: &[Operand<'_>]) -> DType {
    let mut classes = [None; 3];
    for operand in operands {
        let (class, dtype) = match operand {
            Operand::Tensor(t) if t.shape.is_empty() => (1, t.dtype),
            Operand::Tensor(t) => (0, t.dtype),
            Operand::Scalar(Scalar::Bool(_)) => (2, DType::Bool),
            Operand::Scalar(Scalar::Int(_)) => (2, DType::I64),
            Operand::Scalar(Scalar::Float(_)) => (2, DEFAULT_DTYPE),
        };
        classes[class] = Some(classes[class].map_or(dtype, |d: DType| d.promote(dtype)));
    }
    let [dimensioned, zero_dimensional, scalars] = classes;
    combine(dimensioned, combine(zero_dimensional, scalars)).unwrap_or(DType::Bool)
}

fn combine(higher: Option<DType>, lower: Option<DType>) -> Option<DType> {
    match (higher, lower) {
        (Some(h), Some(l)) if !h.is_float() && (h == DType::Bool || l.is_float()) => Some(h.promote(l)),
        (Some(h), _) => Some(h),
        (None, l) => l,
    }
}
