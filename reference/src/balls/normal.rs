//! The normal distribution's upper tail Q(t) = (1 / sqrt(2 pi)) * integral of exp(-s^2 / 2) from t on, t >= 0.
//!
//! Formula: Q(t) = phi(t) M(t), phi(t) = exp(-t^2 / 2) / sqrt(2 pi), M Mills' ratio: M' = t M - 1, and
//! M(t) = integral of exp(-t s - s^2 / 2) over s >= 0, from which |M^(n)(t)| <= 2^((n-1)/2) Gamma((n+1)/2) and
//! |M^(n)(t)| <= n! t^-(n+1), with alternating signs.
//! Method: Taylor's series to degree 20 about the nearest of the centres (2 j + 1) / 16, the terms from degree 11 on in float64.
//!
//! Tables: at every centre a_0 = M(c), a_1 = c M(c) - 1, a_(n+1) = (c a_n + a_(n-1)) / (n + 1), in integers with 1200
//! fraction bits. M at the greatest centre comes from its asymptotic series, whose error is below its first omitted term
//! (alternating, 2^-1100 at t = 40 with 600 terms or less); from each centre Taylor's series to degree 63 leads to the one below.
//! That way is stable: an error d in M(c) becomes d times the (truncated) series of exp(-(2c - 1/8)/16) <= 1, and truncations are below
//! 2^-1190 before division. Remainder after degree 63 at h = 1/8: 2^32 Gamma(32.5) / 64! * 2^-192 < 2^-340.
//! So the tables hold M within 2^-320, and a_n within that times 40^n.
//!
//! Error, relative to M(t) >= 1 / (t + 1): remainder a_21 / 16^21 < 2^-117 (t <= 1: 2^10 Gamma(11) / 21! = 2^-33.6;
//! elsewhere smaller still); float64 terms a_11 / 16^11 < 2^-55 off by less than 2^-50: 2^-105; Horner in double-double: 3.1 u^2 for
//! the last sum, 0.7 (5 + 3.1) u^2 / 16 for what precedes; coefficients u^2 / 2. Together below 6 u^2 < [`MILLS`] = 16 u^2.

use std::sync::LazyLock;

use dashu_int::IBig;

use super::ball::{Ball, UP};
use super::constants::{FRACTION_BITS, pi, sqrt, to_dd, to_f64};
use super::exp::{ExpTable, exp_ball};
use crate::dd::Dd;

/// Relative error bound of Mills' ratio at a double-double: 2^-102.
const MILLS: f64 = f64::from_bits((1023 - 102) << 52);
/// Arguments are below this; exp(-t^2 / 2) then stays within [`exp_ball`]'s domain.
pub(super) const LIMIT: f64 = 36.0;
const CENTRES: usize = LIMIT as usize * 8;
const DOUBLE: usize = 11;
const SINGLE: usize = 10;
/// Fraction bits while the tables are made.
const BITS: usize = 1200;

/// What [`upper_tail`] needs.
pub(super) struct NormalTable {
    /// Taylor coefficients of M at (2 j + 1) / 16: degrees 0 to 10.
    low_degrees: Vec<[Dd; DOUBLE]>,
    /// Degrees 11 to 20.
    high_degrees: Vec<[f64; SINGLE]>,
    /// 1 / sqrt(2 pi).
    density_at_zero: Dd,
}

/// The table, computed on first use.
pub(super) static TABLE: LazyLock<NormalTable> = LazyLock::new(|| {
    let mut low_degrees = vec![[Dd::ZERO; DOUBLE]; CENTRES];
    let mut high_degrees = vec![[0.0; SINGLE]; CENTRES];
    // Start at 40 + 1/16, where the asymptotic series is good for more than 1000 bits.
    let first = 40 * 8;
    let mut ratio = mills_asymptotic(2 * first as i64 + 1);
    for j in (0..=first).rev() {
        let coefficients = taylor_coefficients(&ratio, 2 * j as i64 + 1);
        if j < CENTRES {
            low_degrees[j] = std::array::from_fn(|n| to_dd(&coefficients[n], BITS));
            high_degrees[j] = std::array::from_fn(|n| to_f64(&coefficients[DOUBLE + n], BITS));
        }
        // At h = -1/8.
        ratio = coefficients.iter().enumerate().fold(IBig::ZERO, |sum, (n, a)| {
            let term: IBig = a >> (3 * n);
            if n % 2 == 0 { sum + term } else { sum - term }
        });
    }
    let one = IBig::ONE << FRACTION_BITS;
    let root = sqrt(&(pi() << 1));
    NormalTable {
        low_degrees,
        high_degrees,
        density_at_zero: to_dd(&((&one << FRACTION_BITS) / root), FRACTION_BITS),
    }
});

