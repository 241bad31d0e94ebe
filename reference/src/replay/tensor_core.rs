//! NVIDIA tensor cores, bit for bit.
//!
//! One step takes up to b products and an addend c. Each product is exact, with the exponent e_a + e_b (not renormalised);
//! everything, c too, is aligned to the largest exponent and truncated toward zero to F fractional bits; the sum is exact;
//! the result is normalised and rounded toward zero to float32, or to nearest even to float16. Zero products are ignored. A
//! longer sum runs through chunks of b terms in ascending order.
//!
//! | architecture | F | b, float16 and bfloat16 | b, TF32 |
//! |---|---|---|---|
//! | Volta | 23 | 4 (float16 alone) | - |
//! | Turing | 24 | 8 | - |
//! | Ampere, Ada | 24 | 8 | 4 |
//! | Hopper, Blackwell | 25 | 16 | 8 |
//!
//! Cost: truncation is biased: on data of one sign about -0.1 K u on Hopper, where float32 FMA chains lose a few u.
//! Source: Khattak and Mikaitis, arXiv 2512.07004, with vectors measured on V100, A100 and H100 (tests/data/tensor-core).
//! Not settled by them: results near 2^-126.

use ulpian_spec::{DType, HostTensor, Op};

use super::dots::{Arithmetic, Dots, each};
use crate::round::round_f64;

/// The two parameters of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TensorCore {
    /// Fractional bits kept after alignment.
    pub fraction_bits: u32,
    /// Products a step.
    pub products: usize,
}

/// The sum of one step as `significand * 2^exponent`, exact, or a special value.
enum Sum {
    Exact { significand: i64, exponent: i32 },
    Special(f32),
}

impl TensorCore {
    /// V100, float16.
    pub const VOLTA: TensorCore = TensorCore { fraction_bits: 23, products: 4 };
    /// T4, float16.
    pub const TURING: TensorCore = TensorCore { fraction_bits: 24, products: 8 };
    /// A100, float16 and bfloat16.
    pub const AMPERE: TensorCore = TensorCore { fraction_bits: 24, products: 8 };
    /// A100, TF32.
    pub const AMPERE_TF32: TensorCore = TensorCore { fraction_bits: 24, products: 4 };
    /// H100, float16 and bfloat16.
    pub const HOPPER: TensorCore = TensorCore { fraction_bits: 25, products: 16 };
    /// H100, TF32.
    pub const HOPPER_TF32: TensorCore = TensorCore { fraction_bits: 25, products: 8 };

    /// `c` plus the dot product, in float32 through all steps.
    ///
    /// Operands are float32 values that fit float16, bfloat16 or TF32 (at most 11 significand bits).
    pub fn dot(self, c: f32, a: &[f32], b: &[f32]) -> f32 {
        a.chunks(self.products).zip(b.chunks(self.products)).fold(c, |c, (a, b)| match self.step(c, a, b) {
            Sum::Special(x) => x,
            Sum::Exact { significand, exponent } => toward_zero(significand, exponent),
        })
    }

    /// One step whose result is a float16, rounded to nearest even; at most `products` terms.
    pub fn dot_float16(self, c: half::f16, a: &[f32], b: &[f32]) -> half::f16 {
        match self.step(c.to_f32(), a, b) {
            Sum::Special(x) => half::f16::from_f32(x),
            // At most 31 bits: exact in float64. half goes from there through float32, which would round twice, so it is
            // given a value that is a float16 already.
            Sum::Exact { significand, exponent } => {
                let exact = significand as f64 * power_of_two(exponent);
                half::f16::from_f64(DType::F16.float_format().map_or(exact, |f| round_f64(f, exact)))
            }
        }
    }

    fn step(self, c: f32, a: &[f32], b: &[f32]) -> Sum {
        let special = special(c, a, b);
        if let Some(x) = special {
            return Sum::Special(x);
        }
        let terms = a.iter().zip(b).filter(|&(&a, &b)| a != 0.0 && b != 0.0).map(|(&a, &b)| {
            let ((ma, ea), (mb, eb)) = (split(a), split(b));
            // 23 + 23 fraction bits.
            (ma * mb, ea + eb, 46)
        });
        let addend = (c != 0.0).then(|| {
            let (m, e) = split(c);
            (m, e, 23)
        });
        let terms = terms.chain(addend);
        let Some(largest) = terms.clone().map(|(_, e, _)| e).max() else {
            return Sum::Special(if c.is_sign_negative() && a.is_empty() { -0.0 } else { 0.0 });
        };
        let significand = terms
            .map(|(m, e, fraction)| {
                let shift = largest - e + fraction - self.fraction_bits as i32;
                let magnitude = m.unsigned_abs();
                let kept = match shift {
                    ..=0 => magnitude << -shift,
                    1..=63 => magnitude >> shift,
                    _ => 0,
                };
                if m < 0 { -(kept as i64) } else { kept as i64 }
            })
            .sum();
        Sum::Exact { significand, exponent: largest - self.fraction_bits as i32 }
    }
}

