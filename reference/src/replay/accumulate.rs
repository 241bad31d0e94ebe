//! Orders and roundings of a dot product.
//!
//! | hypothesis | formula | cost | where |
//! |---|---|---|---|
//! | sequential-fma | s = fma(a_k, b_k, s), float32, ascending k | gamma_K | CUDA cores, simple CPU kernels |
//! | multiply-then-add | s = fl(s + fl(a_k b_k)) | gamma_K | kernels built without FMA |
//! | pairwise-sum | products rounded, summed as a balanced tree | gamma_{log2 K + 1} | numpy, tree reductions |
//! | lanes-8-fma, lanes-16-fma | K split over 8 or 16 FMA lanes, joined by halves | gamma_{K/8 + 3} | AVX2, AVX-512 dot products |
//! | float64-accumulator | exact products, float64 sum, one rounding | u | PyTorch's fallback loops |
//! | tf32-rna, -rne, -rz | operands to 10 fraction bits (ties away, to even, truncated), then sequential-fma | 2 u_t \|A\|\|B\| | NVIDIA Ampere and later |
//! | tf32-exact-… | the same operands, exact sum, one rounding | 2 u_t \|A\|\|B\| | the least a TF32 unit can lose |
//! | accumulator-16bit | s rounded to the inputs' 16-bit dtype after each term | K u_16 | 16-bit accumulation |
//!
//! TF32 operands have 11 significand bits, so their products are exact in float32 and an FMA equals a multiply and an add,
//! but for products below 2^-126.
//! Sources: NVIDIA's A100 whitepaper (TF32); Higham, Accuracy and Stability of Numerical Algorithms, 4.2 (orders of sums).

// A function given by its name is not inlined into a dispatched loop, which then calls `fmaf` for every term.
#![allow(clippy::redundant_closure, clippy::needless_range_loop)]

use half::{bf16, f16};
use ulpian_spec::{DType, HostTensor, Op};

use super::dots::{Arithmetic, Dots, each};
use crate::simd::vectorize;

/// Declares `run` and `sample` functions for an arithmetic of the dot-product ops.
macro_rules! arithmetic {
    ($($(#[$meta:meta])* $name:ident: $operand:expr, $sums:expr, $dtypes:expr;)*) => {$(
        $(#[$meta])*
        pub(super) mod $name {
            use super::*;

            fn by(bias_first: bool) -> Arithmetic {
                Arithmetic { operand: $operand, sums: $sums, bias_first }
            }

            pub(in crate::replay) fn run(op: &Op<&HostTensor>) -> Option<Vec<HostTensor>> {
                dots(op, &$dtypes)?.run(&by(false))
            }

            pub(in crate::replay) fn sample(op: &Op<&HostTensor>, seen: &HostTensor) -> Option<bool> {
                Some(dots(op, &$dtypes)?.sample_agrees(&by(false), seen, super::SAMPLE))
            }

            #[allow(dead_code)]
            pub(in crate::replay) fn run_bias_first(op: &Op<&HostTensor>) -> Option<Vec<HostTensor>> {
                super::has_bias(op).then_some(())?;
                dots(op, &$dtypes)?.run(&by(true))
            }

            #[allow(dead_code)]
            pub(in crate::replay) fn sample_bias_first(op: &Op<&HostTensor>, seen: &HostTensor) -> Option<bool> {
                super::has_bias(op).then_some(())?;
                Some(dots(op, &$dtypes)?.sample_agrees(&by(true), seen, super::SAMPLE))
            }
        }
    )*};
}

const SAMPLE: usize = 64;
const ANY: [DType; 3] = [DType::F32, DType::F16, DType::BF16];
const F32: [DType; 1] = [DType::F32];

arithmetic! {
    sequential_fma: same, fma_chains, ANY;
    multiply_then_add: same, |s, a, b| each(s, a, b, sequential), F32;
    pairwise_sum: same, |s, a, b| each(s, a, b, |s, a, b| s + pairwise(a, b)), ANY;
    lanes_8_fma: same, |s, a, b| vectorize(#[inline(always)] || each(s, a, b, #[inline(always)] |s, a, b| lanes::<8>(s, a, b))), ANY;
    lanes_16_fma: same, |s, a, b| vectorize(#[inline(always)] || each(s, a, b, #[inline(always)] |s, a, b| lanes::<16>(s, a, b))), ANY;
    float64_accumulator: same, |s, a, b| each(s, a, b, float64), ANY;
    tf32_rna: |x| tf32(x, Tf32::TiesAway), |s, a, b| each(s, a, b, sequential), F32;
    tf32_rne: |x| tf32(x, Tf32::TiesToEven), |s, a, b| each(s, a, b, sequential), F32;
    tf32_rz: |x| tf32(x, Tf32::Truncate), |s, a, b| each(s, a, b, sequential), F32;
    tf32_exact_rna: |x| tf32(x, Tf32::TiesAway), |s, a, b| each(s, a, b, float64), F32;
    tf32_exact_rne: |x| tf32(x, Tf32::TiesToEven), |s, a, b| each(s, a, b, float64), F32;
    tf32_exact_rz: |x| tf32(x, Tf32::Truncate), |s, a, b| each(s, a, b, float64), F32;
    accumulator_f16: same, |s, a, b| each(s, a, b, |s, a, b| round_each(s, a, b, |x| f16::from_f32(x).to_f32())), [DType::F16];
    accumulator_bf16: same, |s, a, b| each(s, a, b, |s, a, b| round_each(s, a, b, |x| bf16::from_f32(x).to_f32())), [DType::BF16];
}

/// An accumulator of the inputs' 16-bit dtype.
pub(super) mod accumulator_16bit {
    use super::*;

    pub(in crate::replay) fn run(op: &Op<&HostTensor>) -> Option<Vec<HostTensor>> {
        accumulator_f16::run(op).or_else(|| accumulator_bf16::run(op))
    }

    pub(in crate::replay) fn sample(op: &Op<&HostTensor>, seen: &HostTensor) -> Option<bool> {
        accumulator_f16::sample(op, seen).or_else(|| accumulator_bf16::sample(op, seen))
    }
}

fn dots<'a>(op: &Op<&'a HostTensor>, dtypes: &[DType]) -> Option<Dots<'a>> {
    let dtype = match op {
        Op::Matmul(args) => args.input.dtype(),
        Op::Linear(args) => args.input.dtype(),
        Op::Conv2d(args) => args.input.dtype(),
        _ => return None,
    };
    if dtypes.contains(&dtype) { Dots::new(op) } else { None }
}

fn has_bias(op: &Op<&HostTensor>) -> bool {
    match op {
        Op::Linear(args) => args.bias.is_some(),
        Op::Conv2d(args) => args.bias.is_some(),
        _ => false,
    }
}

fn same(x: f32) -> f32 {
    x
}

/// fma(a_k, b_k, s) in ascending k, of eight rows at a time: each chain is as long as its terms' latencies, and eight run abreast.
fn fma_chains(s: &mut [f32], a: &[f32], rows: &[f32]) {
    const ABREAST: usize = 8;
    vectorize(
        #[inline(always)]
        || {
            let size = a.len().max(1);
            let whole = s.len() / ABREAST * ABREAST;
            let (abreast, rest) = s.split_at_mut(whole);
            for (s, rows) in abreast.chunks_exact_mut(ABREAST).zip(rows.chunks_exact(ABREAST * size)) {
                let (mut sums, mut own) = ([0.0f32; ABREAST], [a; ABREAST]);
                sums.copy_from_slice(s);
                for (own, row) in own.iter_mut().zip(rows.chunks_exact(size)) {
                    *own = &row[..a.len()];
                }
                for k in 0..a.len() {
                    for lane in 0..ABREAST {
                        sums[lane] = a[k].mul_add(own[lane][k], sums[lane]);
                    }
                }
                s.copy_from_slice(&sums);
            }
            for (s, b) in rest.iter_mut().zip(rows[whole * size..].chunks_exact(size)) {
                for (&a, &b) in a.iter().zip(b) {
                    *s = a.mul_add(b, *s);
                }
            }
        },
    );
}

fn sequential(s: f32, a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).fold(s, |s, (&a, &b)| s + a * b)
}

/// Exact products (24 + 24 bits fit float64) added in float64. Its own error is 2^-29 of a float32 rounding a term.
fn float64(s: f32, a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).fold(f64::from(s), |s, (&a, &b)| s + f64::from(a) * f64::from(b)) as f32
}

