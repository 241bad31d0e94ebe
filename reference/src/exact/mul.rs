//! mul: input * other.
//!
//! Special values: IEEE 754's: 0 * inf is NaN, the sign of a zero is the product of the signs. Integers wrap; bool is "and".

use ulpian_spec::ops::TensorOrScalar;
use ulpian_spec::ops::mul::Mul;

use super::{Context, Source, Value, index};

pub(super) fn element(args: &Mul<Source<'_>>, at: usize, cx: &Context<'_>) -> Value {
    let a = cx.get(&args.input, index::broadcast(at, cx.out_shape(), cx.shape(&args.input)));
    cx.finish(a.mul(&other(&args.other, at, cx), cx.prec))
}

/// The element of a broadcast operand for output position `at`. A Python float is its float64, exactly.
pub(super) fn other(operand: &TensorOrScalar<Source<'_>>, at: usize, cx: &Context<'_>) -> Value {
    match operand {
        TensorOrScalar::Tensor(t) => cx.get(t, index::broadcast(at, cx.out_shape(), cx.shape(t))),
        TensorOrScalar::Scalar(s) => Value::from_scalar(*s),
    }
}