/// NaN and infinities as IEEE sums them; NaN is 0x7FFFFFFF.
fn special(c: f32, a: &[f32], b: &[f32]) -> Option<f32> {
    let products = a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b));
    let sum: f64 =
        products.filter(|p| !p.is_finite()).sum::<f64>() + if c.is_finite() { 0.0 } else { f64::from(c) };
    if sum.is_nan() {
        return Some(f32::from_bits(0x7FFF_FFFF));
    }
    sum.is_infinite().then_some(sum as f32)
}

/// Signed significand with 23 fraction bits and exponent of a finite float32 that is not 0; a subnormal keeps exponent -126.
fn split(x: f32) -> (i64, i32) {
    let bits = x.to_bits();
    let (exponent, fraction) = ((bits >> 23 & 0xFF) as i32, i64::from(bits & 0x7F_FFFF));
    let (significand, exponent) =
        if exponent == 0 { (fraction, -126) } else { (fraction | 1 << 23, exponent - 127) };
    (if x < 0.0 { -significand } else { significand }, exponent)
}

/// `significand * 2^exponent` rounded toward zero to float32.
fn toward_zero(significand: i64, exponent: i32) -> f32 {
    if significand == 0 {
        return 0.0;
    }
    let magnitude = significand.unsigned_abs();
    let top = 63 - magnitude.leading_zeros() as i32 + exponent;
    let sign = if significand < 0 { 1u32 << 31 } else { 0 };
    if top > 127 {
        return f32::from_bits(sign | 0x7F80_0000);
    }
    // The last place kept: 2^(top - 23), or 2^-149.
    let last = (top - 23).max(-149);
    let shift = last - exponent;
    let kept = match shift {
        ..=0 => magnitude << -shift,
        1..=63 => magnitude >> shift,
        _ => 0,
    };
    let biased = if kept >= 1 << 23 { (last + 150) as u32 } else { 0 };
    f32::from_bits(sign | biased << 23 | (kept as u32 & 0x7F_FFFF))
}

fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

fn ties_away(x: f32) -> f32 {
    if x.is_finite() { f32::from_bits((x.to_bits() + 0x1000) >> 13 << 13) } else { x }
}

type SumsOfProducts = fn(&mut [f32], &[f32], &[f32]);

/// The arithmetic of a unit on operands of `dtype`: float32 operands are rounded to TF32, ties away.
fn arithmetic(dtype: DType, half: SumsOfProducts, tf32: Option<SumsOfProducts>) -> Option<Arithmetic> {
    match dtype {
        DType::F16 | DType::BF16 => Some(Arithmetic { operand: |x| x, sums: half, bias_first: false }),
        DType::F32 => Some(Arithmetic { operand: ties_away, sums: tf32?, bias_first: false }),
        _ => None,
    }
}

macro_rules! units {
    ($($name:ident, $half:ident, $tf32:expr, $bf16:expr;)*) => {$(
        pub(super) mod $name {
            use super::*;

            fn unit(dtype: DType) -> Option<Arithmetic> {
                if dtype == DType::BF16 && !$bf16 {
                    return None;
                }
                arithmetic(dtype, |s, a, b| each(s, a, b, |c, a, b| TensorCore::$half.dot(c, a, b)), $tf32)
            }

            pub(in crate::replay) fn run(op: &Op<&HostTensor>) -> Option<Vec<HostTensor>> {
                let dots = Dots::new(op)?;
                dots.run(&unit(dots.dtype)?)
            }

            pub(in crate::replay) fn sample(op: &Op<&HostTensor>, seen: &HostTensor) -> Option<bool> {
                let dots = Dots::new(op)?;
                Some(dots.sample_agrees(&unit(dots.dtype)?, seen, 64))
            }
        }
    )*};
}

units! {
    volta, VOLTA, None, false;
    turing, TURING, None, false;
    ampere, AMPERE, Some(|s, a, b| each(s, a, b, |c, a, b| TensorCore::AMPERE_TF32.dot(c, a, b))), true;
    hopper, HOPPER, Some(|s, a, b| each(s, a, b, |c, a, b| TensorCore::HOPPER_TF32.dot(c, a, b))), true;
}
