//! Mean, variance and normalisation of float32 numbers, with certified errors.
//!
//! Formula: mean = sum x / n; var = sum (x - mean)^2 / n; z = (x - mean) / sqrt(var + eps).
//!
//! Method: mean and variance in two words ([`Ball`]), from two passes in 16 lanes ([`Lanes`]) of compensated sums (Sum2 of Ogita,
//! Rump, Oishi, Accurate sum and dot product, SIAM J. Sci. Comput. 26 (2005)); z in float64 ([`Scale::apply`]), and in two words
//! for single elements that this leaves open ([`Scale::ball`]).
//!
//! Bound, u = 2^-53, N additions in a lane:
//! - Sum: TwoSum is exact, high + sum of its errors e = sum x. Adding up the e loses at most 1.01 N u sum |e| (gathered as `lost`).
//!   If no e is other than zero, nor one of those of adding up the lanes, the sum is exact.
//! - Squares about c = fl(mean): d + e = x - c and p + q = d^2 exactly; the rest q + 2 d e, |rest| <= 3.1 u p, is rounded once
//!   (3.1 u^2 p) and e^2 <= u^2 p left out. With S the sum of all p, TwoSum's errors are at most u S each, so those and the rests
//!   come to (N + 3.1) u S, and adding them, once to each other and then in N steps, loses (N + 2) u of that. Together at
//!   most 1.02 (N + 4)^2 u^2 S. Then var = sum / n - (mean - c)^2.
//! - Adding up 16 lanes: 16 sums of two words, 4 u^2 of sum (|high| + |low|) each.
//! - Nothing underflows: sums are multiples of 2^-149, c is zero or a multiple of 2^-242 (n < 2^40), and squares are multiples of 2^-484.
//! - z' = fl(fl(fl(x - h) - l) f), h + l the mean's centre, m its radius, f = fl(1 / sqrt(var + eps)) within u f + R. If x / 2 <= h <= 2 x,
//!   the first difference is exact; otherwise |l| <= 2 u |x - h|. Either way the two differences lose at most 2 u + 6 u^2 of
//!   |x - h - l|, so |z' - z| <= (4 u + R / f) |z'| + m f, times 1 + 2^-8 for second-order terms where R / f <= 2^-10. An x equal to
//!   an exact mean gives exactly 0.
//!
//! Special values: a NaN or an infinity among the numbers makes `lost` NaN and the mean unknown.

use crate::balls::Ball;
use crate::dd::{ADD, Dd};
use crate::eft::two_sum;

/// 2^-53.
const UNIT: f64 = f64::EPSILON / 2.0;

const LANES: usize = 16;

/// Covers second-order terms.
const SLACK: f64 = 1.0 + 1.0 / 256.0;

/// Mean and biased variance of some numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moments {
    pub mean: Ball,
    pub variance: Ball,
}

/// Sixteen sums of float64 in two words each.
struct Lanes {
    high: [f64; LANES],
    low: [f64; LANES],
}

impl Lanes {
    const ZERO: Lanes = Lanes { high: [0.0; LANES], low: [0.0; LANES] };

    /// Adds x + rest to a lane; the error of the first word.
    #[inline(always)]
    fn add(&mut self, i: usize, x: f64, rest: f64) -> f64 {
        let (sum, error) = two_sum(self.high[i], x);
        self.high[i] = sum;
        self.low[i] += error + rest;
        error
    }

    /// All lanes, each of which may be off by its part of `error`.
    #[inline(always)]
    fn total(&self, error: f64) -> Ball {
        let (mut total, mut size) = (Dd::ZERO, 0.0);
        for i in 0..LANES {
            total = total.add(Dd::sum(self.high[i], self.low[i]));
            size += self.high[i].abs() + self.low[i].abs();
        }
        Ball::new(total, (error + LANES as f64 * ADD * size) * SLACK)
    }
}

