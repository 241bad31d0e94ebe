//! From a value at some precision to the result: its correct rounding and an enclosure in float64.
//!
//! A rational number is rounded with integers; it decides ties. A ball is decided where both its ends round to the same
//! element of the format; a ball around zero inside half the least subnormal number is a zero, of the sign that the ball
//! tells, and free where it tells none.

use dashu_base::{BitTest, Sign, UnsignedAbs};
use dashu_int::{IBig, UBig};
use ulpian_spec::DType;
use ulpian_spec::dtype::FloatFormat;

use super::ball::{Ball, Ends, Mag};
use super::ratio::Ratio;
use super::value::Value;
use crate::round::{round_scaled, scaled_integer};

/// The result of one element.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Resolved {
    /// The correctly rounded result, exactly representable in the dtype; NaN, infinities and the sign of zero included. For
    /// integer dtypes the nearest float64 to `integer`.
    pub(crate) value: f64,
    /// The result where the dtype is an integer or bool.
    pub(crate) integer: i64,
    /// Centre of the enclosure; NaN or an infinity where the result is no real number.
    pub(crate) hi: f64,
    /// The part of the centre below `hi`'s last place.
    pub(crate) lo: f64,
    /// The real number lies within this of hi + lo.
    pub(crate) radius: f64,
    /// `value` (or `integer`) is certain.
    pub(crate) decided: bool,
    /// The result is a zero whose sign IEEE leaves to the order of operations.
    pub(crate) zero_sign_free: bool,
}

impl Resolved {
    fn special(x: f64) -> Resolved {
        Resolved { value: x, integer: 0, hi: x, lo: 0.0, radius: 0.0, decided: true, zero_sign_free: false }
    }

    /// Nothing is known.
    fn unknown() -> Resolved {
        Resolved { radius: f64::INFINITY, decided: false, ..Resolved::special(0.0) }
    }

    /// The result of a value in a dtype. With `insist_on_sign` a zero's sign must be known to count as decided.
    pub(super) fn new(value: &Value, dtype: DType, insist_on_sign: bool) -> Resolved {
        let Some(fmt) = dtype.float_format() else {
            return match value.as_integer().map(|n| i64::try_from(&n)) {
                Some(Ok(n)) => {
                    let (hi, lo, radius) = split(&IBig::from(n), 0, Mag::ZERO);
                    Resolved { integer: n, hi, lo, radius, ..Resolved::special(n as f64) }
                }
                _ => Resolved::unknown(),
            };
        };
        match value {
            Value::Nan => Resolved::special(f64::NAN),
            Value::Infinite(s) => Resolved::special(signed(*s, f64::INFINITY)),
            Value::Zero { sign, free } => {
                Resolved { value: signed(*sign, 0.0), zero_sign_free: *free, ..Resolved::special(0.0) }
            }
            Value::Exact(r) => exact(r, fmt),
            Value::Ball(b, _) => ball(b, fmt, insist_on_sign),
            Value::Unknown => Resolved::unknown(),
        }
    }
}

fn signed(sign: Sign, x: f64) -> f64 {
    if sign == Sign::Negative { -x } else { x }
}

/// Numbers this small or great round to zero or infinity in every format.
const EXTREME: i64 = 5000;

fn exact(r: &Ratio, fmt: FloatFormat) -> Resolved {
    let sign = if r.is_negative() { Sign::Negative } else { Sign::Positive };
    if r.top() > EXTREME || r.top() < -EXTREME {
        let value = if r.top() > 0 { f64::INFINITY } else { 0.0 };
        let (hi, radius) = if r.top() > 0 { (f64::MAX, f64::INFINITY) } else { (0.0, f64::from_bits(1)) };
        return Resolved {
            value: signed(sign, value),
            hi: signed(sign, hi),
            radius,
            ..Resolved::special(0.0)
        };
    }
    // 192 bits of the quotient and whether anything is left.
    let magnitude = r.num.clone().unsigned_abs();
    let shift = if r.is_dyadic() { 0 } else { (192 + r.den.bit_len()).saturating_sub(magnitude.bit_len()) };
    let scaled = magnitude << shift;
    let quotient = &scaled / &r.den;
    let sticky = !r.is_dyadic() && &quotient * &r.den != scaled;
    let exp = r.exp - shift as i64;
    let value = round_scaled(fmt, sign, &quotient, exp, sticky);
    let rad = if sticky { Mag::pow2(exp) } else { Mag::ZERO };
    let quotient = IBig::from_parts(sign, quotient);
    let (hi, lo, radius) = split(&quotient, exp, rad);
    Resolved { value, hi, lo, radius, ..Resolved::special(0.0) }
}

