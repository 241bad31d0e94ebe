//! exp of a ball.
//!
//! Formula: exp(x) = 2^e 2^(j/64) exp(r), x = (64 e + j) ln 2 / 64 + r, |r| <= ln 2 / 128 + 2^-40 < 2^-7.5 (Tang, Table-driven
//! implementation of the exponential function, ACM TOMS 15 (1989), with a larger table and double-double).
//! Method: k = 64 e + j by rounding; ln 2 / 64 = c1 + c2 + c3, where k c1 and k c2 are exact (36 bits each, |k| < 2^17);
//! Taylor's series to degree 11, the terms from degree 6 on in float64.
//!
//! Error, relative to the result: of r, absolute: three sums of at most 2 u^2 2^-7 each, c3's rounding and its product's
//! 2 * 2^17 2^-130: below 2^-110. Remainder r^12 / 12! < 2^-118. Float64 tail: |r^6 / 720| < 2^-54.4, off by less than
//! 2^-50.5 relative: 2^-104.9 < 2.2 u^2. Horner's last product and sum: (5 2^-7.5 + 3.1) u^2, what precedes them is scaled by
//! 2^-7.5 and stays below 0.1 u^2. Table entry: u^2 / 2; product with it: 5 u^2. Together below 11 u^2 < [`EXP`] = 32 u^2.
//!
//! Special values: the centre must lie in [-650, 700], so that neither the result nor its low part leaves the range.

use std::sync::LazyLock;

use dashu_int::IBig;

use super::ball::{Ball, UP};
use super::constants::{FRACTION_BITS, exp, ln_2, to_dd, to_f64};
use crate::dd::Dd;

/// Relative error bound of the centre: 2^-101.
pub(super) const EXP: f64 = f64::from_bits((1023 - 101) << 52);

/// What [`exp_ball`] needs.
pub(super) struct ExpTable {
    /// 64 / ln 2.
    inverse: f64,
    /// ln 2 / 64 in three parts.
    parts: [f64; 3],
    /// 2^(j / 64).
    powers: [Dd; 64],
    /// 1 / n! for n < 6.
    reciprocal_factorials: [Dd; 6],
}

/// The table, computed on first use.
pub(super) static TABLE: LazyLock<ExpTable> = LazyLock::new(|| {
    let step: IBig = ln_2() >> 6;
    // ln 2 / 64 lies in [2^-7, 2^-6): 36 bits down to 2^-42, 36 more down to 2^-78.
    let cut = |x: &IBig, bit: usize| (x >> (FRACTION_BITS - bit)) << (FRACTION_BITS - bit);
    let first = cut(&step, 42);
    let rest = &step - &first;
    let second = cut(&rest, 78);
    let third = &rest - &second;
    let mut factorial = IBig::ONE;
    ExpTable {
        inverse: 64.0 / std::f64::consts::LN_2,
        parts: [&first, &second, &third].map(|x| to_f64(x, FRACTION_BITS)),
        powers: std::array::from_fn(|j| to_dd(&exp(&(&step * IBig::from(j))), FRACTION_BITS)),
        reciprocal_factorials: std::array::from_fn(|n| {
            factorial *= IBig::from(n.max(1));
            to_dd(&((IBig::ONE << FRACTION_BITS) / &factorial), FRACTION_BITS)
        }),
    }
});

/// exp of every number of the ball, whose centre is in [-650, 700]; unknown elsewhere.
#[inline(always)]
pub(super) fn exp_ball(table: &ExpTable, x: Ball) -> Ball {
    if !(x.center.hi >= -650.0 && x.center.hi <= 700.0 && x.radius <= 1.0) {
        return Ball::UNKNOWN;
    }
    let center = exp_dd(table, x.center);
    // exp(r) - 1 <= r + r^2 for r <= 1.
    let spread = x.radius + x.radius * x.radius;
    Ball { center, radius: center.hi * ((spread + EXP) * UP) }
}

#[inline(always)]
fn exp_dd(table: &ExpTable, x: Dd) -> Dd {
    // Adding 1.5 * 2^52 rounds to the nearest integer.
    const ROUND: f64 = 6755399441055744.0;
    let k = (x.hi * table.inverse + ROUND) - ROUND;
    let [c1, c2, c3] = table.parts;
    let r = Dd::sum(x.hi, -(k * c1)).add_f64(-(k * c2)).add_f64(x.lo).add_f64(-(k * c3));
    let h = r.hi;
    let tail = 1.0 / 720.0
        + h * (1.0 / 5040.0
            + h * (1.0 / 40320.0 + h * (1.0 / 362880.0 + h * (1.0 / 3628800.0 + h * (1.0 / 39916800.0)))));
    let f = &table.reciprocal_factorials;
    let mut sum = r.mul_f64(tail).add(f[5]);
    for coefficient in [f[4], f[3], f[2], f[1], f[0]] {
        sum = sum.mul(r).add(coefficient);
    }
    let k = k as i64;
    let exponent = k >> 6;
    sum.mul(table.powers[(k & 63) as usize]).scale(f64::from_bits(((1023 + exponent) as u64) << 52))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Argument, high and low part of the result: mpmath 1.3 at 400 bits, exp(x).
    const ROWS: [(u64, u64, u64); 11] = [
        (0x0000000000000000, 0x3ff0000000000000, 0x0000000000000000),
        (0x3ff0000000000000, 0x4005bf0a8b145769, 0x3ca4d57ee2b1013a),
        (0xbff0000000000000, 0x3fd78b56362cef38, 0xbc6ca8a4270fadf5),
        (0x3f762e09fe86833c, 0x3ff0163d70ab8396, 0x3c9a3f3143ee39b7),
        (0xbf762e425d9d94fc, 0x3fefd3c22cd06d0d, 0xbc87c647e80a86bd),
        (0xc08400fbe76c8b44, 0x0636977b192f0493, 0x02cde9e18af91c97),
        (0x408595999999999a, 0x7e36274dca295c6f, 0xfadb2e18faf52e19),
        (0x40626f6cd24a22d0, 0x4d3b5087c0896085, 0x49d916c9aca9d61e),
        (0xc014a833d46a262c, 0x3f776b039304e0ed, 0x3c14b6d18b60f5fc),
        (0xc010626f8f1874c2, 0x3f9109475584feab, 0xbc332d17d5ecd467),
        (0x3bc79ca10c924223, 0x3ff0000000000000, 0x3bc79ca10c924223),
    ];

    #[test]
    fn the_ball_holds_exp_and_is_small() {
        for (x, hi, lo) in ROWS {
            let want = Dd { hi: f64::from_bits(hi), lo: f64::from_bits(lo) };
            let got = exp_ball(&TABLE, Ball::exact(f64::from_bits(x)));
            let error = got.center.sub(want).hi.abs();
            assert!(error <= got.radius, "{:e}: {error:e} {got:?}", f64::from_bits(x));
            assert!(got.radius <= want.hi * EXP * 1.01);
            // What was proved is not what happens, but near it.
            assert!(error <= want.hi * EXP / 2.0);
        }
    }

    #[test]
    fn a_radius_spreads() {
        let x = Ball { center: Dd::new(3.0), radius: 0.5 };
        let got = exp_ball(&TABLE, x);
        assert!(got.center.hi + got.radius >= 3.5f64.exp() && got.radius < 20.0 * 0.8);
        assert!(!exp_ball(&TABLE, Ball { center: Dd::new(3.0), radius: 2.0 }).is_known());
        assert!(!exp_ball(&TABLE, Ball::UNKNOWN).is_known());
    }
}
