//! Balls: midpoint m 2^e of arbitrary precision, radius of 32 bits rounded up, and what is known beyond the radius.
//!
//! A ball stands for one real number x with |x - mid| <= rad; with `side`, x is moreover strictly on that side of mid. A
//! side with mid = 0 is a known sign without a known size, which is what e^-10^300 has; a side with mid = 1 is a number just
//! above or below 1, which rounds as such even where the format's next midpoint is 1.
//!
//! Error: each operation adds to the propagated radius (given beside it) at most one unit in the last place of the midpoint
//! it keeps; radii are computed in integers, each step rounded up.

use dashu_base::{BitTest, Sign, Signed, SquareRoot, UnsignedAbs};
use dashu_int::{IBig, UBig};

use super::ratio::Ratio;
use crate::round::exp2i;

/// A real number that is not negative, as an upper bound: m 2^e, m = 0 or 2^31 <= m < 2^32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mag {
    m: u64,
    e: i64,
}

/// Exponents below this are raised to it, so that sums of exponents do not overflow.
const LEAST_EXPONENT: i64 = -(1 << 60);

impl Mag {
    pub(super) const ZERO: Mag = Mag { m: 0, e: 0 };

    /// At least m 2^e.
    pub(super) fn new(m: u128, e: i64) -> Mag {
        if m == 0 {
            return Mag::ZERO;
        }
        let bits = 128 - m.leading_zeros() as i64;
        let (m, e) = if bits <= 32 {
            (m << (32 - bits), e - (32 - bits))
        } else {
            let shift = bits - 32;
            let kept = (m >> shift) + u128::from(m & ((1 << shift) - 1) != 0);
            if kept >> 32 == 0 { (kept, e + shift) } else { (kept >> 1, e + shift + 1) }
        };
        Mag { m: m as u64, e: e.max(LEAST_EXPONENT) }
    }

    /// 2^e.
    pub(super) fn pow2(e: i64) -> Mag {
        Mag::new(1, e)
    }

    /// At least |n| 2^e.
    pub(super) fn of(n: &IBig, e: i64) -> Mag {
        let bits = n.bit_len();
        if bits <= 64 {
            let m = u64::try_from(n.clone().unsigned_abs()).expect("at most 64 bits");
            return Mag::new(u128::from(m), e);
        }
        let shift = bits - 63;
        let m = u64::try_from(n.clone().unsigned_abs() >> shift).expect("at most 63 bits");
        Mag::new(u128::from(m) + 1, e + shift as i64)
    }

    pub(super) fn is_zero(self) -> bool {
        self.m == 0
    }

    /// An exponent t with the bound below 2^t.
    pub(super) fn top(self) -> i64 {
        self.e + 32
    }

    pub(super) fn add(self, other: Mag) -> Mag {
        let (a, b) =
            if self.m == 0 || (other.m != 0 && other.e > self.e) { (other, self) } else { (self, other) };
        if b.m == 0 {
            return a;
        }
        let gap = a.e - b.e;
        if gap > 64 {
            return Mag::new(u128::from(a.m) + 1, a.e);
        }
        Mag::new((u128::from(a.m) << gap) + u128::from(b.m), b.e)
    }

    pub(super) fn mul(self, other: Mag) -> Mag {
        Mag::new(u128::from(self.m) * u128::from(other.m), self.e + other.e)
    }

    /// self / (n 2^e), n > 0.
    fn div_by(self, n: &UBig, e: i64) -> Mag {
        if self.m == 0 {
            return Mag::ZERO;
        }
        let bits = n.bit_len();
        let (low, e) = if bits <= 32 {
            (u64::try_from(n.clone()).expect("at most 32 bits"), e)
        } else {
            let shift = bits - 32;
            (u64::try_from(n >> shift).expect("32 bits"), e + shift as i64)
        };
        Mag::new((u128::from(self.m) << 64) / u128::from(low) + 1, self.e - e - 64)
    }