fn pairwise(a: &[f32], b: &[f32]) -> f32 {
    match a.len() {
        0 => 0.0,
        1 => a[0] * b[0],
        n => {
            let (left, right) = (n.div_ceil(2), n);
            pairwise(&a[..left], &b[..left]) + pairwise(&a[left..right], &b[left..right])
        }
    }
}

/// The sum over L lanes, added to `s`.
#[inline(always)]
fn lanes<const L: usize>(s: f32, a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0f32; L];
    let (whole_a, whole_b) = (a.chunks_exact(L), b.chunks_exact(L));
    let rest = whole_a.remainder().iter().zip(whole_b.remainder());
    for (a, b) in whole_a.zip(whole_b) {
        for lane in 0..L {
            sums[lane] = a[lane].mul_add(b[lane], sums[lane]);
        }
    }
    for (s, (&a, &b)) in sums.iter_mut().zip(rest) {
        *s = a.mul_add(b, *s);
    }
    let mut width = L;
    while width > 1 {
        width /= 2;
        for i in 0..width {
            sums[i] += sums[i + width];
        }
    }
    s + sums[0]
}

/// Each product exact, added to the sum in float32 (exact for 16-bit products but for the last bits), rounded by `to`.
fn round_each(s: f32, a: &[f32], b: &[f32], to: fn(f32) -> f32) -> f32 {
    a.iter().zip(b).fold(s, |s, (&a, &b)| to(a.mul_add(b, s)))
}

enum Tf32 {
    TiesAway,
    TiesToEven,
    Truncate,
}

/// A float32 with its significand cut to TF32's 10 fraction bits. Infinities and NaN stay.
fn tf32(x: f32, rounding: Tf32) -> f32 {
    if !x.is_finite() {
        return x;
    }
    const DROPPED: u32 = 13;
    let bits = x.to_bits();
    let bits = match rounding {
        Tf32::TiesAway => bits + (1 << (DROPPED - 1)),
        Tf32::TiesToEven => bits + ((1 << (DROPPED - 1)) - 1) + ((bits >> DROPPED) & 1),
        Tf32::Truncate => bits,
    };
    f32::from_bits(bits >> DROPPED << DROPPED)
}
