//! `torch.matmul(input, other)`.

use super::args::{ArgReader, ArgWriter};
use super::{op_args, shapes};
use crate::{InferError, TensorType, ValueRef};

op_args! {
    /// Matrix product with PyTorch's rules for one-dimensional and batched operands.
    Matmul {
        /// At least one-dimensional.
        Required input,
        /// At least one-dimensional, of the same dtype.
        Required other,
        ;
    }
}

impl Matmul<ValueRef> {
    pub(crate) fn parse(args: &mut ArgReader<'_>) -> Result<Self, InferError> {
        Ok(Matmul { input: args.tensor("input")?, other: args.tensor("other")? })
    }

    pub(crate) fn write(&self, args: &mut ArgWriter<'_>) {
        args.tensor("input", self.input);
        args.tensor("other", self.other);
    }
}

impl Matmul<TensorType> {
    pub(crate) fn infer(&self) -> Result<Vec<TensorType>, InferError> {
        let (a, b) = (&self.input, &self.other);
        for (argument, t) in [("input", a), ("other", b)] {
            if t.shape.is_empty() {
                return Err(InferError::argument(
                    argument,
                    format!("expected at least one dimension, got {t}"),
                ));
            }
            shapes::refuse_bool(argument, t, "matmul")?;
        }
        shapes::require_dtype("other", b, "input", a)?;
        // A vector stands as a row on the left and as a column on the right.
        let (rows, inner, left_batch): (&[usize], usize, &[usize]) = match &a.shape[..] {
            [k] => (&[], *k, &[]),
            [batch @ .., m, k] => (std::slice::from_ref(m), *k, batch),
            [] => (&[], 0, &[]),
        };
        let (columns, other_inner, right_batch): (&[usize], usize, &[usize]) = match &b.shape[..] {
            [k] => (&[], *k, &[]),
            [batch @ .., k, n] => (std::slice::from_ref(n), *k, batch),
            [] => (&[], 0, &[]),
        };
        if inner != other_inner {
            return Err(InferError::argument(
                "other",
                format!(
                    "its inner size is {other_inner}, input's is {inner}: {a} cannot be multiplied by {b}"
                ),
            ));
        }
        let batch = shapes::broadcast_shapes(left_batch, right_batch).ok_or_else(|| {
            InferError::argument(
                "other",
                format!("batch sizes {right_batch:?} do not broadcast with input's {left_batch:?}"),
            )
        })?;
        Ok(vec![TensorType::new(a.dtype, [&batch[..], rows, columns].concat())])
    }
}
