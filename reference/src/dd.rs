//! Double-double arithmetic: unevaluated sums hi + lo of two float64 with |lo| <= ulp(hi) / 2.
//!
//! Bounds, u = 2^-53, relative to the exact result, barring under- and overflow:
//!
//! | function | algorithm | proved bound | constant |
//! |---|---|---|---|
//! | [`Dd::add`] | 6, AccurateDWPlusDW | 3 u^2 / (1 - 4u) | [`ADD`] = 4 u^2 |
//! | [`Dd::add_f64`] | 4, DWPlusFP | 2 u^2 | [`ADD`] |
//! | [`Dd::mul`] | 12, DWTimesDW3 | 5 u^2 | [`MUL`] = 8 u^2 |
//! | [`Dd::mul_f64`] | 9, DWTimesFP3 | 2 u^2 | [`MUL`] |
//! | [`Dd::div`] | 17, DWDivDW2 | 15 u^2 + 56 u^3 | [`DIV`] = 16 u^2 |
//! | [`Dd::sqrt`] | SQRTDWtoDW | 25/8 u^2 | [`ADD`] |
//!
//! Numbers of the algorithms: Joldes, Muller, Popescu, Tight and rigorous error bounds for basic building blocks of
//! double-word arithmetic, ACM TOMS 44 (2017); bounds as checked formally in Muller, Rideau, Formalization of
//! double-word arithmetic, and comments on (...), ACM TOMS 48 (2022). Square root: Lefèvre, Louvet, Muller, Picot,
//! Rideau, Accurate calculation of Euclidean norms using double-word arithmetic, ACM TOMS 49 (2023), algorithm 8.
//!
//! Underflow: sums are exact or have the bound whatever the size. A product or quotient whose error terms fall below
//! 2^-1074 misses the bound by at most [`TINY`]; whoever multiplies numbers that may be so small adds it (see
//! `balls::ball`). Overflow gives infinities or NaN.
//!
//! Special values: not treated; a result that is not finite means nothing beyond that, and the sign of a zero nothing
//! at all.

use crate::eft::{fast_two_sum, two_prod, two_sum};

/// Relative error bound of a sum or a square root.
pub(crate) const ADD: f64 = f64::from_bits((1023 - 104) << 52);
/// Relative error bound of a product.
pub(crate) const MUL: f64 = f64::from_bits((1023 - 103) << 52);
/// Relative error bound of a quotient.
pub(crate) const DIV: f64 = f64::from_bits((1023 - 102) << 52);
/// 2^-1060: more than any product or quotient loses through underflow of its error terms where the operands are at most
/// 2^8 in the term that multiplies the loss.
pub(crate) const TINY: f64 = f64::from_bits(1 << (1074 - 1060));

/// hi + lo.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Dd {
    pub(crate) hi: f64,
    pub(crate) lo: f64,
}

impl Dd {
    /// Zero.
    pub(crate) const ZERO: Dd = Dd { hi: 0.0, lo: 0.0 };

    /// A float64, exactly.
    #[inline(always)]
    pub(crate) const fn new(x: f64) -> Dd {
        Dd { hi: x, lo: 0.0 }
    }

    /// a + b exactly.
    #[inline(always)]
    pub(crate) fn sum(a: f64, b: f64) -> Dd {
        let (hi, lo) = two_sum(a, b);
        Dd { hi, lo }
    }

    #[inline(always)]
    fn fast(a: f64, b: f64) -> Dd {
        let (hi, lo) = fast_two_sum(a, b);
        Dd { hi, lo }
    }

    #[inline(always)]
    pub(crate) fn neg(self) -> Dd {
        Dd { hi: -self.hi, lo: -self.lo }
    }

    #[inline(always)]
    pub(crate) fn abs(self) -> Dd {
        if self.hi < 0.0 { self.neg() } else { self }
    }

    #[inline(always)]
    pub(crate) fn add(self, b: Dd) -> Dd {
        let (sh, sl) = two_sum(self.hi, b.hi);
        let (th, tl) = two_sum(self.lo, b.lo);
        let v = Dd::fast(sh, sl + th);
        Dd::fast(v.hi, tl + v.lo)
    }

    #[inline(always)]
    pub(crate) fn sub(self, b: Dd) -> Dd {
        self.add(b.neg())
    }

    #[inline(always)]
    pub(crate) fn add_f64(self, b: f64) -> Dd {
        let (sh, sl) = two_sum(self.hi, b);
        Dd::fast(sh, self.lo + sl)
    }

