//! div: input / other, or that rounded to an integer toward minus infinity or zero.
//!
//! Radii: (rx + |q| ry) / min |y| and the quotient's rounding. A divisor whose ball holds zero leaves the quotient unknown.
//! With a rounding mode the result is exact where the whole ball of the quotient rounds to one integer, and unknown otherwise
//! (the exact evaluator can tell whether the quotient is an integer), as it is for quotients from 2^52 on.

use ulpian_spec::ops::RoundingMode;
use ulpian_spec::ops::div::Div;

use super::add::pointwise;
use super::ball::Ball;
use super::tensor::Balls;
use crate::dd::Dd;

pub(super) fn evaluate(args: &Div<&Balls>, shape: &[usize]) -> Balls {
    let mode = args.rounding_mode;
    pointwise(
        args.input,
        &args.other,
        shape,
        #[inline(always)]
        |x, y| match mode {
            None => x.div(y),
            Some(mode) => round(x.div(y), mode),
        },
    )
}

fn round(q: Ball, mode: RoundingMode) -> Ball {
    let size = q.center.hi.abs();
    if !(q.is_known() && size < 4503599627370496.0) {
        return Ball::UNKNOWN;
    }
    let to_integer = |x: f64| match mode {
        RoundingMode::Floor => x.floor(),
        RoundingMode::Trunc => x.trunc(),
    };
    // Both ends, moved outward by more than adding in float64 loses.
    let spread = q.radius + (q.center.lo.abs() + size * f64::EPSILON);
    let exact = q.radius == 0.0 && q.center.lo == 0.0;
    let (low, high) = if exact {
        (q.center.hi, q.center.hi)
    } else {
        ((q.center.hi - spread).next_down(), (q.center.hi + spread).next_up())
    };
    let (low, high) = (to_integer(low), to_integer(high));
    // Zero has a sign that depends on the operands, and -0.0 equals 0.0 here.
    if low == high && low != 0.0 { Ball { center: Dd::new(low), radius: 0.0 } } else { Ball::UNKNOWN }
}