/// M(s / 16) by its asymptotic series: sum of (-1)^k (2k - 1)!! / t^(2k + 1), while terms fall.
fn mills_asymptotic(s: i64) -> IBig {
    let square = IBig::from(s * s);
    let mut term: IBig = (IBig::ONE << (BITS + 4)) / IBig::from(s);
    let mut sum = IBig::ZERO;
    let mut k = 0i64;
    while term != IBig::ZERO && (2 * k + 1) * 256 < s * s {
        sum = if k % 2 == 0 { sum + &term } else { sum - &term };
        term = (term * IBig::from((2 * k + 1) * 256)) / &square;
        k += 1;
    }
    sum
}

/// M^(n) / n! at s / 16 for n < 64.
fn taylor_coefficients(ratio: &IBig, s: i64) -> Vec<IBig> {
    let times_centre = |x: &IBig| -> IBig { (x * IBig::from(s)) >> 4 };
    let mut a = vec![ratio.clone(), times_centre(ratio) - (IBig::ONE << BITS)];
    for n in 1..63 {
        let next = (times_centre(&a[n]) + &a[n - 1]) / IBig::from(n + 1);
        a.push(next);
    }
    a
}

/// Q(t) and phi(t) for a ball of centre in [0, [`LIMIT`]) and of radius at most 2^-10 / (1 + t); unknown elsewhere.
#[inline(always)]
pub(super) fn upper_tail(table: &NormalTable, exp: &ExpTable, t: Ball) -> (Ball, Ball) {
    let size = t.center.hi;
    if !((0.0..LIMIT).contains(&size) && t.radius * (1.0 + size) <= 1.0 / 1024.0) {
        return (Ball::UNKNOWN, Ball::UNKNOWN);
    }
    let at_centre = Ball { center: t.center, radius: 0.0 };
    let density = exp_ball(exp, at_centre.square().scale(-0.5))
        .mul(Ball { center: table.density_at_zero, radius: f64::EPSILON * f64::EPSILON });
    let j = (size * 8.0) as usize;
    let h = t.center.add_f64(-((2 * j + 1) as f64 / 16.0));
    let high = &table.high_degrees[j];
    let mut tail = high[SINGLE - 1];
    for &coefficient in high[..SINGLE - 1].iter().rev() {
        tail = tail * h.hi + coefficient;
    }
    let low = &table.low_degrees[j];
    let mut sum = h.mul_f64(tail).add(low[DOUBLE - 1]);
    for &coefficient in low[..DOUBLE - 1].iter().rev() {
        sum = sum.mul(h).add(coefficient);
    }
    let ratio = Ball { center: sum, radius: sum.hi * MILLS };
    let tail = density.mul(ratio);
    // Between t - r and t + r: phi <= phi(t) exp(t r), |Q'| = phi, |phi'| = |t| phi; exp(t r) <= 1.01.
    let slope = density.magnitude() * 1.01;
    (tail.widened(slope * t.radius), density.widened(slope * (size + t.radius) * t.radius * UP))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mills_ratio_at_the_first_centre() {
        // M(1/16) = sqrt(pi/2) exp(1/512) erfc(1/16/sqrt 2), from the power series of the error function.
        let s = FRACTION_BITS;
        let one = IBig::ONE << s;
        // integral of exp(s^2/2 - x^2/2) from 0 to t = t + t^3/3 + t^5/15 + ..., and M = sqrt(pi/2) exp(t^2/2) minus it.
        let mut term = &one >> 4;
        let mut sum = term.clone();
        for k in 1..60 {
            term = (term >> 8) / IBig::from(2 * k + 1);
            sum += &term;
        }
        let root = sqrt(&(pi() >> 1));
        let value: IBig = ((root * super::super::constants::exp(&(&one >> 9))) >> s) - sum;
        let want = to_dd(&value, s);
        let got = TABLE.low_degrees[0][0];
        assert_eq!(got.hi, want.hi);
        assert!((got.lo - want.lo).abs() <= f64::EPSILON * f64::EPSILON / 4.0, "{got:?} {want:?}");
    }
}