/// Calls `f(lane, x)` for every number of the pieces; returns the most numbers that a lane gets.
#[inline(always)]
fn deal<'a>(pieces: impl Iterator<Item = &'a [f32]>, mut f: impl FnMut(usize, f64)) -> f64 {
    let mut most = 0;
    for piece in pieces {
        let (full, rest) = piece.as_chunks::<LANES>();
        most += full.len() + 1;
        for x in full {
            for i in 0..LANES {
                f(i, f64::from(x[i]));
            }
        }
        for (i, &x) in rest.iter().enumerate() {
            f(i, f64::from(x));
        }
    }
    most as f64
}

/// The sum of numbers that come in pieces; unknown where one is NaN or infinite.
#[inline(always)]
fn sum<'a>(pieces: impl Iterator<Item = &'a [f32]>) -> Ball {
    let (mut sums, mut lost) = (Lanes::ZERO, [0.0; LANES]);
    let additions = deal(
        pieces,
        #[inline(always)]
        |i, x| lost[i] += sums.add(i, x, 0.0).abs(),
    );
    let lost = lost.iter().sum::<f64>();
    let (mut plain, mut exact) = (0.0, lost == 0.0);
    for high in sums.high {
        let (sum, error) = two_sum(plain, high);
        plain = sum;
        exact &= error == 0.0;
    }
    if exact { Ball::exact(plain) } else { sums.total(1.01 * additions * UNIT * lost) }
}

/// The mean of `count` numbers that come in pieces; unknown where one is NaN or infinite, and of none.
#[inline(always)]
pub(super) fn mean<'a>(pieces: impl Iterator<Item = &'a [f32]>, count: usize) -> Ball {
    sum(pieces).div(Ball::exact(count as f64))
}

/// The moments of `count` numbers that come in pieces; unknown where the mean is.
#[inline(always)]
pub(super) fn moments<'a>(pieces: impl Iterator<Item = &'a [f32]> + Clone, count: usize) -> Moments {
    let mean = mean(pieces.clone(), count);
    let center = mean.center.hi;
    let mut squares = Lanes::ZERO;
    let additions = deal(
        pieces,
        #[inline(always)]
        |i, x| {
            let (d, e) = two_sum(x, -center);
            let p = d * d;
            let rest = (d + d).mul_add(e, d.mul_add(d, -p));
            squares.add(i, p, rest);
        },
    );
    let lost = 1.02 * (additions + 4.0) * (additions + 4.0) * UNIT * UNIT;
    let squares = squares.total(lost * squares.high.iter().sum::<f64>());
    let shift = Ball::new(Dd::new(mean.center.lo), mean.radius).square();
    let variance = squares.div(Ball::exact(count as f64)).sub(shift);
    Moments { mean, variance: if mean.is_known() { variance } else { Ball::UNKNOWN } }
}

/// x to (x - mean) / sqrt(var + eps).
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    mean: Ball,
    /// 1 / sqrt(var + eps)
    factor: Ball,
    /// Radius of every z in float64.
    offset: f64,
    /// And what it has further, relative to z.
    relative: f64,
}

impl Scale {
    /// `None` where var + eps is not well away from zero, or something is not finite.
    #[inline(always)]
    pub(super) fn new(m: Moments, eps: f64) -> Option<Scale> {
        let factor = m.variance.add(Ball::exact(eps)).rsqrt();
        let error = factor.radius / factor.center.hi;
        let offset = m.mean.radius * factor.center.hi * SLACK;
        let relative = (4.0 * UNIT + error) * SLACK;
        let usable = error <= 1.0 / 1024.0 && m.mean.is_known();
        usable.then_some(Scale { mean: m.mean, factor, offset, relative })
    }

    /// Centre and radius of the normalised number.
    #[inline(always)]
    pub(super) fn apply(&self, x: f32) -> (f64, f64) {
        let z = ((f64::from(x) - self.mean.center.hi) - self.mean.center.lo) * self.factor.center.hi;
        (z, z.abs() * self.relative + self.offset)
    }

