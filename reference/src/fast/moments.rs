//! Mean, variance and normalisation of float32 numbers in float64, with certified errors.
//!
//! Formula: mean = sum x / n; var = sum (x - mean)^2 / n; z = (x - mean) / sqrt(var + eps).
//!
//! Method: two passes in 16 lanes. Each lane adds up 16 numbers at a time and these blocks by TwoSum, whose errors have a sum of
//! their own ([`Lanes`]). The sum of the first pass is exact where n max|x| <= 2^53 times the last place of the least |x|
//! (every partial sum is then a float64), which most data satisfies.
//!
//! Bound, u = 2^-53. The additions within a block lose 15 u. TwoSum's errors for B blocks come to at most B u of the sum of
//! magnitudes, and adding them up loses B u of that. The two words of a lane and the 16 lanes add 17 u: with h = 36 + B^2 u,
//! every sum is off by at most h u of the sum of magnitudes.
//! - mean m' = fl(S' / n): |m' - mean| <= dm = (0 or h u sum|x|) / n + (0 where the division is exact, else u |m'|).
//! - d' = fl(x - m'): |d' - (x - mean)| <= dm + u |d'|.
//! - V' = fl(sum d'^2 / n): sum (x - m')^2 / n = var + (m' - mean)^2, each d' is off by u, squares and additions (with or
//!   without FMA) by (h + 1) u, the division by u: |V' - var| <= (h + 5) u V' + dm^2.
//! - w' = fl(V' + eps): relative error rho = ((h + 5) u V' + dm^2) / w' + u. The root halves it; root and reciprocal round:
//!   s' = 1 / sqrt(w') is off by rho (1 + rho) / 2 + 2 u, for rho <= 2^-10.
//! - z' = fl(d' s'): |z' - z| <= s dm + |z'| (u + u + relative error of s'). An exactly zero d' with dm = 0 gives exactly 0.
//!
//! Factors of 1 + 2^-9 cover the second-order terms.

use crate::eft::two_sum;

/// 2^-53.
const UNIT: f64 = f64::EPSILON / 2.0;

const LANES: usize = 16;

/// Numbers that a lane adds up before they go into its two words.
const BLOCK: usize = 16;

/// Mean and variance of some numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moments {
    pub mean: f64,
    /// Absolute error of the mean.
    pub mean_error: f64,
    /// Biased variance.
    pub variance: f64,
    /// Absolute error of the variance.
    pub variance_error: f64,
}

/// A sum and a bound of its error.
#[derive(Debug, Clone, Copy)]
pub(super) struct Total {
    pub sum: f64,
    pub error: f64,
    /// h, of this and like sums.
    paths: f64,
}

/// Sixteen sums of float64 in two words each.
struct Lanes {
    sums: [f64; LANES],
    errors: [f64; LANES],
}

impl Lanes {
    const ZERO: Lanes = Lanes { sums: [0.0; LANES], errors: [0.0; LANES] };

    #[inline(always)]
    fn add(&mut self, i: usize, x: f64) {
        let (sum, error) = two_sum(self.sums[i], x);
        self.sums[i] = sum;
        self.errors[i] += error;
    }

    #[inline(always)]
    fn total(&self) -> f64 {
        let mut total = 0.0;
        for i in 0..LANES {
            total += self.sums[i] + self.errors[i];
        }
        total
    }
}

/// The sum of `count` numbers that come in pieces; NaN where one is NaN or infinite.
#[inline(always)]
pub(super) fn total<'a>(pieces: impl Iterator<Item = &'a [f32]>, count: usize) -> Total {
    let (mut sums, mut sizes) = (Lanes::ZERO, [0.0f64; LANES]);
    let (mut most, mut least) = ([0.0f32; LANES], [f32::INFINITY; LANES]);
    let mut blocks = 0;
    for piece in pieces {
        blocks += piece.len() / (LANES * BLOCK) + 2;
        let (full, rest) = piece.as_chunks::<LANES>();
        let mut look = |i: usize, x: f32| {
            let a = x.abs();
            sizes[i] += f64::from(a);
            most[i] = if a > most[i] { a } else { most[i] };
            least[i] = if (a > 0.0) & (a < least[i]) { a } else { least[i] };
        };
        for block in full.chunks(BLOCK) {
            let mut part = [0.0f64; LANES];
            for x in block {
                for i in 0..LANES {
                    part[i] += f64::from(x[i]);
                    look(i, x[i]);
                }
            }
            for i in 0..LANES {
                sums.add(i, part[i]);
            }
        }
        for (i, &x) in rest.iter().enumerate() {
            sums.add(i, f64::from(x));
            look(i, x);
        }
    }
    let (sum, size) = (sums.total(), sizes.iter().sum::<f64>());
    let most = f64::from(most.iter().fold(0.0f32, |m, &x| m.max(x)));
    let least = least.iter().fold(f32::INFINITY, |m, &x| m.min(x));
    // The last place of the least number, 2^(max(field, 1) - 150); beyond all for zeros alone.
    let place = f64::from_bits((u64::from((least.to_bits() >> 23).max(1)) + (1023 - 150)) << 52);
    let blocks = blocks as f64;
    let paths = 36.0 + blocks * blocks * UNIT;
    let exact = count as f64 * most <= 9007199254740992.0 * place;
    let error = if exact { 0.0 } else { 1.01 * paths * UNIT * size };
    // NaN and infinities show in the sum of magnitudes.
    Total { sum: sum + size * 0.0, error, paths }
}

