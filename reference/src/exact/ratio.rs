//! Rational numbers other than zero: num / den 2^exp, den odd and positive, num odd.
//!
//! Nearly every value is dyadic (den = 1), for which all operations are shifts, additions and products. Fractions are kept
//! in lowest terms.

use std::cmp::Ordering;

use dashu_base::{BitTest, Gcd, Signed, SquareRoot, UnsignedAbs};
use dashu_int::{IBig, UBig};

use crate::round::scaled_integer;

/// Numerator and denominator together may have this many bits, and two dyadic exponents this distance, before a value is
/// no longer kept exactly.
pub(super) const EXACT_BITS: usize = 20_000;

/// The same for fractions that are not dyadic, whose sums and common divisors cost more.
const FRACTION_BITS: usize = 6_000;

/// A rational number other than zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ratio {
    pub(super) num: IBig,
    pub(super) den: UBig,
    pub(super) exp: i64,
}

impl Ratio {
    /// num / den 2^exp in lowest terms; `None` for zero.
    pub(super) fn new(num: IBig, den: UBig, exp: i64) -> Option<Ratio> {
        let twos = num.trailing_zeros()?;
        let (mut num, mut exp) = (if twos > 0 { num >> twos } else { num }, exp + twos as i64);
        let mut den = den;
        if !den.is_one() {
            let twos = den.trailing_zeros().expect("a denominator is positive");
            den >>= twos;
            exp -= twos as i64;
            let common = num.clone().unsigned_abs().gcd(&den);
            if !common.is_one() {
                num /= &common;
                den /= common;
            }
        }
        Some(Ratio { num, den, exp })
    }

    pub(super) fn dyadic(num: IBig, exp: i64) -> Option<Ratio> {
        Ratio::new(num, UBig::ONE, exp)
    }

    /// A finite float64, exactly; `None` for zero.
    pub(super) fn from_f64(x: f64) -> Option<Ratio> {
        let (m, e) = scaled_integer(x);
        Ratio::dyadic(IBig::from(m), e)
    }

    pub(super) fn from_int(n: i64) -> Option<Ratio> {
        Ratio::dyadic(IBig::from(n), 0)
    }

    pub(super) fn is_negative(&self) -> bool {
        self.num.is_negative()
    }

    pub(super) fn is_dyadic(&self) -> bool {
        self.den.is_one()
    }

    fn limit(&self, other: &Ratio) -> usize {
        if self.is_dyadic() && other.is_dyadic() { EXACT_BITS } else { FRACTION_BITS }
    }

    /// Bits of numerator and denominator.
    pub(super) fn bits(&self) -> usize {
        self.num.bit_len() + if self.is_dyadic() { 0 } else { self.den.bit_len() }
    }

    /// An exponent e with |x| < 2^e, off by at most 2.
    pub(super) fn top(&self) -> i64 {
        self.exp + self.num.bit_len() as i64 - self.den.bit_len() as i64 + 1
    }

    pub(super) fn neg(self) -> Ratio {
        Ratio { num: -self.num, ..self }
    }

    /// The sum: `None` in the option where it is zero, an error where it would be too large.
    pub(super) fn add(&self, other: &Ratio) -> Result<Option<Ratio>, TooLarge> {
        let gap = (self.exp - other.exp).unsigned_abs() as usize;
        if gap + self.bits() + other.bits() > self.limit(other) {
            return Err(TooLarge);
        }
        let exp = self.exp.min(other.exp);
        let left = &self.num << (self.exp - exp) as usize;
        let right = &other.num << (other.exp - exp) as usize;
        Ok(if self.den == other.den {
            Ratio::new(left + right, self.den.clone(), exp)
        } else {
            let num = left * IBig::from(other.den.clone()) + right * IBig::from(self.den.clone());
            Ratio::new(num, &self.den * &other.den, exp)
        })
    }

    pub(super) fn mul(&self, other: &Ratio) -> Result<Ratio, TooLarge> {
        if self.bits() + other.bits() > self.limit(other) {
            return Err(TooLarge);
        }
        let exp = self.exp.checked_add(other.exp).ok_or(TooLarge)?;
        let num = &self.num * &other.num;
        if self.is_dyadic() && other.is_dyadic() {
            return Ok(Ratio { num, den: UBig::ONE, exp });
        }
        Ratio::new(num, &self.den * &other.den, exp).ok_or(TooLarge)
    }

    pub(super) fn recip(&self) -> Ratio {
        let negative = self.is_negative();
        let num = IBig::from(self.den.clone());
        Ratio { num: if negative { -num } else { num }, den: self.num.clone().unsigned_abs(), exp: -self.exp }
    }

    pub(super) fn div(&self, other: &Ratio) -> Result<Ratio, TooLarge> {
        self.mul(&other.recip())
    }

    /// The square root, where it is rational; the number must be positive.
    pub(super) fn sqrt(&self) -> Option<Ratio> {
        if self.exp % 2 != 0 {
            return None;
        }
        let root = |n: &UBig| {
            let r = n.sqrt();
            (&r * &r == *n).then_some(r)
        };
        Some(Ratio {
            num: IBig::from(root(&self.num.clone().unsigned_abs())?),
            den: root(&self.den)?,
            exp: self.exp / 2,
        })
    }

    /// The greatest integer not above the number; an error where it would be too large.
    pub(super) fn floor(&self) -> Result<IBig, TooLarge> {
        if self.exp > EXACT_BITS as i64 {
            return Err(TooLarge);
        }
        if self.exp >= 0 {
            return Ok(floor_div(&self.num << self.exp as usize, &IBig::from(self.den.clone())));
        }
        if self.top() < -1 {
            return Ok(if self.is_negative() { IBig::NEG_ONE } else { IBig::ZERO });
        }
        Ok(floor_div(self.num.clone(), &(IBig::from(self.den.clone()) << (-self.exp) as usize)))
    }
}

fn floor_div(a: IBig, b: &IBig) -> IBig {
    let q = &a / b;
    if a.is_negative() && &q * b != a { q - IBig::ONE } else { q }
}

/// An exact result would take more bits than [`EXACT_BITS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooLarge;

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Ratio) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ratio {
    fn cmp(&self, other: &Ratio) -> Ordering {
        match (self.is_negative(), other.is_negative()) {
            (true, false) => return Ordering::Less,
            (false, true) => return Ordering::Greater,
            _ => {}
        }
        let negative = self.is_negative();
        let by_magnitude = |o: Ordering| if negative { o.reverse() } else { o };
        // `top` overestimates by less than 2.
        if (self.top() - other.top()).abs() > 2 {
            return by_magnitude(self.top().cmp(&other.top()));
        }
        let exp = self.exp.min(other.exp);
        let left = (&self.num << (self.exp - exp) as usize) * IBig::from(other.den.clone());
        let right = (&other.num << (other.exp - exp) as usize) * IBig::from(self.den.clone());
        left.cmp(&right)
    }
}
