//! Rounding of centre and radius to a narrow float dtype, in vectorisable float64 arithmetic.
//!
//! Formula: the real value y has |y - c| <= r. With r' >= r + (rounding of c ± r'), both fl(c - r') <= y <= fl(c + r') hold,
//! and since rounding is monotone, y rounds as both ends do where these agree.
//!
//! Bound: r' = fl(r (1 + 2^-50) + |c| 2^-51 + 2^-1022). Three roundings of at most 2^-53 each leave
//! r' >= r (1 + 2^-51) + |c| 2^-52, and fl(c + r') >= c + r' - 2^-53 (|c| + r') >= c + r; likewise below. With r = 0 the
//! centre is exact and is rounded alone, so exact ties are decided.
//!
//! Special values: a centre that is NaN or infinite with r = 0 is its own rounding. A radius that is NaN or infinite decides
//! nothing. Zero rounds to +0.0 and a negative number that rounds to zero to -0.0, so an interval around zero is undecided.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use ulpian_spec::Storage;

use super::vectorize;

/// Elements decided at a time.
const BLOCK: usize = 256;

/// A float dtype narrower than float64 by at least two bits and the hidden one, so that double rounding can be excluded.
pub(super) trait Narrow: Copy + Send + Sync + Default + 'static {
    /// The nearest number of the dtype, ties to even, as float32 (which holds every one).
    fn round(x: f64) -> f32;
    /// Exact conversion of such numbers.
    fn narrow(from: &[f32], to: &mut [Self]);
    /// The vector as a tensor's elements.
    fn into_storage(values: Vec<Self>) -> Storage;
}

impl Narrow for f32 {
    #[inline(always)]
    fn round(x: f64) -> f32 {
        x as f32
    }
    #[inline(always)]
    fn narrow(from: &[f32], to: &mut [f32]) {
        to.copy_from_slice(from);
    }
    fn into_storage(values: Vec<f32>) -> Storage {
        Storage::F32(values)
    }
}

impl Narrow for f16 {
    #[inline(always)]
    fn round(x: f64) -> f32 {
        let y = round_to::<42, -14>(x);
        if y.abs() > 65504.0 { f32::INFINITY.copysign(y) } else { y }
    }
    fn narrow(from: &[f32], to: &mut [f16]) {
        to.convert_from_f32_slice(from);
    }
    fn into_storage(values: Vec<f16>) -> Storage {
        Storage::F16(values)
    }
}

impl Narrow for bf16 {
    #[inline(always)]
    fn round(x: f64) -> f32 {
        round_to::<45, -126>(x)
    }
    fn narrow(from: &[f32], to: &mut [bf16]) {
        to.convert_from_f32_slice(from);
    }
    fn into_storage(values: Vec<bf16>) -> Storage {
        Storage::BF16(values)
    }
}

/// `x` to 53 - DROPPED significant bits, with least normal exponent MIN_EXPONENT; ties to even. Beyond float32's range the
/// final conversion gives infinities; NaN stays NaN.
#[inline(always)]
fn round_to<const DROPPED: u64, const MIN_EXPONENT: i64>(x: f64) -> f32 {
    let bits = x.to_bits();
    // Normal numbers: add half an ulp less one, plus the last kept bit, and cut.
    let half = (1u64 << (DROPPED - 1)) - 1 + ((bits >> DROPPED) & 1);
    let normal = f64::from_bits(bits.wrapping_add(half) & !((1 << DROPPED) - 1));
    // Subnormal ones: adding 1.5 2^(52 + least exponent) leaves multiples of the least number.
    let anchor =
        const { f64::from_bits((((52 + MIN_EXPONENT - 52 + DROPPED as i64) + 1023) as u64) << 52) * 1.5 };
    let subnormal = ((x + anchor) - anchor).copysign(x);
    let least_normal = const { f64::from_bits(((MIN_EXPONENT + 1023) as u64) << 52) };
    let y = if x.abs() < least_normal { subnormal } else { normal };
    (if x.is_finite() { y } else { x }) as f32
}

/// The ends of an interval that holds every real number within `radius` of `center`.
#[inline(always)]
fn ends(center: f64, radius: f64) -> (f64, f64) {
    let wide = radius * (1.0 + f64::from_bits(0x3cd0_0000_0000_0000))
        + center.abs() * f64::from_bits(0x3cc0_0000_0000_0000)
        + f64::MIN_POSITIVE;
    let wide = if radius == 0.0 { 0.0 } else { wide };
    ((center - wide) + 0.0, (center + wide) + 0.0)
}

/// Has every number within `radius` of `center` one rounding?
#[inline(always)]
fn decided<T: Narrow, const POSITIVE: bool>(center: f64, radius: f64) -> (f32, bool) {
    let (lower, upper) = ends(center, radius);
    let lower = if POSITIVE && lower <= 0.0 { 0.0 } else { lower };
    let (lower, upper) = (T::round(lower), T::round(upper));
    (lower, (lower.to_bits() == upper.to_bits()) & (radius < f64::INFINITY))
}