    /// A float64 not below.
    pub(super) fn to_f64(self) -> f64 {
        if self.m == 0 {
            0.0
        } else if self.e > 1000 {
            f64::INFINITY
        } else if self.e >= -1074 {
            // Exact: a multiple of 2^-1074 of 32 bits.
            self.m as f64 * exp2i(self.e)
        } else {
            let shift = -1074 - self.e;
            f64::from_bits(if shift >= 32 { 1 } else { (self.m >> shift) + 1 })
        }
    }

    /// The least integer N with N 2^e not below; `None` where it has more than `limit` bits.
    pub(super) fn units(self, e: i64, limit: i64) -> Option<IBig> {
        if self.m == 0 {
            return Some(IBig::ZERO);
        }
        let shift = self.e - e;
        if shift > limit {
            None
        } else if shift >= 0 {
            Some(IBig::from(self.m) << shift as usize)
        } else if shift < -40 {
            Some(IBig::ONE)
        } else {
            let kept = self.m >> -shift;
            Some(IBig::from(kept + u64::from(self.m & ((1 << -shift) - 1) != 0)))
        }
    }

    /// Compares with |n| 2^e, exactly.
    fn less_than(self, n: &IBig, e: i64) -> bool {
        if n.is_zero() {
            return false;
        }
        if self.m == 0 {
            return true;
        }
        let top = e + n.bit_len() as i64;
        if self.top() != top {
            return self.top() < top;
        }
        let low = self.e.min(e);
        (UBig::from(self.m) << (self.e - low) as usize) < (n.clone().unsigned_abs() << (e - low) as usize)
    }
}

/// An enclosed real number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ball {
    pub(super) mid: IBig,
    pub(super) exp: i64,
    pub(super) rad: Mag,
    pub(super) side: Option<Sign>,
}

impl Ball {
    pub(super) fn new(mid: IBig, exp: i64, rad: Mag) -> Ball {
        Ball { mid, exp, rad, side: None }
    }

    /// A ball around the quotient; exact for a dyadic number of at most `prec` bits.
    pub(super) fn from_ratio(x: &Ratio, prec: usize) -> Ball {
        if x.is_dyadic() {
            return Ball::new(x.num.clone(), x.exp, Mag::ZERO).rounded(prec);
        }
        let shift = (prec + x.den.bit_len() + 1).saturating_sub(x.num.bit_len());
        let quotient = (&x.num << shift) / IBig::from(x.den.clone());
        let exp = x.exp - shift as i64;
        Ball::new(quotient, exp, Mag::pow2(exp)).rounded(prec)
    }

    /// A number strictly between 0 and 2^e, or with `Negative` between -2^e and 0.
    pub(super) fn tiny(sign: Sign, e: i64) -> Ball {
        Ball { mid: IBig::ZERO, exp: 0, rad: Mag::pow2(e), side: Some(sign) }
    }

    /// An exponent t with |mid| < 2^t.
    fn top(&self) -> i64 {
        self.exp + self.mid.bit_len() as i64
    }

    /// The sign, where the ball tells that the number is not zero.
    pub(super) fn sign(&self) -> Option<Sign> {
        if self.mid.is_zero() {
            self.side
        } else if self.rad.less_than(&self.mid, self.exp) {
            Some(self.mid.sign())
        } else if self.side == Some(self.mid.sign()) {
            self.side
        } else {
            None
        }
    }

    /// At least |x|.
    pub(super) fn magnitude(&self) -> Mag {
        Mag::of(&self.mid, self.exp).add(self.rad)
    }

    /// The midpoint cut to `prec` bits.
    pub(super) fn rounded(mut self, prec: usize) -> Ball {
        let bits = self.mid.bit_len();
        if bits > prec {
            let shift = bits - prec;
            if self.mid.trailing_zeros().is_none_or(|z| z < shift) {
                self.rad = self.rad.add(Mag::pow2(self.exp + shift as i64));
                self.side = None;
            }
            self.mid >>= shift;
            self.exp += shift as i64;
        }
        self
    }

