//! layer_norm by PyTorch's CPU kernel, and by a one-pass variance.
//!
//! Formula: mean and variance by Welford's recurrence in `LANES` float32 lanes over chunks of 16 vectors, partial moments
//! merged pairwise (Chan, Golub, LeVeque 1983), the lanes merged in order after a scalar tail (where `FMA`, the recurrence and
//! the merging of lanes are contracted, the tail and the merging of vectors are not); then
//! y = (x - mean) * rstd * weight + bias with rstd = 1 / sqrt(var + eps).
//! Cost: about n kappa u with kappa = sqrt(1 + mean^2 / (var + eps)), as any two-pass algorithm. But a merge squares the
//! difference of two means, and the recurrence squares deviations: from about 1.8e19 on these overflow float32, the variance
//! becomes infinite (y = 0) or, where an empty partial is merged (infinity times a weight of 0), NaN.
//! Source: `aten/src/ATen/native/cpu/layer_norm_kernel.cpp` and `moments_utils.h` of PyTorch.

use ulpian_spec::{HostTensor, Op};

use super::lanes::{f32s, mul_add, store};
use crate::simd::vectorize;

/// Welford in `LANES` lanes where no intermediate overflows. Sound.
pub(super) fn welford<const LANES: usize, const FMA: bool>(op: &Op<&HostTensor>) -> Option<Vec<HostTensor>> {
    let (result, overflowed) = kernel::<LANES, FMA>(op)?;
    (!overflowed).then(|| vec![result])
}

/// The same where finite inputs gave a variance that is infinite or NaN.
pub(super) fn squares_overflow<const LANES: usize, const FMA: bool>(
    op: &Op<&HostTensor>,
) -> Option<Vec<HostTensor>> {
    let (result, overflowed) = kernel::<LANES, FMA>(op)?;
    overflowed.then(|| vec![result])
}

/// Variance as E[x^2] - E[x]^2 in float32, sums left to right (a negative variance counts as 0).
pub(super) fn one_pass_variance(op: &Op<&HostTensor>) -> Option<Vec<HostTensor>> {
    let (result, _) = rows(
        op,
        |x| {
            let n = x.len() as f32;
            let mean = x.iter().fold(0.0f32, |s, &v| s + v) / n;
            let squares = x.iter().fold(0.0f32, |s, &v| s + v * v) / n;
            (mean, (squares - mean * mean).max(0.0))
        },
        |x, mean, rstd, weight, bias| (x - mean) * rstd * weight + bias,
    )?;
    Some(vec![result])
}

/// Variance as the mean of (x - mean)^2, both sums left to right in float32. Sound.
pub(super) fn two_pass(op: &Op<&HostTensor>) -> Option<Vec<HostTensor>> {
    let (result, overflowed) = rows(
        op,
        |x| {
            let n = x.len() as f32;
            let mean = x.iter().fold(0.0f32, |s, &v| s + v) / n;
            (mean, x.iter().fold(0.0f32, |s, &v| s + (v - mean) * (v - mean)) / n)
        },
        |x, mean, rstd, weight, bias| (x - mean) * rstd * weight + bias,
    )?;
    (!overflowed).then(|| vec![result])
}

fn kernel<const LANES: usize, const FMA: bool>(op: &Op<&HostTensor>) -> Option<(HostTensor, bool)> {
    rows(op, moments::<LANES, FMA>, |x, mean, rstd, weight, bias| {
        mul_add::<FMA>((x - mean) * rstd, weight, bias)
    })
}

/// Applies `affine` with the moments of each row; also says whether finite values gave a variance that is not.
fn rows(
    op: &Op<&HostTensor>,
    moments: impl Fn(&[f32]) -> (f32, f32),
    affine: impl Fn(f32, f32, f32, f32, f32) -> f32,
) -> Option<(HostTensor, bool)> {
    let Op::LayerNorm(args) = op else { return None };
    let x = f32s(args.input)?;
    let size: usize = args.normalized_shape.iter().map(|&n| n as usize).product();
    if x.is_empty() {
        return None;
    }
    let weight = args.weight.map_or(Some(vec![1.0; size]), f32s)?;
    let bias = args.bias.map_or(Some(vec![0.0; size]), f32s)?;
    let (mut y, mut overflowed) = (vec![0.0; x.len()], false);
    for (row, to) in x.chunks_exact(size).zip(y.chunks_exact_mut(size)) {
        let (mean, variance) = moments(row);
        overflowed |= !(mean.is_finite() && variance.is_finite()) && row.iter().all(|v| v.is_finite());
        let rstd = 1.0 / (variance + args.eps as f32).sqrt();
        vectorize(
            #[inline(always)]
            || {
                for ((y, &x), (&w, &b)) in to.iter_mut().zip(row).zip(weight.iter().zip(&bias)) {
                    *y = affine(x, mean, rstd, w, b);
                }
            },
        );
    }
    Some((store(args.input.dtype(), args.input.shape(), y)?, overflowed))
}

