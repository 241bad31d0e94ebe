//! One ball: a double-double centre and a float64 radius.
//!
//! Every function returns a ball that contains the exact result for all real arguments within the arguments' balls:
//! the radius is the sum of what the arguments' radii can do (an exact expression in the centres and radii) and of the
//! rounding of the centre ([`crate::dd`]'s bounds), each computed in float64 and multiplied by [`UP`] = 1 + 2^-48, which
//! covers up to 15 float64 roundings of non-negative terms. Where such a computation underflows, its absolute error is at most
//! a few 2^-1074; products and quotients of small numbers add [`TINY`] for that.
//!
//! Special values: where no finite ball can be given, the ball is [`Ball::UNKNOWN`]: radius infinite, centre 0. It stands for
//! NaN, infinities, overflow, division by a ball that holds zero, and results that depend on a choice that the balls leave
//! open. Whatever depends on it is unknown as well, and the exact evaluator decides it.

use crate::dd::{ADD, DIV, Dd, MUL, TINY};

/// 1 + 2^-48.
pub(super) const UP: f64 = 1.0 + 16.0 * f64::EPSILON;
/// Products of this magnitude and above have no error term that underflows.
const SAFE: f64 = f64::from_bits((1023 - 960) << 52);

/// All real numbers within `radius` of `center`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ball {
    pub(crate) center: Dd,
    pub(crate) radius: f64,
}

impl Ball {
    pub(crate) const UNKNOWN: Ball = Ball { center: Dd::ZERO, radius: f64::INFINITY };
    pub(super) const ZERO: Ball = Ball { center: Dd::ZERO, radius: 0.0 };

    #[inline(always)]
    pub(crate) fn exact(x: f64) -> Ball {
        Ball { center: Dd::new(x), radius: 0.0 }.checked()
    }

    #[inline(always)]
    pub(crate) fn new(center: Dd, radius: f64) -> Ball {
        Ball { center, radius }.checked()
    }

    #[inline(always)]
    pub(crate) fn is_known(self) -> bool {
        self.radius < f64::INFINITY
    }

    /// The same ball; unknown where anything is not finite.
    #[inline(always)]
    pub(super) fn checked(self) -> Ball {
        // A NaN or an infinity in any part makes the sum one.
        let all = self.center.hi + self.center.lo + self.radius;
        if all.is_finite() { self } else { Ball::UNKNOWN }
    }

    /// |x| at most this for every x in the ball.
    #[inline(always)]
    pub(super) fn magnitude(self) -> f64 {
        (self.center.hi.abs() + self.radius) * UP
    }

    /// |x| at least this for every x in the ball.
    #[inline(always)]
    pub(super) fn mignitude(self) -> f64 {
        (self.center.hi.abs() * (2.0 - UP) - self.radius * UP).max(0.0)
    }

    /// The one number of the ball is exactly zero.
    #[inline(always)]
    pub(super) fn is_zero(self) -> bool {
        self.center.hi == 0.0 && self.radius == 0.0
    }

    #[inline(always)]
    pub(super) fn neg(self) -> Ball {
        Ball { center: self.center.neg(), radius: self.radius }
    }

    #[inline(always)]
    pub(crate) fn add(self, b: Ball) -> Ball {
        let mut center = self.center.add(b.center);
        let mut rounding = ADD * center.hi.abs();
        if self.center.lo == 0.0 && b.center.lo == 0.0 {
            // A sum of two float64 is exact, and IEEE defines the sign of its zero.
            rounding = 0.0;
            if center.hi == 0.0 {
                center.hi = self.center.hi + b.center.hi;
            }
        }
        Ball { center, radius: (self.radius + b.radius + rounding) * UP }.checked()
    }

    #[inline(always)]
    pub(crate) fn sub(self, b: Ball) -> Ball {
        self.add(b.neg())
    }

    #[inline(always)]
    pub(crate) fn mul(self, b: Ball) -> Ball {
        let (x, y) = (self.center.hi.abs(), b.center.hi.abs());
        let plain = x * y;
        if plain < SAFE {
            return self.mul_small(b);
        }
        // Two float64: the product is exact.
        let rounding = if self.center.lo == 0.0 && b.center.lo == 0.0 { 0.0 } else { MUL * plain };
        let radius = x * b.radius + self.radius * y + self.radius * b.radius + rounding;
        Ball { center: self.center.mul(b.center), radius: radius * UP }.checked()
    }

    /// A product that is zero or whose error terms may underflow.
    #[cold]
    fn mul_small(self, b: Ball) -> Ball {
        if self.is_zero() && b.is_known() || b.is_zero() && self.is_known() {
            return Ball { center: Dd::new(self.center.hi * b.center.hi), radius: 0.0 };
        }
        let (x, y) = (self.center.hi.abs(), b.center.hi.abs());
        let radius = x * b.radius + self.radius * y + self.radius * b.radius + MUL * x * y + TINY;
        Ball { center: self.center.mul(b.center), radius: radius * UP }.checked()
    }

    #[inline(always)]
    pub(crate) fn square(self) -> Ball {
        self.mul(self)
    }

    /// Times a power of two.
    #[inline(always)]
    pub(super) fn scale(self, power: f64) -> Ball {
        Ball { center: self.center.scale(power), radius: self.radius * power.abs() }
    }

    /// Quotient; unknown where `b` holds zero.
    #[inline(always)]
    pub(crate) fn div(self, b: Ball) -> Ball {
        let least = b.mignitude();
        if !(least > 0.0 && self.is_known() && b.is_known()) {
            return Ball::UNKNOWN;
        }
        if self.is_zero() {
            return Ball { center: Dd::new(self.center.hi / b.center.hi), radius: 0.0 };
        }
        let center = self.center.div(b.center);
        let q = center.hi.abs();
        // x/y - c/d = ((x - c) - (c/d)(y - d)) / y, and |c/d| <= q (1 + u).
        let spread = (self.radius + q * b.radius) / least;
        let small = q < SAFE || self.center.hi.abs() < SAFE || least < SAFE || b.center.hi.abs() > 1.0 / SAFE;
        // A zero remainder: the quotient of the two float64 is itself one.
        let exact = center.lo == 0.0
            && self.center.lo == 0.0
            && b.center.lo == 0.0
            && (-center.hi).mul_add(b.center.hi, self.center.hi) == 0.0;
        let rounding = if exact && !small { 0.0 } else { DIV * q };
        let underflow = if small { TINY + TINY / least } else { 0.0 };
        Ball { center, radius: ((spread + rounding) * UP + underflow) * UP }.checked()
    }

    /// 1 / sqrt(x); unknown where the ball holds zero or negative numbers, or is below 2^-900.
    #[inline(always)]
    pub(crate) fn rsqrt(self) -> Ball {
        let least = self.mignitude();
        if !(self.center.hi > 0.0 && least > 1e-270 && self.is_known()) {
            return Ball::UNKNOWN;
        }
        let center = Dd::new(1.0).div(self.center.sqrt());
        // |1/sqrt(x) - 1/sqrt(c)| <= |x - c| / (2 least^(3/2)); the root's and the quotient's rounding add up.
        let spread = self.radius / (2.0 * least * least.sqrt());
        Ball { center, radius: (spread + (ADD + DIV) * UP * center.hi) * UP }.checked()
    }

    /// The same ball, wider by `more`.
    #[inline(always)]
    pub(super) fn widened(self, more: f64) -> Ball {
        Ball { center: self.center, radius: (self.radius + more) * UP }.checked()
    }
}
