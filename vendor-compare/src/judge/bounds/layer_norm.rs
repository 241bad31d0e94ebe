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

use std::iter::once;
use std::sync::Arc;

use rayon::prelude::*;
use ulpian_spec::ops::layer_norm::LayerNorm;
use ulpian_spec::{Enclosure, OpKind};

use super::parts::{From, by_run, each};
use super::{Arithmetic, Levels, Operand, Row};

pub(super) const ROW: Row = Row {
    kind: OpKind::LayerNorm,
    bound: "|g| r (gamma_{n+1} mean|x| + u (|x_i| + |m|)) + |y_i - b| ((n + 3) kappa / 2 + 6) u + u |y_i|",
    reason: "two passes or Welford; the squares of x - m are not excused for overflowing, since scaling avoids it",
    blas: false,
};

/// What the values of one normalised group say.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group {
    /// Number of values.
    pub n: f64,
    pub mean: f64,
    pub mean_magnitude: f64,
    /// Biased variance.
    pub variance: f64,
    /// Mean error of the values.
    pub mean_error: f64,
}

impl Group {
    /// Of the values and their errors in parts. Two passes in float64, scaled so that no square overflows. The figures enter
    /// bounds only: a relative error of n kappa 2^-53 in them is beneath the bounds' own terms, which hold the same factor times u.
    pub(super) fn of<'p>(
        values: impl Iterator<Item = &'p [f64]> + Clone,
        errors: Option<impl Iterator<Item = &'p [f64]>>,
    ) -> Group {
        let n = values.clone().map(<[f64]>::len).sum::<usize>() as f64;
        let greatest = values.clone().flatten().map(|x| x.abs()).fold(0.0, f64::max);
        let unit = if greatest > 0.0 && greatest.is_finite() { greatest } else { 1.0 };
        let (mut sum, mut magnitudes) = (0.0, 0.0);
        for x in values.clone().flatten() {
            let x = x / unit;
            sum += x;
            magnitudes += x.abs();
        }
        let mean = sum / n.max(1.0);
        let mut squares = 0.0;
        for x in values.flatten() {
            let deviation = x / unit - mean;
            squares += deviation * deviation;
        }
        Group {
            n,
            mean: mean * unit,
            mean_magnitude: magnitudes / n.max(1.0) * unit,
            variance: squares / n.max(1.0) * unit * unit,
            mean_error: errors.map_or(0.0, |e| e.flatten().sum::<f64>()) / n.max(1.0),
        }
    }

    /// kappa = sqrt(1 + m^2 / (v + eps)).
    pub(super) fn kappa(&self, eps: f64) -> f64 {
        let deviation = (self.variance + eps).sqrt();
        if deviation > 0.0 { 1.0f64.hypot(self.mean / deviation) } else { f64::INFINITY }
    }

    /// What all elements of the group share.
    pub(super) fn normalised(&self, a: &Arithmetic, eps: f64) -> Normalised {
        Normalised {
            a: *a,
            r: 1.0 / (self.variance + eps).sqrt(),
            mean: self.mean.abs(),
            mean_magnitude: self.mean_magnitude,
            mean_loss: a.gamma(self.n + 1.0) * self.mean_magnitude,
            mean_error: self.mean_error,
            root_n: self.n.sqrt(),
            spread_loss: (self.n + 3.0) * self.kappa(eps) / 2.0 + 6.0,
        }
    }
}

/// The part of the bound that all elements of a group share.
pub(super) struct Normalised {
    a: Arithmetic,
    r: f64,
    mean: f64,
    mean_magnitude: f64,
    /// gamma_{n+1} mean |x|.
    mean_loss: f64,
    mean_error: f64,
    root_n: f64,
    /// (n + 3) kappa / 2 + 6.
    spread_loss: f64,
}

