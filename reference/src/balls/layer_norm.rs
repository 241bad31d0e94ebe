//! layer_norm: (x - mean) / sqrt(var + eps) * weight + bias over the last dimensions, var biased.
//!
//! Method: two passes. Radii: with d = x - mean and s = sqrt(var + eps), the radius of d is r_i + mean(r); that of var is
//! 2 mean(|d| rd); so that of d / s is at most (rd_i + |d_i| / s^2 mean(|d| rd) ) / s to first order: ball arithmetic step by
//! step gives that bound, within a factor 3 of the true derivative, as every quantity has one occurrence in each step.
//! Special values: an unknown element leaves its row unknown; so does var + eps whose ball holds zero.

use ulpian_spec::ops::layer_norm::LayerNorm;

use super::ball::Ball;
use super::tensor::{Balls, lanes};

/// Mean, variance (biased) and count of some elements.
#[derive(Clone, Copy)]
pub(super) struct Moments {
    pub(super) mean: Ball,
    pub(super) variance: Ball,
}

/// Of the elements that `indices` lists, twice the same.
#[inline(always)]
pub(super) fn moments<I: Iterator<Item = usize>>(
    x: &Balls,
    count: usize,
    indices: impl Fn() -> I,
) -> Moments {
    let n = Ball::exact(count as f64);
    let mean = indices().fold(Ball::ZERO, |sum, i| sum.add(x.get(i))).div(n);
    let squares = indices().fold(Ball::ZERO, |sum, i| sum.add(x.get(i).sub(mean).square()));
    Moments { mean, variance: squares.div(n) }
}

pub(super) fn evaluate(args: &LayerNorm<&Balls>) -> Balls {
    let x = args.input;
    let size: usize = args.normalized_shape.iter().map(|&s| s as usize).product();
    if x.len() == 0 {
        return x.clone();
    }
    let eps = Ball::exact(args.eps);
    let rows = lanes(
        x.len() / size,
        #[inline(always)]
        |row| {
            let m = moments(x, size, || row * size..(row + 1) * size);
            (m.mean, m.variance.add(eps).rsqrt())
        },
    );
    Balls::generate(
        x.shape(),
        #[inline(always)]
        |i| {
            let (mean, rstd) = rows[i / size];
            let mut y = x.get(i).sub(mean).mul(rstd);
            if let Some(weight) = args.weight {
                y = y.mul(weight.get(i % size));
            }
            match args.bias {
                Some(bias) => y.add(bias.get(i % size)),
                None => y,
            }
        },
    )
}
