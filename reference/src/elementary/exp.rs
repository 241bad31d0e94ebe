//! exp(x) for -708 <= x <= 709.
//!
//! Formula: exp(x) = 2^k exp(r), k = round(x / ln 2), r = x - k ln 2, |r| <= 0.34661.
//!
//! Method: reduction of Cody and Waite (Software Manual for the Elementary Functions, 1980) with ln 2 = HIGH + LOW, HIGH of 42
//! bits; Taylor's polynomial of degree 13 as 1 + (r + r^2 q(r)), q by Horner's rule with FMA. k comes from adding 1.5 * 2^52,
//! which leaves it in the low bits of the sum. No table, no branch.
//!
//! Bound, u = 2^-53:
//! - k HIGH is exact (10 + 42 bits); x - k HIGH is a multiple of 2^-54 below 1/2, so exact. Subtracting k LOW rounds once:
//!   |error of r| <= u 0.35 + 2^-86, that is 0.36 u, which costs 0.36 u exp(r) <= 0.51 u.
//! - Taylor's remainder: 0.34661^14 / 14! * 1.03 <= 0.04 u.
//! - q <= 0.57 loses at most 0.75 u in Horner's rule, r^2 <= 0.1202 times that is 0.09 u; r^2's own rounding costs
//!   0.0685 u; the FMA that forms p = r + r^2 q, |p| < 1/2, rounds by at most u / 2.
//! - 1 + p rounds by u at most where it is >= 1 and by u / 2 below.
//!
//! Together 2.3 u relative where 1 + p >= 1 and (1.21 + 0.5) u / 0.7071 < 2.5 u below; 2^k is exact. [`RELATIVE`] = 4 u.
//!
//! Special values: none; the caller keeps x in range. NaN gives NaN.

/// A bound of |exp_f64(x) / exp(x) - 1|: 2^-51.
pub(crate) const RELATIVE: f64 = 4.0 * UNIT;

/// 2^-53.
const UNIT: f64 = f64::EPSILON / 2.0;

/// 1 / ln 2, rounded.
const INV_LN_2: f64 = f64::from_bits(0x3ff7_1547_652b_82fe);
/// ln 2 cut to 42 bits: a multiple of 2^-42.
const LN_2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fefa_3800);
/// ln 2 - LN_2_HIGH, rounded: 5.4979230187083712e-14.
const LN_2_LOW: f64 = f64::from_bits(0x3d2e_f357_93c7_6730);
/// 1.5 * 2^52.
const ANCHOR: f64 = f64::from_bits(0x4338_0000_0000_0000);

/// 1 / n! for n from 13 down to 2; each is the correctly rounded quotient of 1 and an integer.
const INVERSE_FACTORIALS: [f64; 12] = [
    1.0 / 6227020800.0,
    1.0 / 479001600.0,
    1.0 / 39916800.0,
    1.0 / 3628800.0,
    1.0 / 362880.0,
    1.0 / 40320.0,
    1.0 / 5040.0,
    1.0 / 720.0,
    1.0 / 120.0,
    1.0 / 24.0,
    1.0 / 6.0,
    1.0 / 2.0,
];

/// exp(x), -708 <= x <= 709, within [`RELATIVE`].
#[inline(always)]
pub(crate) fn exp(x: f64) -> f64 {
    let shifted = x.mul_add(INV_LN_2, ANCHOR);
    let k = shifted - ANCHOR;
    let r = k.mul_add(-LN_2_LOW, k.mul_add(-LN_2_HIGH, x));
    let mut q = INVERSE_FACTORIALS[0];
    for &c in &INVERSE_FACTORIALS[1..] {
        q = q.mul_add(r, c);
    }
    let p = (r * r).mul_add(q, r);
    let two_to_k = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    (1.0 + p) * two_to_k
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_a_correctly_rounded_exp() {
        let mut state = 0x2545_f491_4f6c_dd1du64;
        let mut worst = 0.0f64;
        for i in 0..3_000_000u64 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let unit = (state >> 11) as f64 / (1u64 << 53) as f64;
            let x = match i % 4 {
                0 => unit * 1417.0 - 708.0,
                1 => unit * 2.0 - 1.0,
                2 => -unit * 20.0,
                // Where k changes.
                _ => ((state % 2000) as f64 - 1000.0 + 0.5) * std::f64::consts::LN_2 + unit * 1e-12,
            };
            if !(-708.0..=709.0).contains(&x) {
                continue;
            }
            let want = core_math::exp(x);
            worst = worst.max((exp(x) - want).abs() / want);
        }
        // Half an ulp of `want` comes on top.
        assert!(worst <= RELATIVE + UNIT, "{:.3} u", worst / UNIT);
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(-0.0), 1.0);
    }
}