impl Normalised {
    /// worst, usual and scale of elements: values, weights and biases, each with their errors, and results.
    pub(super) fn elements(&self, from: [From<'_>; 7], to: [&mut [f64]; 3]) {
        each(
            from,
            to,
            #[inline(always)]
            |[x, dx, g, dg, b, db, y]| self.element((x, dx), (g, dg), (b, db), y),
        );
    }

    /// worst, usual and scale of an element with value `x` (error `dx`), weight `g` and bias `b`, whose result is `y`.
    #[inline(always)]
    fn element(&self, x: (f64, f64), g: (f64, f64), b: (f64, f64), y: f64) -> [f64; 3] {
        let (a, r) = (&self.a, self.r);
        if !r.is_finite() || !y.is_finite() {
            let worst = if y.is_finite() { f64::INFINITY } else { 0.0 };
            return [worst, worst, f64::INFINITY];
        }
        let centred = (y - b.0).abs();
        let g_size = g.0.abs();
        let unit = centred / g_size.max(f64::MIN_POSITIVE);
        let spread = g_size * r * (x.0.abs() + self.mean_magnitude);
        // d y_i = g r (dx_i - mean dx) - (y_i - b) mean(z dx) r, z the normalised values.
        let carried = g_size * r * (x.1 + self.mean_error * (1.0 + self.root_n * unit)) + unit * g.1 + b.1;
        let mean_part = g_size * r * (self.mean_loss + a.u * (x.0.abs() + self.mean));
        let rest = a.u * y.abs() + carried + 2.0 * a.eta;
        let worst = mean_part + centred * self.spread_loss * a.u + rest;
        let usual = (8.0 * a.u * (g_size + centred) + 2.0 * a.u * b.0.abs() + rest).min(worst);
        [a.stored(y, worst), a.stored(y, usual), spread + b.0.abs()]
    }
}

pub(super) fn levels(args: &LayerNorm<&Operand<'_>>, truth: &[Arc<Enclosure>]) -> Vec<Levels> {
    let y = &truth[0];
    let a = Arithmetic::of(y.value.dtype());
    let size = args.normalized_shape.iter().map(|&s| s.max(0) as usize).product::<usize>();
    let (input, error) = (&args.input.values[..], args.input.error.as_deref());
    let rows: Vec<Normalised> = (0..y.len().checked_div(size).unwrap_or(0))
        .into_par_iter()
        .map(|row| {
            let own = row * size..(row + 1) * size;
            let errors = error.map(|e| once(&e[own.clone()]));
            Group::of(once(&input[own]), errors).normalised(&a, args.eps)
        })
        .collect();
    let (weight, bias) = (Affine::of(args.weight, 1.0), Affine::of(args.bias, 0.0));
    let own = [From::Each(input), From::or_zero(error), From::Each(&y.center)];
    let [worst, usual, scale] = by_run(y.len(), size, |row, at, part| {
        let count = part[0].len();
        let [x, dx, y] = own.map(|from| from.part(at, count));
        let [g, dg] = weight.all().map(|from| from.part(at - row * size, count));
        let [b, db] = bias.all().map(|from| from.part(at - row * size, count));
        rows[row].elements([x, dx, g, dg, b, db, y], part);
    });
    vec![Levels { worst, usual: Some(usual), scale, terms: (size as f64).max(1.0) }]
}

/// A parameter that may be left out.
pub(super) struct Affine<'a> {
    operand: Option<(&'a [f64], Option<&'a [f64]>)>,
    default: f64,
}

impl<'a> Affine<'a> {
    /// `operand`, in its absence exactly `default` everywhere.
    pub(super) fn of(operand: Option<&'a Operand<'_>>, default: f64) -> Affine<'a> {
        Affine { operand: operand.map(|t| (&t.values[..], t.error.as_deref())), default }
    }

    /// Values and the bounds on their errors.
    pub(super) fn all(&self) -> [From<'a>; 2] {
        match self.operand {
            Some((values, errors)) => [From::Each(values), From::or_zero(errors)],
            None => [From::All(self.default), From::All(0.0)],
        }
    }

    /// The value of element `i` and the bound on its error.
    #[inline]
    pub(super) fn at(&self, i: usize) -> (f64, f64) {
        match self.operand {
            Some((values, errors)) => (values[i], errors.map_or(0.0, |e| e[i])),
            None => (self.default, 0.0),
        }
    }
}
