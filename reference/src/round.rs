//! Rounding of real numbers and of intervals to a floating-point format.
//!
//! Formula: round(x) is the element of the format nearest to x, of two equally near ones that with an even significand
//! (IEEE 754, roundTiesToEven). With quantum 2^q, q = max(floor(log2 |x|), min_exponent) - precision + 1, it is
//! 2^q times the integer nearest to x / 2^q; at or beyond 2^max_exponent (2 - 2^-precision), half an ulp above the greatest
//! finite number, it is an infinity (the tie goes to the even significand, which is the infinity's).
//!
//! Method: integers throughout, so there is no error. Rounding is monotone; an interval has a unique rounding where its two
//! ends round to the same bits. [`round_interval`] first tests ends moved outward in float64 and computes with integers only
//! where that does not decide.
//!
//! Special values: a negative real that rounds to zero gives -0.0, a positive one and zero itself +0.0. Every result is a
//! float64 that the format holds.

use dashu_base::{BitTest, Sign};
use dashu_int::{IBig, UBig};
use ulpian_spec::dtype::FloatFormat;

/// The significand and exponent of a finite float64: x = m 2^e, |m| < 2^53, e >= -1074.
pub fn scaled_integer(x: f64) -> (i64, i64) {
    let bits = x.to_bits();
    let field = ((bits >> 52) & 0x7ff) as i64;
    let fraction = (bits & ((1 << 52) - 1)) as i64;
    let (m, e) = if field == 0 { (fraction, -1074) } else { (fraction | (1 << 52), field - 1075) };
    (if x.is_sign_negative() { -m } else { m }, e)
}

/// 2^e as float64; zero below 2^-1074, an infinity above 2^1023.
pub fn exp2i(e: i64) -> f64 {
    match e {
        1024.. => f64::INFINITY,
        -1022..=1023 => f64::from_bits(((e + 1023) as u64) << 52),
        -1074..=-1023 => f64::from_bits(1 << (e + 1074)),
        _ => 0.0,
    }
}

/// floor(log2 |x|) of a finite float64 other than zero.
pub fn exponent(x: f64) -> i64 {
    let field = (x.to_bits() >> 52) & 0x7ff;
    if field != 0 {
        return field as i64 - 1023;
    }
    let (m, e) = scaled_integer(x);
    e + 63 - i64::from(m.unsigned_abs().leading_zeros())
}

/// The distance of neighbours in the format at the real number x: 2^(e - precision + 1) where 2^e <= |x| < 2^(e + 1), and
/// never less than the least subnormal number. Beyond the greatest finite number it stays that number's ulp, so that errors
/// can be measured there. NaN for NaN.
///
/// Without a branch, so that loops over it become vector instructions: |x| with an empty fraction is 2^e, or zero below
/// float64's normal numbers, where no format's ulp depends on e; its product with 2^(1 - precision) is exact.
#[inline(always)]
pub fn ulp(fmt: FloatFormat, x: f64) -> f64 {
    const EXPONENT: u64 = 0x7ff << 52;
    let normal = |e: i32| f64::from_bits(((e + 1023) as u64) << 52);
    let binade = f64::from_bits(x.to_bits() & EXPONENT);
    let e = binade.max(normal(fmt.min_exponent)).min(normal(fmt.max_exponent));
    if x.is_nan() { f64::NAN } else { e * normal(1 - fmt.precision as i32) }
}

/// The greatest finite number of the format.
pub fn max_finite(fmt: FloatFormat) -> f64 {
    let p = i64::from(fmt.precision);
    ((1u64 << p) - 1) as f64 * exp2i(i64::from(fmt.max_exponent) - p + 1)
}

/// A float64 rounded once to the format. NaN and infinities stay.
pub fn round_f64(fmt: FloatFormat, x: f64) -> f64 {
    if fmt.precision >= 53 || !x.is_finite() || x == 0.0 {
        return x;
    }
    let (m, e) = scaled_integer(x);
    let quantum = exponent(x).max(i64::from(fmt.min_exponent)) - i64::from(fmt.precision) + 1;
    let shift = quantum - e;
    if shift <= 0 {
        return bounded(fmt, x);
    }
    let magnitude = m.unsigned_abs();
    let rounded = if shift > 54 {
        0
    } else {
        let kept = magnitude >> shift;
        let rest = magnitude & ((1 << shift) - 1);
        let half = 1u64 << (shift - 1);
        kept + u64::from(rest > half || (rest == half && kept & 1 == 1))
    };
    // At most 24 bits times a power of two within float64's normal range: exact.
    bounded(fmt, (rounded as f64 * exp2i(quantum)).copysign(x))
}