/// sum / n and a bound of its error.
#[inline(always)]
pub(super) fn mean(total: Total, n: f64) -> (f64, f64) {
    let mean = total.sum / n;
    let exact = (-mean).mul_add(n, total.sum) == 0.0;
    (mean, total.error / n * 1.01 + if exact { 0.0 } else { mean.abs() * UNIT })
}

/// The moments of `count` numbers that come in pieces. NaN where a number is NaN or infinite, or where there is none.
#[inline(always)]
pub(super) fn moments<'a>(pieces: impl Iterator<Item = &'a [f32]> + Clone, count: usize) -> Moments {
    let total = total(pieces.clone(), count);
    let n = count as f64;
    let (mean, mean_error) = mean(total, n);
    let mut squares = Lanes::ZERO;
    for piece in pieces {
        let (full, rest) = piece.as_chunks::<LANES>();
        for block in full.chunks(BLOCK) {
            let mut part = [0.0f64; LANES];
            for x in block {
                for i in 0..LANES {
                    let d = f64::from(x[i]) - mean;
                    part[i] += d * d;
                }
            }
            for i in 0..LANES {
                squares.add(i, part[i]);
            }
        }
        for (i, &x) in rest.iter().enumerate() {
            let d = f64::from(x) - mean;
            squares.add(i, d * d);
        }
    }
    let variance = squares.total() / n;
    let variance_error = 1.01 * ((total.paths + 5.0) * UNIT * variance + mean_error * mean_error);
    Moments { mean, mean_error, variance, variance_error }
}

/// x to (x - mean) times a scale.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    mean: f64,
    mean_error: f64,
    /// 1 / sqrt(var + eps)
    factor: f64,
    /// Relative error of a product with it.
    relative: f64,
}

impl Scale {
    /// `None` where var + eps is not well away from zero, or something is not finite.
    #[inline(always)]
    pub(super) fn new(m: Moments, eps: f64) -> Option<Scale> {
        let w = m.variance + eps;
        let rho = m.variance_error / w + UNIT;
        let factor = 1.0 / w.sqrt();
        let relative = (0.5 * rho + 4.0 * UNIT) * (1.0 + 1.0 / 512.0);
        let normal = w > 1e-290 && w < 1e290 && rho < 1.0 / 1024.0 && m.mean.is_finite();
        normal.then_some(Scale { mean: m.mean, mean_error: m.mean_error, factor, relative })
    }

    /// Centre and radius of the normalised number.
    #[inline(always)]
    pub(super) fn apply(&self, x: f32) -> (f64, f64) {
        let z = (f64::from(x) - self.mean) * self.factor;
        (z, (self.mean_error * self.factor * 1.01 + z.abs() * self.relative) * (1.0 + 1.0 / 512.0))
    }
}

/// z to z weight + bias.
#[derive(Debug, Clone, Copy)]
pub(super) struct Affine {
    pub weight: f32,
    pub bias: f32,
}

impl Affine {
    /// Centre and radius: the product rounds by u, the sum's error comes from TwoSum.
    #[inline(always)]
    pub(super) fn apply(self, (z, radius): (f64, f64)) -> (f64, f64) {
        let weight = f64::from(self.weight);
        let p = z * weight;
        let (y, e) = two_sum(p, f64::from(self.bias));
        (y, (radius * weight.abs() + p.abs() * UNIT + e.abs()) * (1.0 + f64::EPSILON * 4.0))
    }
}
