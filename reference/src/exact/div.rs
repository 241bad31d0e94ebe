//! div: input / other, and with a rounding mode floor or trunc of that exact quotient.
//!
//! Special values: IEEE 754's: x / 0 is an infinity, 0 / 0 and inf / inf are NaN, x / inf is a zero. The rounding modes apply
//! to that quotient: infinities and zeros stay, so floor(-2.3 / inf) is -0 (PyTorch 2.11 on CPU returns -1, and NaN for
//! inf / 1; its documentation is silent). A negative quotient above -1 truncates to -0.
//!
//! Integers: both operands are first converted to the result's dtype, the quotient wraps (the least number by -1). Division
//! by zero is an error, as in PyTorch.

use dashu_base::Sign;
use dashu_int::IBig;
use ulpian_spec::ops::RoundingMode;
use ulpian_spec::ops::div::Div;

use super::mul::other;
use super::ratio::Ratio;
use super::{Context, Source, Value, index};

pub(super) fn element(args: &Div<Source<'_>>, at: usize, cx: &Context<'_>) -> Value {
    let a = cx.get(&args.input, index::broadcast(at, cx.out_shape(), cx.shape(&args.input)));
    let b = other(&args.other, at, cx);
    if cx.out_dtype().is_float() {
        let quotient = a.div(&b, cx.prec);
        return match args.rounding_mode {
            None => quotient,
            Some(mode) => rounded(quotient, mode),
        };
    }
    let (a, b) = (a.wrapped(cx.out_dtype()), b.wrapped(cx.out_dtype()));
    if b.is_zero() {
        return cx.division_by_zero();
    }
    let mode = args.rounding_mode.unwrap_or(RoundingMode::Trunc);
    cx.finish(rounded(a.div(&b, cx.prec), mode))
}

fn rounded(x: Value, mode: RoundingMode) -> Value {
    if mode == RoundingMode::Trunc && x.sign() == Some(Sign::Negative) {
        return rounded(x.neg(), RoundingMode::Floor).neg();
    }
    let floor: Option<IBig> = match &x {
        Value::Exact(r) => match r.floor() {
            Ok(n) => Some(n),
            // Beyond any integer part worth writing out, the number is an integer already or stays undecided.
            Err(_) if r.is_dyadic() && r.exp >= 0 => return x,
            Err(_) => None,
        },
        Value::Ball(b, _) if mode == RoundingMode::Floor || b.sign().is_some() => b.floor(),
        // Around zero: truncated to zero if within (-1, 1).
        Value::Ball(b, _) if b.magnitude().top() <= 0 => return Value::FREE_ZERO,
        Value::Ball(..) => None,
        _ => return x,
    };
    match floor {
        Some(n) => Ratio::dyadic(n, 0).map_or(Value::ZERO, Value::Exact),
        None => Value::Unknown,
    }
}
