//! Extended real numbers over MPFR floats, and rounding to a format: nothing here comes from the reference.

use rug::float::Round;
use rug::ops::NegAssign;
use rug::{Float, Integer};
use ulpian_spec::DType;

/// An element: what IEEE 754 distinguishes, with real numbers at a working precision.
#[derive(Debug, Clone)]
pub enum Real {
    Nan,
    Inf { negative: bool },
    Zero { negative: bool, free: bool },
    Num(Float),
}

use Real::{Inf, Nan, Num, Zero};

pub const FREE_ZERO: Real = Zero { negative: false, free: true };
pub const PLUS_ZERO: Real = Zero { negative: false, free: false };

/// Bits lost to snapping: a result this far below its terms is taken for an exact zero, and a number is rounded to this many
/// bits fewer before it is rounded to the format, so that a tie computed with an error is seen as a tie.
pub const SLACK: u32 = 1400;

impl Real {
    pub fn from_f64(x: f64, prec: u32) -> Real {
        if x.is_nan() {
            Nan
        } else if x.is_infinite() {
            Inf { negative: x < 0.0 }
        } else if x == 0.0 {
            Zero { negative: x.is_sign_negative(), free: false }
        } else {
            Num(Float::with_val(prec, x))
        }
    }

    pub fn from_int(n: i64, prec: u32) -> Real {
        if n == 0 { PLUS_ZERO } else { Num(Float::with_val(prec, n)) }
    }

    pub fn negative(&self) -> Option<bool> {
        match self {
            Nan => None,
            Inf { negative } | Zero { negative, .. } => Some(*negative),
            Num(x) => Some(x.is_sign_negative()),
        }
    }

    pub fn neg(mut self) -> Real {
        match &mut self {
            Nan => {}
            Inf { negative } | Zero { negative, .. } => *negative = !*negative,
            Num(x) => x.neg_assign(),
        }
        self
    }

    pub fn add(&self, other: &Real, prec: u32) -> Real {
        match (self, other) {
            (Nan, _) | (_, Nan) => Nan,
            (Inf { negative: a }, Inf { negative: b }) => {
                if a == b {
                    self.clone()
                } else {
                    Nan
                }
            }
            (Inf { .. }, _) => self.clone(),
            (_, Inf { .. }) => other.clone(),
            (Zero { negative: a, free: f }, Zero { negative: b, free: g }) => {
                let fixed_plus = (!a && !f) || (!b && !g);
                Zero { negative: *a && *b, free: (*f || *g) && !fixed_plus }
            }
            (Zero { .. }, x) | (x, Zero { .. }) => x.clone(),
            (Num(a), Num(b)) => snapped(plus(a, b, prec), a, b, PLUS_ZERO),
        }
    }

    pub fn sub(&self, other: &Real, prec: u32) -> Real {
        self.add(&other.clone().neg(), prec)
    }

    pub fn mul(&self, other: &Real, prec: u32) -> Real {
        let negative = match (self.negative(), other.negative()) {
            (Some(a), Some(b)) => a != b,
            _ => return Nan,
        };
        let zero_free = |x: &Real| matches!(x, Zero { free: true, .. });
        match (self, other) {
            (Inf { .. }, Zero { .. }) | (Zero { .. }, Inf { .. }) => Nan,
            (Inf { .. }, _) | (_, Inf { .. }) => Inf { negative },
            (Zero { .. }, _) | (_, Zero { .. }) => {
                Zero { negative, free: zero_free(self) || zero_free(other) }
            }
            (Num(a), Num(b)) => number(Float::with_val(prec, a * b), negative),
            _ => Nan,
        }
    }

    pub fn div(&self, other: &Real, prec: u32) -> Real {
        let negative = match (self.negative(), other.negative()) {
            (Some(a), Some(b)) => a != b,
            _ => return Nan,
        };
        match (self, other) {
            (Inf { .. }, Inf { .. }) | (Zero { .. }, Zero { .. }) => Nan,
            (Inf { .. }, _) | (_, Zero { .. }) => Inf { negative },
            (Zero { free, .. }, _) => Zero { negative, free: *free },
            (_, Inf { .. }) => Zero { negative, free: false },
            (Num(a), Num(b)) => number(Float::with_val(prec, a / b), negative),
            _ => Nan,
        }
    }

    pub fn sqrt(&self, prec: u32) -> Real {
        match self {
            Num(x) if x.is_sign_negative() => Nan,
            Num(x) => Num(Float::with_val(prec, x.sqrt_ref())),
            Inf { negative: true } => Nan,
            other => other.clone(),
        }
    }

    /// The exact integer modulo 2^n in the dtype, or for bool whether it is other than zero.
    pub fn wrapped(&self, dtype: DType) -> i64 {
        let n = match self {
            Num(x) => x.to_integer().expect("finite"),
            _ => Integer::new(),
        };
        if dtype == DType::Bool {
            return i64::from(n != 0);
        }
        let low = n.to_u64_wrapping();
        match dtype {
            DType::I32 => i64::from(low as i32),
            DType::I16 => i64::from(low as i16),
            DType::I8 => i64::from(low as i8),
            DType::U8 => i64::from(low as u8),
            _ => low as i64,
        }
    }

