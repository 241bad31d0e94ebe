//! batch_norm: by the running statistics, or in training by the batch's own.
//!
//! By the running statistics y = g (x - mu) r + b, r = 1 / sqrt(var + eps): the difference, r (2.5 u: the sum under the root,
//! the root, the reciprocal), two products and the last addition. Subtracting first is open to every implementation, so a loss
//! in proportion to |x| + |mu| is not excused.

use std::sync::Arc;

use rayon::prelude::*;
use ulpian_spec::ops::batch_norm::BatchNorm;
use ulpian_spec::{Enclosure, OpKind};

use super::layer_norm::{Affine, Group, Normalised};
use super::operand::Axis;
use super::parts::{From, by_element, by_run, each};
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
    let (input, error) = (&x.values[..], x.error.as_deref());
    let (weight, bias) = (Affine::of(args.weight, 1.0), Affine::of(args.bias, 0.0));
    let (running_mean, running_var) = (Affine::of(args.running_mean, 0.0), Affine::of(args.running_var, 1.0));

    if !args.training {
        let own = [From::Each(&y.center), From::Each(input), From::or_zero(error)];
        let [worst, scale] = by_run(y.len(), inner, |plane, at, part| {
            let c = plane % channels;
            let (mu, var, g, b) = (running_mean.at(c), running_var.at(c), weight.at(c), bias.at(c));
            let spread = var.0 + args.eps;
            let r = 1.0 / spread.sqrt();
            let size = g.0.abs() * r;
            let count = part[0].len();
            each(
                own.map(|from| from.part(at, count)),
                part,
                #[inline(always)]
                |[value, x, dx]| {
                    if !r.is_finite() || !value.is_finite() {
                        let worst = if value.is_finite() { f64::INFINITY } else { 0.0 };
                        return [worst, f64::INFINITY];
                    }
                    let centred = (value - b.0).abs();
                    let carried = size * (dx + mu.1)
                        + centred * 0.5 * var.1 / spread
                        + b.1
                        + g.1 * centred / g.0.abs().max(f64::MIN_POSITIVE);
                    let worst = 6.0 * a.u * centred + a.u * (b.0.abs() + value.abs()) + carried + 4.0 * a.eta;
                    let scale = size * (x.abs() + mu.0.abs()) + b.0.abs();
                    [a.stored(value, worst), scale]
                },
            );
        });
        return vec![Levels::plain(worst, scale)];
    }

    let groups: Vec<Group> = (0..channels)
        .into_par_iter()
        .map(|c| {
            let planes = (0..axis.outer).map(|o| (o * channels + c) * inner..(o * channels + c + 1) * inner);
            let errors = error.map(|e| planes.clone().map(move |p| &e[p]));
            Group::of(planes.map(|p| &input[p]), errors)
        })
        .collect();
    let normalised: Vec<Normalised> = groups.iter().map(|g| g.normalised(&a, args.eps)).collect();
    let own = [From::Each(input), From::or_zero(error), From::Each(&y.center)];
    let [worst, usual, scale] = by_run(y.len(), inner, |plane, at, part| {
        let c = plane % channels;
        let [g, dg, b, db] = [weight.at(c).0, weight.at(c).1, bias.at(c).0, bias.at(c).1].map(From::All);
        let count = part[0].len();
        let [x, dx, y] = own.map(|from| from.part(at, count));
        normalised[c].elements([x, dx, g, dg, b, db, y], part);
    });
    let terms = ((axis.outer * inner) as f64).max(1.0);
    let mut all = vec![Levels { worst, usual: Some(usual), scale, terms }];
    for (k, running) in truth.iter().enumerate().skip(1) {
        let stored = Arithmetic::of(running.value.dtype());
        let old = Affine::of(if k == 1 { args.running_mean } else { args.running_var }, 0.0);
        let [worst, scale] = by_element(running.len(), |c| {
            let group = &groups[c];
            let old = old.at(c);
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
            [stored.stored(y, worst), m * new + kept * old.0.abs()]
        });
        all.push(Levels { worst, usual: None, scale, terms });
    }
    all
}
