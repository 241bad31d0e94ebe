//! gelu: x Phi(x) = 0.5 x erfc(-x / sqrt 2), or 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) with the real sqrt(2/pi) and the
//! decimal fraction 0.044715.
//!
//! Special values, by continuity: NaN stays NaN, +inf gives +inf, -inf gives a zero (the limit is approached from below: -0,
//! its sign free; PyTorch 2.11 on CPU returns NaN there). A zero stays as it is.

use dashu_base::Sign;
use ulpian_spec::ops::GeluApproximate;
use ulpian_spec::ops::gelu::Gelu;

use super::form::Function;
use super::{Context, Source, Value, functions};

pub(super) fn element(args: &Gelu<Source<'_>>, index: usize, cx: &Context<'_>) -> Value {
    let x = cx.get(&args.input, index);
    let ball = match &x {
        Value::Infinite(Sign::Negative) => return Value::Zero { sign: Sign::Negative, free: true },
        Value::Exact(r) if r.is_dyadic() => x.to_ball(r.bits()),
        Value::Exact(_) | Value::Ball(..) => x.to_ball(cx.prec + 64),
        _ => return x,
    };
    let (y, function) = match args.approximate {
        GeluApproximate::None => (ball.and_then(|b| functions::gelu(&b, cx.prec)), Function::Gelu),
        GeluApproximate::Tanh => (ball.and_then(|b| functions::gelu_tanh(&b, cx.prec)), Function::GeluTanh),
    };
    y.map_or(Value::Unknown, |y| Value::real(y, x.applied(function, cx.prec)))
}