    /// The correctly rounded value in a floating-point dtype, as float64, by the definition: the nearest multiple of the quantum.
    pub fn round(&self, dtype: DType) -> f64 {
        let x = match self {
            Nan => return f64::NAN,
            Inf { negative } => return if *negative { f64::NEG_INFINITY } else { f64::INFINITY },
            Zero { negative, .. } => return if *negative { -0.0 } else { 0.0 },
            Num(x) => Float::with_val(x.prec() - SLACK, x),
        };
        let (precision, least, greatest) = match dtype {
            DType::F64 => (53, -1022, 1023),
            DType::F32 => (24, -126, 127),
            DType::F16 => (11, -14, 15),
            DType::BF16 => (8, -126, 127),
            _ => unreachable!("integers are compared as such"),
        };
        // MPFR's exponent is one more than the IEEE one.
        let exponent = (x.get_exp().expect("finite, not zero") - 1).max(least);
        let quantum = exponent - precision + 1;
        let scaled = (x.clone() >> quantum).round_even();
        let rounded = scaled << quantum;
        let bound = Float::with_val(64, 1) << (greatest + 1);
        let magnitude = if rounded.clone().abs() >= bound { f64::INFINITY } else { rounded.to_f64().abs() };
        if x.is_sign_negative() { -magnitude } else { magnitude }
    }

    /// Does the real number lie within `radius` of `center` + `low`?
    pub fn within(&self, center: f64, low: f64, radius: f64) -> bool {
        match self {
            Nan => center.is_nan() && radius == 0.0,
            Inf { negative } => center.is_infinite() && (center < 0.0) == *negative && radius == 0.0,
            Zero { .. } | Num(_) => {
                let prec = if let Num(x) = self { x.prec() } else { 64 }.max(4400);
                let value = match self {
                    Num(x) => Float::with_val(x.prec() - SLACK, x),
                    _ => Float::new(64),
                };
                let mut distance = Float::with_val(prec, &value - center);
                distance -= low;
                radius == f64::INFINITY || distance.abs() <= radius
            }
        }
    }
}

/// The sum of numbers other than zero. A term that no working precision would show (gelu far below zero is some 2^-100000) still
/// decides on which side of a tie the sum lies, so it stands there as a number that survives, far below every format's last place.
fn plus(a: &Float, b: &Float, prec: u32) -> Float {
    let exponent = |x: &Float| x.get_exp().expect("finite, not zero");
    let (large, small) = if exponent(a) >= exponent(b) { (a, b) } else { (b, a) };
    let least = exponent(large) - (prec - SLACK - 64) as i32;
    if exponent(small) >= least {
        return Float::with_val(prec, large + small);
    }
    let unit = Float::with_val(prec, 1);
    let kept = if least >= 0 { unit << least.unsigned_abs() } else { unit >> least.unsigned_abs() };
    if small.is_sign_negative() {
        Float::with_val(prec, large - kept)
    } else {
        Float::with_val(prec, large + kept)
    }
}

/// The sum, or an exact zero where nothing is left of the terms but their own errors.
fn snapped(sum: Float, a: &Float, b: &Float, zero: Real) -> Real {
    let largest = a.get_exp().max(b.get_exp()).expect("finite, not zero");
    match sum.get_exp() {
        Some(e) if e > largest - (sum.prec() - SLACK) as i32 => Num(sum),
        _ => zero,
    }
}

/// The sum of several terms: a zero is +0 of free sign.
pub fn sum(terms: &[Real], prec: u32) -> Real {
    let mut total: Option<Float> = None;
    let mut largest = i32::MIN;
    let mut infinite = None;
    for term in terms {
        match term {
            Nan => return Nan,
            Inf { negative } => match infinite {
                Some(n) if n != *negative => return Nan,
                _ => infinite = Some(*negative),
            },
            Zero { .. } => {}
            Num(x) => {
                largest = largest.max(x.get_exp().expect("finite, not zero"));
                total = Some(match total {
                    None => Float::with_val(prec, x),
                    Some(t) if t.is_zero() => Float::with_val(prec, x),
                    Some(t) => plus(&t, x, prec),
                });
            }
        }
    }
    if let Some(negative) = infinite {
        // A NaN later in the list would have returned.
        return Inf { negative };
    }
    match total {
        Some(t) if !t.is_zero() && t.get_exp().expect("finite") > largest - (prec - SLACK) as i32 => Num(t),
        _ => FREE_ZERO,
    }
}

/// e^x for a real number or an infinity; MPFR's rounding to nearest.
pub fn exp(x: &Real, prec: u32) -> Real {
    match x {
        Nan => Nan,
        Inf { negative: true } => PLUS_ZERO,
        Inf { negative: false } => x.clone(),
        Zero { .. } => Real::from_int(1, prec),
        Num(x) => {
            let y = Float::with_val_round(prec, x.exp_ref(), Round::Nearest).0;
            number(y, false)
        }
    }
}

/// A product or quotient of numbers other than zero, which MPFR's exponents may not hold.
fn number(x: Float, negative: bool) -> Real {
    if x.is_zero() { tiny(negative, x.prec()) } else { Num(x) }
}

/// A number that rounds to a zero of this sign in every format, in place of one below MPFR's exponents.
pub fn tiny(negative: bool, prec: u32) -> Real {
    let x: Float = Float::with_val(prec, 1) >> 1_000_000_000;
    Num(if negative { -x } else { x })
}
