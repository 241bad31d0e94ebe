//! `torch.nn.functional.gelu(input, approximate='none')`.

use super::args::{ArgReader, ArgWriter};
use super::{GeluApproximate, op_args, shapes};
use crate::{InferError, TensorType, ValueRef};

op_args! {
    /// x Phi(x), or its tanh approximation.
    Gelu {
        /// Any shape, floating-point.
        Required input,
        ;
        /// Which function.
        approximate: GeluApproximate,
    }
}

impl Gelu<ValueRef> {
    pub(crate) fn parse(args: &mut ArgReader<'_>) -> Result<Self, InferError> {
        let approximate = match args.text("approximate")?.as_deref() {
            None | Some("none") => GeluApproximate::None,
            Some("tanh") => GeluApproximate::Tanh,
            Some(_) => return Err(InferError::argument("approximate", "expected \"none\" or \"tanh\"")),
        };
        Ok(Gelu { input: args.tensor("input")?, approximate })
    }

    pub(crate) fn write(&self, args: &mut ArgWriter<'_>) {
        args.tensor("input", self.input);
        if self.approximate == GeluApproximate::Tanh {
            args.put("approximate", "tanh");
        }
    }
}

impl Gelu<TensorType> {
    pub(crate) fn infer(&self) -> Result<Vec<TensorType>, InferError> {
        shapes::require_float("input", &self.input, "gelu")?;
        Ok(vec![self.input.clone()])
    }
}