    pub(super) fn neg(self) -> Ball {
        Ball { mid: -self.mid, side: self.side.map(|s| -s), ..self }
    }

    /// rad = rad_a + rad_b.
    pub(super) fn add(&self, other: &Ball, prec: usize) -> Ball {
        let (a, b) = if self.mid.is_zero() { (other, self) } else { (self, other) };
        let side = match (a.rad.is_zero(), b.rad.is_zero()) {
            (true, _) => b.side,
            (_, true) => a.side,
            _ => a.side.filter(|_| a.side == b.side),
        };
        if b.mid.is_zero() {
            return Ball { mid: a.mid.clone(), exp: a.exp, rad: a.rad.add(b.rad), side }.rounded(prec);
        }
        let (a, b) = if a.top() >= b.top() { (a, b) } else { (b, a) };
        if a.top() - b.top() > prec as i64 + 40 {
            // b lies below a's last place: it goes into the radius, and its sign into the side.
            let side = b.sign().filter(|_| a.rad.is_zero() || a.side == b.sign());
            return Ball { mid: a.mid.clone(), exp: a.exp, rad: a.rad.add(b.magnitude()), side }
                .rounded(prec);
        }
        let exp = a.exp.min(b.exp);
        let mid = (&a.mid << (a.exp - exp) as usize) + (&b.mid << (b.exp - exp) as usize);
        Ball { mid, exp, rad: a.rad.add(b.rad), side }.rounded(prec)
    }

    /// rad = |mid_a| rad_b + |mid_b| rad_a + rad_a rad_b.
    pub(super) fn mul(&self, other: &Ball, prec: usize) -> Ball {
        let (a, b) = (self, other);
        let rad =
            Mag::of(&a.mid, a.exp).mul(b.rad).add(Mag::of(&b.mid, b.exp).mul(a.rad)).add(a.rad.mul(b.rad));
        let side = if a.mid.is_zero() || b.mid.is_zero() {
            a.sign().zip(b.sign()).map(|(s, t)| s * t)
        } else if a.rad.is_zero() {
            b.side.map(|s| s * a.mid.sign())
        } else if b.rad.is_zero() {
            a.side.map(|s| s * b.mid.sign())
        } else {
            None
        };
        Ball { mid: &a.mid * &b.mid, exp: a.exp + b.exp, rad, side }.rounded(prec)
    }

    /// rad = (rad_a + |mid_a / mid_b| rad_b) / (|mid_b| - rad_b), from |a/b - m/n| = |(a - m) - (m/n)(b - n)| / |b|.
    /// `None` unless rad_b <= |mid_b| / 2.
    pub(super) fn div(&self, other: &Ball, prec: usize) -> Option<Ball> {
        let (a, b) = (self, other);
        let half_exp = b.exp - 1;
        if b.mid.is_zero() || !b.rad.less_than(&b.mid, half_exp) {
            return None;
        }
        let divisor = b.mid.clone().unsigned_abs();
        // |mid_b| / 2 <= |b| serves as the divisor unless b is exact.
        let lower_exp = if b.rad.is_zero() { b.exp } else { half_exp };
        if a.mid.is_zero() {
            let side = a.side.map(|s| s * b.mid.sign());
            return Some(Ball { mid: IBig::ZERO, exp: 0, rad: a.rad.div_by(&divisor, lower_exp), side });
        }
        let shift = (prec + divisor.bit_len() + 1).saturating_sub(a.mid.bit_len());
        let mid = (&a.mid << shift) / &b.mid;
        let exp = a.exp - shift as i64 - b.exp;
        let quotient = Mag::of(&mid, exp).add(Mag::pow2(exp));
        let rad = a.rad.add(quotient.mul(b.rad)).div_by(&divisor, lower_exp).add(Mag::pow2(exp));
        Some(Ball::new(mid, exp, rad).rounded(prec))
    }

