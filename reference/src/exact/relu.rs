//! relu: max(x, 0).
//!
//! Special values: NaN stays NaN; +inf stays; -inf and negative numbers give +0. relu(0) is a zero whose sign is free: PyTorch
//! 2.11 returns -0 for -0 on CPU, maximum(x, 0) may return either.

use dashu_base::Sign;
use ulpian_spec::ops::relu::Relu;

use super::ball::Ball;
use super::{Context, Source, Value};

pub(super) fn element(args: &Relu<Source<'_>>, index: usize, cx: &Context<'_>) -> Value {
    let x = cx.get(&args.input, index);
    match (&x, x.sign()) {
        (Value::Zero { sign, .. }, _) if cx.out_dtype().is_float() => Value::Zero { sign: *sign, free: true },
        (Value::Nan | Value::Unknown | Value::Zero { .. }, _) | (_, Some(Sign::Positive)) => x,
        (_, Some(Sign::Negative)) => Value::ZERO,
        // The ball holds zero, so it holds both x and 0.
        (Value::Ball(b, _), None) => Value::enclosed(Ball { side: None, ..b.clone() }),
        _ => Value::Unknown,
    }
}