fn ball(b: &Ball, fmt: FloatFormat, insist_on_sign: bool) -> Resolved {
    let (hi, lo, radius) = split(&b.mid, b.exp, b.rad);
    let undecided = |value: f64| Resolved { value, hi, lo, radius, decided: false, ..Resolved::special(0.0) };
    let Some(Ends { low, high, exp, low_open, high_open }) = b.ends() else {
        return undecided(hi);
    };
    // An open end stands for the numbers just inside it.
    let lower = round_end(fmt, &low, exp, low_open.then_some(Sign::Positive));
    let upper = round_end(fmt, &high, exp, high_open.then_some(Sign::Negative));
    let (value, free) = if lower.to_bits() == upper.to_bits() {
        (lower, false)
    } else if lower == 0.0 && upper == 0.0 {
        match b.sign() {
            Some(sign) => (signed(sign, 0.0), false),
            None if insist_on_sign => return undecided(0.0),
            None => (0.0, true),
        }
    } else {
        return undecided(round_end(fmt, &b.mid, b.exp, None));
    };
    Resolved { value, hi, lo, radius, zero_sign_free: free, ..Resolved::special(0.0) }
}

/// The rounding of n 2^e, or of the numbers next to it on one side.
fn round_end(fmt: FloatFormat, n: &IBig, e: i64, side: Option<Sign>) -> f64 {
    let magnitude: UBig = n.clone().unsigned_abs();
    let Some(side) = side else {
        return round_scaled(fmt, n.sign(), &magnitude, e, false);
    };
    if n.is_zero() {
        return signed(side, 0.0);
    }
    // Bits enough for the format below n's own, then n or its predecessor in magnitude with a rest.
    let magnitude = magnitude << 64;
    let outward = side == n.sign();
    let magnitude = if outward { magnitude } else { magnitude - UBig::ONE };
    round_scaled(fmt, n.sign(), &magnitude, e - 64, true)
}

/// mid 2^e within rad as hi + lo within a radius, hi and lo in float64. Beyond float64's range hi is its greatest finite number
/// and the radius an infinity.
fn split(mid: &IBig, e: i64, rad: Mag) -> (f64, f64, f64) {
    let f64_format = DType::F64.float_format().expect("a float dtype");
    let nearest = |n: &IBig| round_scaled(f64_format, n.sign(), &n.clone().unsigned_abs(), e, false) + 0.0;
    let hi = nearest(mid);
    if hi.is_infinite() {
        return (f64::MAX.copysign(hi), 0.0, f64::INFINITY);
    }
    let rest = subtract(mid, e, hi);
    let Ok((rest, rest_exp)) = rest else {
        return (hi, 0.0, rad.add(Mag::of(mid, e)).to_f64());
    };
    let lo = round_scaled(f64_format, rest.sign(), &rest.clone().unsigned_abs(), rest_exp, false) + 0.0;
    match subtract(&rest, rest_exp, lo) {
        Ok((left, left_exp)) => (hi, lo, rad.add(Mag::of(&left, left_exp)).to_f64()),
        Err(()) => (hi, lo, rad.add(Mag::of(&rest, rest_exp)).to_f64()),
    }
}

/// n 2^e - x exactly; an error where n 2^e is too small for it, and x then is zero.
fn subtract(n: &IBig, e: i64, x: f64) -> Result<(IBig, i64), ()> {
    let (m, xe) = scaled_integer(x);
    if m == 0 {
        return if n.is_zero() || e > -20_000 { Ok((n.clone(), e)) } else { Err(()) };
    }
    if n.is_zero() {
        return Ok((IBig::from(-m), xe));
    }
    let exp = e.min(xe);
    Ok(((n << (e - exp) as usize) - (IBig::from(m) << (xe - exp) as usize), exp))
}