    /// |sqrt(x) - sqrt(m)| = |x - m| / (sqrt(x) + sqrt(m)) <= rad / sqrt(m). `None` unless the ball is positive.
    pub(super) fn sqrt(&self, prec: usize) -> Option<Ball> {
        if self.mid.is_zero() || self.sign() != Some(Sign::Positive) || self.mid.is_negative() {
            return None;
        }
        // An even exponent, and 2 prec + 2 bits or more.
        let mut shift = (2 * prec + 2).saturating_sub(self.mid.bit_len());
        if (self.exp - shift as i64) % 2 != 0 {
            shift += 1;
        }
        let radicand = self.mid.clone().unsigned_abs() << shift;
        let root = radicand.sqrt();
        debug_assert!(&root * &root <= radicand && radicand < (&root + UBig::ONE) * (&root + UBig::ONE));
        let exp = (self.exp - shift as i64) / 2;
        let rad = self.rad.div_by(&root, exp).add(Mag::pow2(exp));
        Some(Ball::new(IBig::from(root), exp, rad).rounded(prec))
    }

    /// A ball that holds both numbers.
    pub(super) fn hull(&self, other: &Ball, prec: usize) -> Ball {
        // |b - mid_a| <= |b - a| + rad_a.
        let gap = self.add(&other.clone().neg(), prec).magnitude();
        Ball::new(self.mid.clone(), self.exp, self.rad.add(gap))
    }

    /// The ends as integers (L, U) over one exponent, widened outward, and which of them are not reached: L 2^e <= x <= U 2^e.
    /// `None` where the radius dwarfs the midpoint by more than 2^4096.
    pub(super) fn ends(&self) -> Option<Ends> {
        let e = if self.rad.is_zero() {
            self.exp
        } else if self.mid.is_zero() {
            self.rad.e
        } else {
            // The last place of the coarser of the two, but the radius is resolved down to 2^-4096 of the midpoint's.
            self.exp.min(self.rad.e.max(self.exp - 4096))
        };
        let mid = if self.mid.is_zero() { IBig::ZERO } else { &self.mid << (self.exp - e) as usize };
        let units = self.rad.units(e, 4096 + self.mid.bit_len() as i64)?;
        let (mut low, mut high) = (&mid - &units, &mid + &units);
        match self.side {
            Some(Sign::Positive) => low = mid,
            Some(Sign::Negative) => high = mid,
            None => {}
        }
        Some(Ends {
            low,
            high,
            exp: e,
            low_open: self.side == Some(Sign::Positive),
            high_open: self.side == Some(Sign::Negative),
        })
    }

    /// floor(x), where the whole ball agrees on it.
    pub(super) fn floor(&self) -> Option<IBig> {
        if self.magnitude().top() <= 0 {
            return self.sign().map(|s| if s == Sign::Negative { IBig::NEG_ONE } else { IBig::ZERO });
        }
        let Ends { low, mut high, exp, high_open, .. } = self.ends()?;
        if exp >= 0 {
            if high_open {
                return None;
            }
            return (low == high && exp < 20_000).then(|| low << exp as usize);
        }
        if exp < -100_000 {
            return None;
        }
        if high_open {
            high -= IBig::ONE;
        }
        let unit = IBig::ONE << (-exp) as usize;
        let floor = |n: &IBig| {
            let q = n / &unit;
            if n.is_negative() && &q * &unit != *n { q - IBig::ONE } else { q }
        };
        let (low, high) = (floor(&low), floor(&high));
        (low == high).then_some(low)
    }
}

/// An interval low 2^exp to high 2^exp; an open end is not reached.
pub(super) struct Ends {
    pub(super) low: IBig,
    pub(super) high: IBig,
    pub(super) exp: i64,
    pub(super) low_open: bool,
    pub(super) high_open: bool,
}