/// `x`, a multiple of the format's quantum, or an infinity where it is beyond the greatest finite number.
fn bounded(fmt: FloatFormat, x: f64) -> f64 {
    if x.abs() >= exp2i(i64::from(fmt.max_exponent) + 1) { f64::INFINITY.copysign(x) } else { x }
}

/// The rounding of ±(m + t) 2^e to the format, where t = 0 or, with `sticky`, 0 < t < 1; m then has at least
/// `fmt.precision` + 2 bits.
pub fn round_scaled(fmt: FloatFormat, sign: Sign, m: &UBig, e: i64, sticky: bool) -> f64 {
    let negative = |x: f64| if sign == Sign::Negative { -x } else { x };
    let bits = m.bit_len() as i64;
    if bits == 0 {
        return negative(0.0);
    }
    debug_assert!(!sticky || bits >= i64::from(fmt.precision) + 2);
    let leading = e + bits - 1;
    if leading > i64::from(fmt.max_exponent) {
        return negative(f64::INFINITY);
    }
    let quantum = leading.max(i64::from(fmt.min_exponent)) - i64::from(fmt.precision) + 1;
    let shift = quantum - e;
    let rounded: u64 = if shift <= 0 {
        let exact = m << (-shift) as usize;
        u64::try_from(&exact).expect("the quantum leaves at most `precision` <= 53 bits")
    } else if shift > bits + 1 {
        0
    } else {
        let shift = shift as usize;
        let kept = u64::try_from(m >> shift).expect("the quantum leaves at most `precision` <= 53 bits");
        let half = m.bit(shift - 1);
        let below = sticky || m.trailing_zeros().is_some_and(|z| z < shift - 1);
        kept + u64::from(half && (below || kept & 1 == 1))
    };
    negative(bounded(fmt, times_power_of_two(rounded, quantum)))
}

/// n 2^e, n <= 2^53, where the product is a float64 or overflows to an infinity.
fn times_power_of_two(n: u64, e: i64) -> f64 {
    if e >= -1022 {
        return n as f64 * exp2i(e.min(1023)) * exp2i((e - 1023).max(0));
    }
    // Two exact steps: the first stays normal or is zero.
    n as f64 * exp2i(-1022 + 53) * exp2i(e + 1022 - 53)
}

/// The rounding of the real number a + b + c to the format; +0.0 where the sum is zero.
pub fn round_sum3(fmt: FloatFormat, a: f64, b: f64, c: f64) -> f64 {
    let parts = [a, b, c].map(scaled_integer);
    let e = parts.iter().filter(|p| p.0 != 0).map(|p| p.1).min().unwrap_or(0);
    let sum: IBig = parts
        .iter()
        .filter(|p| p.0 != 0)
        .map(|&(m, ei)| IBig::from(m) << (ei - e) as usize)
        .fold(IBig::ZERO, |s, t| s + t);
    let (sign, magnitude) = sum.into_parts();
    round_scaled(fmt, sign, &magnitude, e, false)
}

/// The one rounding to the format of every real number in [hi + lo - radius, hi + lo + radius]; `None` where there are
/// several, or where an argument is not finite. Zero has the rounding +0.0, so an interval that holds zero and negative
/// numbers has several.
#[inline]
pub fn round_interval(fmt: FloatFormat, hi: f64, lo: f64, radius: f64) -> Option<f64> {
    if fmt.precision < 53 {
        if lo == 0.0 && radius == 0.0 {
            return hi.is_finite().then(|| round_f64(fmt, hi + 0.0));
        }
        // Rounded to nearest and then moved to the neighbour, each end contains the true one.
        let upper = round_f64(fmt, (hi + (lo + radius).next_up()).next_up());
        let lower = round_f64(fmt, (hi + (lo - radius).next_down()).next_down());
        if upper.to_bits() == lower.to_bits() && radius.is_finite() && upper.is_finite() {
            return Some(upper);
        }
    } else {
        // hi + lo = s + e; s is the rounding where e ± radius stays clear of half the gap on either side.
        let (s, e) = crate::eft::two_sum(hi, lo);
        let above = s.next_up() - s;
        let below = s - s.next_down();
        // The gaps are powers of two. Twice e ± radius, moved outward, against the gap: a comparison without halving, which
        // could underflow. NaN and infinities compare false.
        let up = 2.0 * (e + radius).next_up();
        let down = 2.0 * (radius - e).next_up();
        if s != 0.0 && up < above && down < below && above.is_finite() && below.is_finite() {
            return Some(s);
        }
    }
    round_interval_exactly(fmt, hi, lo, radius)
}