    /// The normalised number in two words.
    pub(super) fn ball(&self, x: f32) -> Ball {
        Ball::exact(f64::from(x)).sub(self.mean).mul(self.factor)
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

    /// The same in two words.
    pub(super) fn ball(self, z: Ball) -> Ball {
        z.mul(Ball::exact(f64::from(self.weight))).add(Ball::exact(f64::from(self.bias)))
    }
}

#[cfg(test)]
mod tests {
    use ulpian_spec::ops::layer_norm::LayerNorm;
    use ulpian_spec::{DType, HostTensor, Op};

    use super::super::tests::{Data, KINDS, Random, tensor};
    use super::*;
    use crate::Settings;
    use crate::exact::Evaluator;

    /// Against arbitrary precision: both ways to a normalised number enclose it, and two words give at least 80 bits of it.
    #[test]
    fn normalised_numbers_lie_within_their_radii() {
        let mut random = Random(0x0ddba11);
        let mut checked = 0;
        for kind in KINDS {
            for (rows, length, eps) in [(4, 300, 1e-5), (3, 17, 0.0), (20, 3, 1e-12)] {
                let x = tensor(&mut random, DType::F32, &[rows, length], kind);
                let normalized_shape = vec![length as i64];
                let op =
                    Op::LayerNorm(LayerNorm { input: &x, weight: None, bias: None, normalized_shape, eps });
                let evaluator = Evaluator::single(&op, vec![x.tensor_type()], &Settings::default());
                let numbers: Vec<f32> = (0..x.len()).map(|i| x.get_f64(i) as f32).collect();
                for (row, numbers) in numbers.chunks(length).enumerate() {
                    // In two pieces, one of which is shorter than the lanes.
                    let pieces = [&numbers[..length / 3], &numbers[length / 3..]];
                    let Some(scale) = Scale::new(moments(pieces.into_iter(), length), eps) else {
                        assert!(kind != Data::Plain || eps == 0.0);
                        continue;
                    };
                    for (i, &number) in numbers.iter().enumerate() {
                        let want = evaluator.resolve(0, 0, row * length + i).expect("determined");
                        let distance = |hi: f64, lo: f64| ((hi - want.hi) + (lo - want.lo)).abs();
                        let slack = want.radius + want.hi.abs() * f64::EPSILON.powi(2);
                        let (z, radius) = scale.apply(number);
                        assert!(distance(z, 0.0) <= radius + slack, "{kind:?}: {z:e} {radius:e} {want:?}");
                        let ball = scale.ball(number);
                        let (center, radius) = (ball.center, ball.radius);
                        assert!(distance(center.hi, center.lo) <= radius + slack, "{ball:?} {want:?}");
                        if kind == Data::Plain {
                            // 2^-80
                            assert!(radius <= (want.hi.abs() + 1.0) * f64::from_bits((1023 - 80) << 52));
                        }
                        checked += 1;
                    }
                }
            }
        }
        assert!(checked > 5000, "{checked}");
    }

    #[test]
    fn sums_that_float64_holds_are_exact() {
        let numbers: Vec<f32> = (0..1000).map(|i| (i % 37) as f32 * 0.25 - 3.0).collect();
        let total: f64 = numbers.iter().map(|&x| f64::from(x)).sum();
        let ball = sum([&numbers[..]].into_iter());
        assert_eq!((ball.center, ball.radius), (Dd::new(total), 0.0));
        // 2^-100 is lost to the first word and kept in the second.
        let ball = sum([&[1.0, 7.888_609e-31][..]].into_iter());
        assert!(ball.radius < 1e-30 && ball.center.hi == 1.0);
        assert!(!sum([&[1.0, f32::NAN][..]].into_iter()).is_known());
        assert!(!sum([&[f32::INFINITY][..]].into_iter()).is_known());
        assert_eq!(HostTensor::f32(&[1], &[7.888_609e-31]).get_f64(0), f64::from(-100).exp2());
    }
}