    #[inline(always)]
    pub(crate) fn mul(self, b: Dd) -> Dd {
        let (ch, cl1) = two_prod(self.hi, b.hi);
        let tl0 = self.lo * b.lo;
        let tl1 = self.hi.mul_add(b.lo, tl0);
        let cl2 = self.lo.mul_add(b.hi, tl1);
        Dd::fast(ch, cl1 + cl2)
    }

    #[inline(always)]
    pub(crate) fn mul_f64(self, b: f64) -> Dd {
        let (ch, cl1) = two_prod(self.hi, b);
        Dd::fast(ch, self.lo.mul_add(b, cl1))
    }

    /// Times a power of two, exactly but for under- and overflow.
    #[inline(always)]
    pub(crate) fn scale(self, power: f64) -> Dd {
        Dd { hi: self.hi * power, lo: self.lo * power }
    }

    #[inline(always)]
    pub(crate) fn div(self, b: Dd) -> Dd {
        let th = self.hi / b.hi;
        let r = b.mul_f64(th);
        let d = (self.hi - r.hi) + (self.lo - r.lo);
        Dd::fast(th, d / b.hi)
    }

    /// Of a positive number.
    #[inline(always)]
    pub(crate) fn sqrt(self) -> Dd {
        let sh = self.hi.sqrt();
        let rest = self.lo + (-sh).mul_add(sh, self.hi);
        Dd::fast(sh, rest / (2.0 * sh))
    }

    /// Is the sum less than `b`'s?
    #[inline(always)]
    pub(crate) fn lt(self, b: Dd) -> bool {
        self.hi < b.hi || (self.hi == b.hi && self.lo < b.lo)
    }
}

#[cfg(test)]
mod tests {
    use dashu_int::IBig;

    use super::*;
    use crate::round::scaled_integer;

    const UNIT: usize = 1400;

    /// The number as an integer multiple of 2^-UNIT.
    fn fixed(x: Dd) -> IBig {
        [x.hi, x.lo]
            .into_iter()
            .filter(|&part| part != 0.0)
            .map(|part| {
                let (m, e) = scaled_integer(part);
                IBig::from(m) << usize::try_from(e + UNIT as i64).expect("within the fixed-point range")
            })
            .fold(IBig::ZERO, |s, t| s + t)
    }

    /// |got - want| <= |want| 2^-bits, with got and want scaled by 2^(2 UNIT).
    fn within(got: &IBig, want: &IBig, bits: usize) -> bool {
        let error: IBig = got - want;
        let (_, error) = error.into_parts();
        let (_, want) = want.clone().into_parts();
        (error << bits) <= want
    }

    fn next(state: &mut u64) -> Dd {
        let mut bits = || {
            *state ^= *state << 13;
            *state ^= *state >> 7;
            *state ^= *state << 17;
            *state
        };
        let hi = f64::from_bits((bits() & !(0x7ff << 52)) | ((1023 - 20 + bits() % 40) << 52));
        // A low part anywhere below half an ulp, now and then at its edge or zero.
        let lo = match bits() % 8 {
            0 => 0.0,
            1 => hi.abs() * f64::EPSILON / 4.0,
            k => hi.abs() * f64::EPSILON / 4.0 * (bits() >> 11) as f64 / (1u64 << (53 + k)) as f64,
        };
        Dd::fast(hi, if bits() % 2 == 0 { lo } else { -lo })
    }

    #[test]
    fn errors_stay_within_the_proved_bounds() {
        let mut state = 0x2545_f491_4f6c_dd1du64;
        for i in 0..40_000 {
            let a = next(&mut state);
            let mut b = next(&mut state);
            if i % 4 == 0 {
                // Cancellation.
                b = Dd::fast(-a.hi * (1.0 + f64::from(i % 32) * f64::EPSILON), b.lo * (a.hi / b.hi));
            }
            let (fa, fb) = (fixed(a), fixed(b));
            assert!(within(&fixed(a.add(b)), &(&fa + &fb), 104), "{a:?} + {b:?}");
            assert!(within(&fixed(a.add_f64(b.hi)), &(&fa + fixed(Dd::new(b.hi))), 104));
            assert!(within(&(fixed(a.mul(b)) << UNIT), &(&fa * &fb), 103), "{a:?} * {b:?}");
            assert!(within(&(fixed(a.mul_f64(b.hi)) << UNIT), &(&fa * fixed(Dd::new(b.hi))), 103));
            let quotient = fixed(a.div(b)) * &fb;
            assert!(within(&quotient, &(&fa << UNIT), 102), "{a:?} / {b:?}");
            let a = a.abs();
            let root = fixed(a.sqrt());
            // (1 + e)^2 = 1 + 2e + e^2
            assert!(within(&(&root * &root), &(fixed(a) << UNIT), 103), "sqrt {a:?}");
        }
    }
}