#[cold]
fn round_interval_exactly(fmt: FloatFormat, hi: f64, lo: f64, radius: f64) -> Option<f64> {
    if !(hi.is_finite() && lo.is_finite() && radius.is_finite()) {
        return None;
    }
    let lower = round_sum3(fmt, hi, lo, -radius);
    let upper = round_sum3(fmt, hi, lo, radius);
    (lower.to_bits() == upper.to_bits()).then_some(lower)
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};
    use ulpian_spec::DType;

    use super::*;

    fn format(dtype: DType) -> FloatFormat {
        dtype.float_format().expect("a float dtype")
    }

    fn formats() -> [FloatFormat; 4] {
        DType::FLOATS.map(format)
    }

    /// Xorshift; every bit pattern of float64 is possible.
    fn bits(state: &mut u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    }

    #[test]
    fn float32_agrees_with_the_hardware() {
        let f32_format = format(DType::F32);
        let mut state = 1u64;
        for i in 0..2_000_000u64 {
            let mut b = bits(&mut state);
            if i % 2 == 0 {
                // Float32's exponents, its subnormals and overflow.
                b = (b & !(0x7ff << 52)) | ((860 + (b >> 3) % 300) << 52);
            }
            if i % 5 == 0 {
                // At and beside midpoints.
                b = (b & !0x1fff_ffff) | 0x1000_0000;
                b = b.wrapping_add(i % 3).wrapping_sub(1);
            }
            let x = f64::from_bits(b);
            let y = round_f64(f32_format, x);
            let z = x as f32;
            assert!(
                y.to_bits() == f64::from(z).to_bits() || (x.is_nan() && y.is_nan()),
                "{x:e}: {y:e}, {z:e}"
            );
        }
        let top = f64::from(f32::MAX);
        let half_ulp = exp2i(103);
        assert_eq!(round_f64(f32_format, top + half_ulp), f64::INFINITY);
        assert_eq!(round_f64(f32_format, (top + half_ulp).next_down()), top);
        assert_eq!(round_f64(f32_format, exp2i(-150)), 0.0);
        assert_eq!(round_f64(f32_format, exp2i(-150).next_up()), exp2i(-149));
        assert!(round_f64(f32_format, -exp2i(-151)).is_sign_negative());
    }

    #[test]
    fn sixteen_bit_formats_agree_with_half_from_float32() {
        let (f16_format, bf16_format) = (format(DType::F16), format(DType::BF16));
        for high in 0..=u16::MAX {
            // Around every float32 whose lower half is a midpoint or none.
            for low in [0u16, 1, 0x0fff, 0x1000, 0x1001, 0x2fff, 0x3000, 0x7fff, 0x8000, 0x8001, 0xffff] {
                let x = f32::from_bits(u32::from(high) << 16 | u32::from(low));
                if x.is_nan() {
                    assert!(round_f64(f16_format, f64::from(x)).is_nan());
                    continue;
                }
                let want = f64::from(f16::from_f32(x));
                assert_eq!(round_f64(f16_format, f64::from(x)).to_bits(), want.to_bits(), "{x:e}");
                let want = f64::from(bf16::from_f32(x));
                assert_eq!(round_f64(bf16_format, f64::from(x)).to_bits(), want.to_bits(), "{x:e}");
            }
        }
    }

    #[test]
    fn every_sixteen_bit_number_and_every_midpoint() {
        for (fmt, values) in [
            (format(DType::F16), (0..0x7c00u16).map(|b| f64::from(f16::from_bits(b))).collect::<Vec<_>>()),
            (format(DType::BF16), (0..0x7f80u16).map(|b| f64::from(bf16::from_bits(b))).collect()),
        ] {
            assert_eq!(*values.last().expect("not empty"), max_finite(fmt));
            for (i, pair) in values.windows(2).enumerate() {
                let (a, b) = (pair[0], pair[1]);
                let middle = a + (b - a) / 2.0;
                let even = if i % 2 == 0 { a } else { b };
                for (x, want) in [(a, a), (middle.next_down(), a), (middle, even), (middle.next_up(), b)] {
                    assert_eq!(round_f64(fmt, x).to_bits(), want.to_bits());
                    assert_eq!(round_f64(fmt, -x).to_bits(), (-want).to_bits());
                    assert_eq!(round_sum3(fmt, x, 0.0, 0.0), want);
                }
                assert_eq!(ulp(fmt, a), b - a);
                // The low part and the radius decide beside a midpoint.
                let tiny = exp2i(-1074);
                assert_eq!(round_interval(fmt, middle, tiny, 0.0), Some(b));
                assert_eq!(round_interval(fmt, middle, -tiny, 0.0), Some(a));
                assert_eq!(round_interval(fmt, middle, 0.0, tiny), None);
                assert_eq!(round_interval(fmt, middle, 0.0, 0.0), Some(even));
                // Both ends at midpoints around an even number: ties go to it.
                if i % 2 == 0 && i > 0 {
                    let below = a - (a - values[i - 1]) / 2.0;
                    let mean = below + (middle - below) / 2.0;
                    let radius = (middle - below) / 2.0;
                    assert_eq!(round_interval(fmt, mean, 0.0, radius), Some(a));
                    assert_eq!(round_interval(fmt, mean, 0.0, radius.next_up()), None);
                }
            }
        }
    }

    /// The definition in integers.
    fn ulp_by_exponent(fmt: FloatFormat, x: f64) -> f64 {
        let (least, top) = (i64::from(fmt.min_exponent), i64::from(fmt.max_exponent));
        let e = match x {
            0.0 => least,
            _ if x.is_infinite() => top,
            _ => exponent(x).clamp(least, top),
        };
        exp2i(e - i64::from(fmt.precision) + 1)
    }

    #[test]
    fn an_ulp_is_the_exponents() {
        let mut state = 3u64;
        let powers = (-1074..=1023).map(exp2i).flat_map(|p| [p.next_down(), p, p.next_up()]);
        let special = [0.0, f64::INFINITY, f64::MAX, f64::MIN_POSITIVE];
        let random = (0..100_000).map(|_| f64::from_bits(bits(&mut state))).filter(|x| !x.is_nan());
        for x in powers.chain(special).chain(random).flat_map(|x| [x, -x]) {
            for fmt in formats() {
                assert_eq!(ulp(fmt, x).to_bits(), ulp_by_exponent(fmt, x).to_bits(), "{x:e}");
            }
        }
        assert!(formats().iter().all(|&fmt| ulp(fmt, f64::NAN).is_nan()));
    }

    #[test]
    fn sums_of_three_in_float64() {
        let fmt = format(DType::F64);
        let mut state = 7u64;
        for _ in 0..200_000 {
            let x = f64::from_bits(bits(&mut state));
            if !x.is_finite() {
                continue;
            }
            assert_eq!(round_sum3(fmt, x, 0.0, 0.0), x);
            // Two terms: the hardware's addition is correctly rounded.
            let y = x * (1.0 + (bits(&mut state) >> 12) as f64 * exp2i(-52)) * exp2i(-((state % 60) as i64));
            if y.is_finite() {
                assert_eq!(round_sum3(fmt, x, y, 0.0), x + y);
                assert_eq!(round_sum3(fmt, x, y, -x), y);
                assert_eq!(round_interval(fmt, x, 0.0, 0.0), (x != 0.0).then_some(x).or(Some(0.0)));
            }
            let quarter = ulp(fmt, x) / 4.0;
            if x.abs() > exp2i(-1000) && x.abs() < exp2i(1000) {
                assert_eq!(round_interval(fmt, x, quarter / 2.0, quarter), Some(x));
                assert_eq!(round_interval(fmt, x, quarter, 1.5 * quarter), None);
            }
        }
        assert_eq!(round_interval(fmt, f64::MAX, exp2i(970).next_down(), 0.0), Some(f64::MAX));
        assert_eq!(round_interval(fmt, f64::MAX, exp2i(970), 0.0), Some(f64::INFINITY));
    }

    #[test]
    fn zero_has_a_sign() {
        for fmt in formats() {
            let tiny = exp2i(-1074);
            if fmt.precision < 53 {
                let minus = round_interval(fmt, -tiny, 0.0, 0.0).expect("decided");
                assert!(minus == 0.0 && minus.is_sign_negative());
            }
            assert_eq!(round_interval(fmt, 0.0, 0.0, tiny / 2.0).map(f64::to_bits), Some(0));
            assert_eq!(round_interval(fmt, -0.0, 0.0, 0.0).map(f64::to_bits), Some(0));
            assert_eq!(round_interval(fmt, 0.0, 0.0, tiny), None);
            assert_eq!(round_interval(fmt, f64::INFINITY, 0.0, 0.0), None);
            assert_eq!(round_interval(fmt, f64::NAN, 0.0, 0.0), None);
        }
    }

    #[test]
    fn scaled_integers_with_a_sticky_bit() {
        let fmt = format(DType::F32);
        let tie = UBig::from((1u64 << 24) + 1);
        // Halfway between neighbours: the tie goes down to the even one, anything above it up.
        assert_eq!(round_scaled(fmt, Sign::Positive, &tie, 0, false), exp2i(24));
        assert_eq!(round_scaled(fmt, Sign::Positive, &(&tie << 1), -1, true), exp2i(24) + 2.0);
        assert_eq!(round_scaled(fmt, Sign::Negative, &UBig::ONE, 128, false), f64::NEG_INFINITY);
        assert_eq!(round_scaled(fmt, Sign::Positive, &UBig::ONE, -150, false), 0.0);
        assert_eq!(round_scaled(fmt, Sign::Positive, &UBig::from(3u8), -151, false), exp2i(-149));
        assert_eq!(
            round_scaled(format(DType::F64), Sign::Positive, &UBig::from(3u8), -1075, false),
            exp2i(-1073)
        );
    }
}