/// Number of values, their mean and their sum of squared deviations.
#[derive(Clone, Copy, Default)]
struct Moments {
    count: u64,
    mean: f32,
    squares: f32,
}

impl Moments {
    /// Merges `other` into these moments as vectors are merged: not contracted, the sums of squares added first.
    fn merge_vector(&mut self, other: Moments) {
        let count = self.count + other.count;
        let share = if count == 0 { 0.0 } else { other.count as f32 / count as f32 };
        let delta = other.mean - self.mean;
        self.mean += share * delta;
        self.squares = (self.squares + other.squares) + delta * delta * share * self.count as f32;
        self.count = count;
    }

    /// Merges `other` into these moments as lanes are merged.
    fn merge<const FMA: bool>(&mut self, other: Moments) {
        let count = self.count + other.count;
        let share = if count == 0 { 0.0 } else { other.count as f32 / count as f32 };
        let delta = other.mean - self.mean;
        self.mean = mul_add::<FMA>(share, delta, self.mean);
        self.squares += mul_add::<FMA>(delta * delta * share, self.count as f32, other.squares);
        self.count = count;
    }
}

/// The means and the sums of squared deviations of the lanes of consecutive vectors.
#[inline(always)]
fn welford_lanes<const LANES: usize, const FMA: bool>(x: &[f32]) -> ([f32; LANES], [f32; LANES]) {
    let (mut means, mut squares) = ([0.0f32; LANES], [0.0f32; LANES]);
    for (j, vector) in x.chunks_exact(LANES).enumerate() {
        let share = 1.0 / (j + 1) as f32;
        for (&value, (mean, squares)) in vector.iter().zip(means.iter_mut().zip(&mut squares)) {
            let delta = value - *mean;
            *mean = mul_add::<FMA>(delta, share, *mean);
            *squares = mul_add::<FMA>(delta, value - *mean, *squares);
        }
    }
    (means, squares)
}

/// Mean and biased variance of a row.
fn moments<const LANES: usize, const FMA: bool>(x: &[f32]) -> (f32, f32) {
    const CHUNK: usize = 16;
    let vectors = x.len() / LANES;
    let chunks = vectors.div_ceil(CHUNK);
    let depth = (chunks.max(1).next_power_of_two().trailing_zeros() as usize).max(1);
    let mut stack = vec![[Moments::default(); LANES]; depth];
    for chunk in 0..chunks {
        let count = CHUNK.min(vectors - chunk * CHUNK);
        let start = chunk * CHUNK * LANES;
        let (means, squares) = vectorize(
            #[inline(always)]
            || welford_lanes::<LANES, FMA>(&x[start..start + count * LANES]),
        );
        for (slot, (&mean, &squares)) in stack[0].iter_mut().zip(means.iter().zip(&squares)) {
            slot.merge_vector(Moments { count: count as u64, mean, squares });
        }
        let mut mask = chunk + 1;
        for level in 1..depth {
            if mask & 1 != 0 {
                break;
            }
            let full = std::mem::replace(&mut stack[level - 1], [Moments::default(); LANES]);
            for (slot, part) in stack[level].iter_mut().zip(full) {
                slot.merge_vector(part);
            }
            mask >>= 1;
        }
    }
    for level in 1..depth {
        let part = stack[level];
        for (slot, part) in stack[0].iter_mut().zip(part) {
            slot.merge_vector(part);
        }
    }

    let mut total = Moments::default();
    for &value in &x[vectors * LANES..] {
        let delta = value - total.mean;
        total.count += 1;
        total.mean += delta / total.count as f32;
        total.squares += delta * (value - total.mean);
    }
    for lane in stack[0] {
        total.merge::<FMA>(Moments { count: vectors as u64, ..lane });
    }
    (total.mean, total.squares / x.len() as f32)
}
