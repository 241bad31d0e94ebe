//! `torch.nn.functional.dropout(input, p=0.5, training=True)`, with the mask as an extra operand.

use super::args::{ArgReader, ArgWriter};
use super::{op_args, shapes};
use crate::{InferError, TensorType, ValueRef};

op_args! {
    /// In training x * mask / (1 - p); the identity otherwise.
    Dropout {
        /// Any shape, floating-point in training.
        Required input,
        /// Which elements are kept: bool, or 0 and 1, of `input`'s shape.
        Optional mask,
        ;
        /// Probability of dropping an element, in [0, 1].
        p: f64,
        /// Drop at all.
        training: bool,
    }
}

impl Dropout<ValueRef> {
    pub(crate) fn parse(args: &mut ArgReader<'_>) -> Result<Self, InferError> {
        Ok(Dropout {
            input: args.tensor("input")?,
            mask: args.optional_tensor("mask")?,
            p: args.float("p", 0.5)?,
            training: args.bool("training", true)?,
        })
    }

    pub(crate) fn write(&self, args: &mut ArgWriter<'_>) {
        args.tensor("input", self.input);
        args.float("p", self.p, 0.5);
        args.unless_default("training", self.training, true);
        args.optional_tensor("mask", self.mask);
    }
}

impl Dropout<TensorType> {
    pub(crate) fn infer(&self) -> Result<Vec<TensorType>, InferError> {
        if !(0.0..=1.0).contains(&self.p) {
            return Err(InferError::argument("p", format!("expected a probability, 0 to 1, got {}", self.p)));
        }
        if self.training && self.p > 0.0 && self.p < 1.0 {
            shapes::require_float("input", &self.input, "dropout in training")?;
        }
        if let Some(mask) = &self.mask {
            shapes::require_shape("mask", mask, &self.input.shape)?;
        }
        Ok(vec![self.input.clone()])
    }
}
