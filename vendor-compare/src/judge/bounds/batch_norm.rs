//! batch_norm: by the running statistics, or in training by the batch's own.
//!
//! By the running statistics y = g (x - mu) r + b, r = 1 / sqrt(var + eps): the difference, r (2.5 u: the sum under the root,
//! the root, the reciprocal), two products and the last addition. Subtracting first is open to every implementation, so a loss
//! in proportion to |x| + |mu| is not excused.

use std::sync::Arc;

use rayon::prelude::*;
use ulpian_spec::ops::batch_norm::BatchNorm;
use ulpian_spec::{Enclosure, OpKind};

use super::layer_norm::{Group, collect};
use super::operand::Axis;
use super::{Arithmetic, Levels, Operand, Row};

pub(super) const ROW: Row = Row {
    kind: OpKind::BatchNorm,
    bound: "6 u |y - b| + u |b| + u |y|; in training layer_norm's, per channel",
    reason: "by the running statistics a subtraction, a reciprocal root and two products; in training two passes or Welford",
    blas: false,
};

pub(super) fn levels(args: &BatchNorm<&Operand<'_>>, truth: &[Arc<Enclosure>]) -> Vec<Levels> {
    let y = &truth[0];
    let a = Arithmetic::of(y.value.dtype());
    let x = args.input;
    let axis = Axis::of(x.shape, 1);
    let (channels, inner) = (axis.size, axis.inner);
    let pick = |t: Option<&Operand<'_>>, c: usize, default: f64| {
        t.map_or((default, 0.0), |t| (t.values[c], t.error_at(c)))
    };

    if !args.training {
        let of_channel: Vec<_> = (0..channels)
            .map(|c| {
                let (mu, var) = (pick(args.running_mean, c, 0.0), pick(args.running_var, c, 1.0));
                let (g, b) = (pick(args.weight, c, 1.0), pick(args.bias, c, 0.0));
                let spread = var.0 + args.eps;
                (mu, var, g, b, spread, 1.0 / spread.sqrt())
            })
            .collect();
        return vec![collect(y.len(), 1.0, |i| {
            let (mu, var, g, b, spread, r) = of_channel[i / inner % channels];
            let (value, centred) = (y.center[i], (y.center[i] - b.0).abs());
            if !r.is_finite() || !value.is_finite() {
                let worst = if value.is_finite() { f64::INFINITY } else { 0.0 };
                return (worst, worst, f64::INFINITY);
            }
            let size = g.0.abs() * r;
            let carried = size * (x.error_at(i) + mu.1)
                + centred * 0.5 * var.1 / spread
                + b.1
                + g.1 * centred / g.0.abs().max(f64::MIN_POSITIVE);
            let worst = 6.0 * a.u * centred + a.u * (b.0.abs() + value.abs()) + carried + 4.0 * a.eta;
            let scale = size * (x.values[i].abs() + mu.0.abs()) + b.0.abs();
            let stored = a.stored(value, worst);
            (stored, stored, scale)
        })];
    }

    let count = axis.outer * inner;
    let groups: Vec<Group> = (0..channels)
        .into_par_iter()
        .map(|c| {
            let at = |i: usize| (i / inner * channels + c) * inner + i % inner;
            Group::of(count, |i| x.values[at(i)], |i| x.error_at(at(i)))
        })
        .collect();
    let mut all = vec![collect(y.len(), count as f64, |i| {
        let c = i / inner % channels;
        let (g, b) = (pick(args.weight, c, 1.0), pick(args.bias, c, 0.0));
        groups[c].element(&a, args.eps, (x.values[i], x.error_at(i)), g, b, y.center[i])
    })];
    for (k, running) in truth.iter().enumerate().skip(1) {
        let stored = Arithmetic::of(running.value.dtype());
        all.push(collect(running.len(), count as f64, |c| {
            let group = &groups[c];
            let old = pick(if k == 1 { args.running_mean } else { args.running_var }, c, 0.0);
            let m = args.momentum.abs();
            let (new, own) = if k == 1 {
                (group.mean_magnitude, stored.gamma(group.n + 1.0) * group.mean_magnitude + group.mean_error)
            } else {
                let unbiased = group.variance * group.n / (group.n - 1.0).max(1.0);
                let kappa = group.kappa(0.0).min(1.0 / stored.u);
                // A change of the values by dx moves the variance by up to 2 sd sqrt(n) mean dx.
                let carried = 2.0 * group.variance.sqrt() * group.n.sqrt() * group.mean_error;
                (unbiased, (group.n + 5.0) * kappa * stored.u * unbiased + carried)
            };
            let y = running.center[c];
            let kept = (1.0 - args.momentum).abs();
            let worst =
                m * own + 4.0 * stored.u * (m * new + kept * old.0.abs()) + kept * old.1 + 2.0 * stored.eta;
            (stored.stored(y, worst), stored.stored(y, worst), m * new + kept * old.0.abs())
        }));
    }
    all
}