/// Rounds every element; appends `base` + position of those that are not decided (their value is that of the lower end).
#[inline(always)]
pub(super) fn decide_inline<T: Narrow>(
    center: &[f64],
    radius: &[f64],
    value: &mut [T],
    base: usize,
    pending: &mut Vec<usize>,
) {
    blocks::<T, false>(center, radius, value, base, pending);
}

/// As [`decide_inline`], for real numbers known not to be negative.
#[inline(always)]
pub(super) fn decide_positive_inline<T: Narrow>(
    center: &[f64],
    radius: &[f64],
    value: &mut [T],
    base: usize,
    pending: &mut Vec<usize>,
) {
    blocks::<T, true>(center, radius, value, base, pending);
}

/// Rounds finite numbers that are the results themselves. Zeros keep their sign.
#[inline(always)]
pub(super) fn round_exact_inline<T: Narrow>(exact: &[f64], value: &mut [T]) {
    let mut rounded = [0f32; BLOCK];
    for (x, v) in exact.chunks(BLOCK).zip(value.chunks_mut(BLOCK)) {
        for (&x, to) in x.iter().zip(&mut rounded) {
            *to = T::round(x);
        }
        T::narrow(&rounded[..v.len()], v);
    }
}

#[inline(always)]
fn blocks<T: Narrow, const POSITIVE: bool>(
    center: &[f64],
    radius: &[f64],
    value: &mut [T],
    base: usize,
    pending: &mut Vec<usize>,
) {
    let mut rounded = [0f32; BLOCK];
    for (b, ((c, r), v)) in
        center.chunks(BLOCK).zip(radius.chunks(BLOCK)).zip(value.chunks_mut(BLOCK)).enumerate()
    {
        let mut open = 0u32;
        for ((&c, &r), v) in c.iter().zip(r).zip(&mut rounded) {
            let (lower, ok) = decided::<T, POSITIVE>(c, r);
            *v = lower;
            open |= u32::from(!ok);
        }
        T::narrow(&rounded[..v.len()], v);
        if open != 0 {
            let list = c.iter().zip(r).enumerate().filter(|&(_, (&c, &r))| !decided::<T, POSITIVE>(c, r).1);
            pending.extend(list.map(|(i, _)| base + b * BLOCK + i));
        }
    }
}

/// [`decide_inline`] over a whole slice.
pub(super) fn decide<T: Narrow>(
    center: &[f64],
    radius: &[f64],
    value: &mut [T],
    base: usize,
    pending: &mut Vec<usize>,
) {
    vectorize(
        #[inline(always)]
        || decide_inline(center, radius, value, base, pending),
    );
}

#[cfg(test)]
mod tests {
    use ulpian_spec::DType;

    use super::*;
    use crate::round::{round_f64, round_interval};

    fn check<T: Narrow>(dtype: DType) {
        let format = dtype.float_format().expect("a float dtype");
        let mut state = 88172645463325252u64;
        let mut undecided = 0;
        for i in 0..600_000u64 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let mut bits = state;
            if i % 4 != 0 {
                // Exponents of the dtype and its subnormals.
                let span = (format.max_exponent - format.least_exponent() + 6) as u64;
                let low = (format.least_exponent() - 3 + 1023) as u64;
                bits = (bits & !(0x7ff << 52)) | ((low + (state >> 20) % span) << 52);
            }
            if i % 3 == 0 {
                // At and beside midpoints of normal numbers.
                let dropped = 53 - format.precision;
                bits = (bits >> dropped << dropped) | 1 << (dropped - 1);
                bits = bits.wrapping_add(i % 5).wrapping_sub(2);
            }
            let x = f64::from_bits(bits);
            let got = f64::from(T::round(x));
            let want = round_f64(format, x);
            assert!(got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan()), "{x:e}");
            if !x.is_finite() {
                continue;
            }
            let radius = x.abs()
                * f64::from_bits(((960 + state % 60) << 52) | (state >> 12))
                * f64::from(u32::from(i % 7 != 0));
            let (value, ok) = decided::<T, false>(x, radius);
            let want = round_interval(format, x, 0.0, radius);
            if ok {
                assert_eq!(want.map(f64::to_bits), Some(f64::from(value).to_bits()), "{x:e} {radius:e}");
            } else {
                undecided += 1;
                // Only what lies within the inflation of a midpoint may be given up.
                let wider =
                    round_interval(format, x, 0.0, radius * 1.001 + x.abs() * f64::EPSILON * 4.0 + 1e-300);
                assert_eq!(wider, None, "{x:e} {radius:e}");
            }
        }
        assert!(undecided > 100);
        for x in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let (value, ok) = decided::<T, false>(x, 0.0);
            assert!(ok && (f64::from(value) == x || x.is_nan() && value.is_nan()));
            assert!(!decided::<T, false>(1.0, x.abs()).1);
        }
        assert_eq!(decided::<T, false>(-0.0, 0.0).0.to_bits(), 0);
    }

    #[test]
    fn agrees_with_the_integer_rounding() {
        check::<f32>(DType::F32);
        check::<f16>(DType::F16);
        check::<bf16>(DType::BF16);
    }
}
