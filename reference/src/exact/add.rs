//! add: input + alpha other.
//!
//! Special values: IEEE 754's of a product and a sum: 0 * inf and inf - inf are NaN, x + (-x) is +0, -0 + -0 is -0. A factor
//! alpha of 1 changes nothing. Integers wrap; bool is "or".

use ulpian_spec::ops::add::Add;

use super::mul::other;
use super::{Context, Source, Value, index};

pub(super) fn element(args: &Add<Source<'_>>, at: usize, cx: &Context<'_>) -> Value {
    let a = cx.get(&args.input, index::broadcast(at, cx.out_shape(), cx.shape(&args.input)));
    let b = other(&args.other, at, cx);
    let scaled = Value::from_scalar(args.alpha).mul(&b, cx.prec);
    cx.finish(a.add(&scaled, cx.prec))
}
