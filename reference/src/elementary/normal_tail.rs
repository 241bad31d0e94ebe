//! Q(a) = P(Z > a) = erfc(a / sqrt 2) / 2 of the standard normal distribution, for 0 <= a <= 15.
//!
//! Formula: Q(a) = exp(-a^2 / 2) R(a); R(a) = N(a) / D(a) with polynomials of degrees 9 and 10 (`scripts/normal_tail.py` makes
//! the coefficients and proves the approximation's relative error, 2^-54.16, with the coefficients as they stand here).
//!
//! Bound, u = 2^-53: all coefficients and a are positive, so Horner's rule with FMA loses at most a factor (1 + u)^9 in N and
//! (1 + u)^10 in D. Quotient and product round once each, exp loses 4 u, the approximation 0.45 u: fewer than 26 u. a^2 / 2 must
//! be exact, which it is for a of at most 26 bits: every float32. [`RELATIVE`] = 28 u.
//!
//! Special values: none; the caller keeps a in range.

use super::exp::exp;

/// A bound of the relative error of [`normal_tail`]: 28 * 2^-53.
pub(crate) const RELATIVE: f64 = 14.0 * f64::EPSILON;

/// The greatest argument.
pub(crate) const TOP: f64 = 15.0;

const NUMERATOR: [f64; 10] = [
    f64::from_bits(0x3fe0_0000_0000_0000), // 0.5
    f64::from_bits(0x3fe7_a7d0_559d_be98), // 0.73923508378898628
    f64::from_bits(0x3fe1_64ec_fed7_8bfc), // 0.54357003949951332
    f64::from_bits(0x3fd0_4152_1d43_248b), // 0.25398686273235488
    f64::from_bits(0x3fb5_0780_cb6b_92b1), // 0.082145738280426497
    f64::from_bits(0x3f93_6c56_397b_0724), // 0.018967959650360147
    f64::from_bits(0x3f69_9496_b9df_73ca), // 0.0031226104610895021
    f64::from_bits(0x3f37_3423_e82d_7b65), // 0.00035405995020270357
    f64::from_bits(0x3efa_71f8_347c_45f8), // 2.5220101888717331e-05
    f64::from_bits(0x3ead_2338_7bc0_a892), // 8.6836757118748441e-07
];
const DENOMINATOR: [f64; 11] = [
    f64::from_bits(0x3ff0_0000_0000_0000), // 1
    f64::from_bits(0x4002_35f9_77c3_ece0), // 2.2763547283808379
    f64::from_bits(0x4003_3a2e_2b1a_8c20), // 2.403408371684705
    f64::from_bits(0x3ff8_daba_49cd_c4c5), // 1.553400314613371
    f64::from_bits(0x3fe5_d695_2ec4_b0ee), // 0.68244418272436547
    f64::from_bits(0x3fcb_578e_bfdc_303c), // 0.21360954635781748
    f64::from_bits(0x3fa8_cba7_e6f6_cdd6), // 0.048428770965440002
    f64::from_bits(0x3f80_28dd_0ec7_b14e), // 0.0078904409537804664
    f64::from_bits(0x3f4d_271e_fe6a_b734), // 0.00088967336053766841
    f64::from_bits(0x3f10_9273_0351_fa18), // 6.3217420420237972e-05
    f64::from_bits(0x3ec2_425f_9342_7925), // 2.1766747072125342e-06
];

#[inline(always)]
fn horner<const N: usize>(coefficients: &[f64; N], x: f64) -> f64 {
    let mut y = coefficients[N - 1];
    for &c in coefficients[..N - 1].iter().rev() {
        y = y.mul_add(x, c);
    }
    y
}

/// Q(a) for 0 <= a <= [`TOP`], a of at most 26 significant bits, within [`RELATIVE`].
#[inline(always)]
pub(crate) fn normal_tail(a: f64) -> f64 {
    exp(-0.5 * (a * a)) * (horner(&NUMERATOR, a) / horner(&DENOMINATOR, a))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_a_correctly_rounded_erfc() {
        let mut state = 0x9e37_79b9u64;
        let mut worst = 0.0f64;
        for i in 0..1_000_000 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let unit = (state >> 40) as f64 / (1u64 << 24) as f64;
            let a = f64::from((unit * if i % 2 == 0 { TOP } else { 2.0 }) as f32);
            // erfc at the rounded argument t = fl(a / sqrt 2), moved by its derivative: erfc'(t) / erfc(t) is about
            // -2 t - 1 / t, and the rounding of t is known from t^2 * 2 against a^2.
            let t = a * std::f64::consts::FRAC_1_SQRT_2;
            let error = (t.mul_add(t, -(t * t)) + (t * t - 0.5 * a * a)) / (2.0 * t).max(1e-300);
            let at_t = core_math::erfc(t);
            let slope = -std::f64::consts::FRAC_2_SQRT_PI * core_math::exp(-t * t);
            let want = 0.5 * (at_t - slope * error);
            worst = worst.max((normal_tail(a) - want).abs() / want);
        }
        assert!(worst <= RELATIVE + 4.0 * f64::EPSILON, "{:e}", worst);
        assert_eq!(normal_tail(0.0), 0.5);
    }
}
