//! layer_norm, and what it shares with batch_norm in training: normalisation by the data's own mean and variance.
//!
//! y = g (x - m) r + b, m = mean x, r = 1 / sqrt(v + eps), v the biased variance of n values. With kappa = sqrt(1 + m^2 / (v +
//! eps)) a correct computation loses
//! - in the mean, gamma_{n+1} mean |x|, and in the difference u (|x_i| + |m|): times |g| r;
//! - in the variance by two passes or Welford's update a relative (n + 3) kappa u (Chan, Golub and LeVeque 1983, Table 1),
//!   hence half of it in r; with the square root, the reciprocal, eps and two products 6 u more: times |y_i - b|;
//! - in the last addition u |y_i|.
//!
//! `usual` leaves the conditioning out: 8 u |g| (1 + |x_i - m| r). An error between the two asks for an explanation.

use std::sync::Arc;

use rayon::prelude::*;
use ulpian_spec::ops::layer_norm::LayerNorm;
use ulpian_spec::{Enclosure, OpKind};

use super::{Arithmetic, Levels, Operand, Row};

pub(super) const ROW: Row = Row {
    kind: OpKind::LayerNorm,
    bound: "|g| r (gamma_{n+1} mean|x| + u (|x_i| + |m|)) + |y_i - b| ((n + 3) kappa / 2 + 6) u + u |y_i|",
    reason: "two passes or Welford; the squares of x - m are not excused for overflowing, since scaling avoids it",
    blas: false,
};

/// Elements a task of [`collect`] handles.
const CHUNK: usize = 1 << 13;

/// What the values of one normalised group say.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group {
    /// Number of values.
    pub n: f64,
    pub mean: f64,
    pub mean_magnitude: f64,
    /// Biased variance.
    pub variance: f64,
    /// Mean and greatest error of the values.
    pub mean_error: f64,
}

impl Group {
    /// Two passes in float64, scaled so that no square overflows. The figures enter bounds only: a relative error of
    /// n kappa 2^-53 in them is beneath the bounds' own terms, which hold the same factor times u.
    pub(super) fn of(count: usize, at: impl Fn(usize) -> f64, error: impl Fn(usize) -> f64) -> Group {
        let n = count as f64;
        let greatest = (0..count).map(|i| at(i).abs()).fold(0.0, f64::max);
        let unit = if greatest > 0.0 && greatest.is_finite() { greatest } else { 1.0 };
        let sum = |f: &dyn Fn(f64) -> f64| (0..count).map(|i| f(at(i) / unit)).sum::<f64>() / n.max(1.0);
        let mean = sum(&|x| x);
        let variance = sum(&|x| (x - mean) * (x - mean));
        Group {
            n,
            mean: mean * unit,
            mean_magnitude: sum(&f64::abs) * unit,
            variance: variance * unit * unit,
            mean_error: (0..count).map(error).sum::<f64>() / n.max(1.0),
        }
    }

    /// kappa = sqrt(1 + m^2 / (v + eps)).
    pub(super) fn kappa(&self, eps: f64) -> f64 {
        let deviation = (self.variance + eps).sqrt();
        if deviation > 0.0 { 1.0f64.hypot(self.mean / deviation) } else { f64::INFINITY }
    }

    /// worst, usual and scale of an element with value `x` (error `dx`), weight `g` and bias `b`, whose result is `y`.
    pub(super) fn element(
        &self,
        a: &Arithmetic,
        eps: f64,
        x: (f64, f64),
        g: (f64, f64),
        b: (f64, f64),
        y: f64,
    ) -> (f64, f64, f64) {
        let r = 1.0 / (self.variance + eps).sqrt();
        if !r.is_finite() || !y.is_finite() {
            let worst = if y.is_finite() { f64::INFINITY } else { 0.0 };
            return (worst, worst, f64::INFINITY);
        }
        let centred = (y - b.0).abs();
        let g_size = g.0.abs();
        let unit = centred / g_size.max(f64::MIN_POSITIVE);
        let spread = g_size * r * (x.0.abs() + self.mean_magnitude);
        // d y_i = g r (dx_i - mean dx) - (y_i - b) mean(z dx) r, z the normalised values.
        let carried = g_size * r * (x.1 + self.mean_error * (1.0 + self.n.sqrt() * unit)) + unit * g.1 + b.1;
        let mean_part =
            g_size * r * (a.gamma(self.n + 1.0) * self.mean_magnitude + a.u * (x.0.abs() + self.mean.abs()));
        let rest = a.u * y.abs() + carried + 2.0 * a.eta;
        let worst = mean_part + centred * ((self.n + 3.0) * self.kappa(eps) / 2.0 + 6.0) * a.u + rest;
        let usual = (8.0 * a.u * (g_size + centred) + 2.0 * a.u * b.0.abs() + rest).min(worst);
        (a.stored(y, worst), a.stored(y, usual), spread + b.0.abs())
    }
}

pub(super) fn levels(args: &LayerNorm<&Operand<'_>>, truth: &[Arc<Enclosure>]) -> Vec<Levels> {
    let y = &truth[0];
    let a = Arithmetic::of(y.value.dtype());
    let size = args.normalized_shape.iter().map(|&s| s.max(0) as usize).product::<usize>();
    let x = args.input;
    let rows: Vec<Group> = (0..y.len().checked_div(size).unwrap_or(0))
        .into_par_iter()
        .map(|row| Group::of(size, |i| x.values[row * size + i], |i| x.error_at(row * size + i)))
        .collect();
    let pick = |t: Option<&Operand<'_>>, i: usize, default: f64| {
        t.map_or((default, 0.0), |t| (t.values[i], t.error_at(i)))
    };
    vec![collect(y.len(), size as f64, |i| {
        let (g, b) = (pick(args.weight, i % size, 1.0), pick(args.bias, i % size, 0.0));
        rows[i / size].element(&a, args.eps, (x.values[i], x.error_at(i)), g, b, y.center[i])
    })]
}

/// Levels from (worst, usual, scale) by element.
pub(super) fn collect(len: usize, terms: f64, figures: impl Fn(usize) -> (f64, f64, f64) + Sync) -> Levels {
    let mut all =
        Levels { worst: vec![0.0; len], usual: vec![0.0; len], scale: vec![0.0; len], terms: terms.max(1.0) };
    all.worst
        .par_chunks_mut(CHUNK)
        .zip(all.usual.par_chunks_mut(CHUNK))
        .zip(all.scale.par_chunks_mut(CHUNK))
        .enumerate()
        .for_each(|(chunk, ((worst, usual), scale))| {
            for (k, ((worst, usual), scale)) in worst.iter_mut().zip(usual).zip(scale).enumerate() {
                (*worst, *usual, *scale) = figures(chunk * CHUNK + k);
            }
        });
    all
}
