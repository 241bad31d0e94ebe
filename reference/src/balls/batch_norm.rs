//! batch_norm: (x - mean) / sqrt(var + eps) * weight + bias per channel (dimension 1).
//!
//! In evaluation with the running statistics; in training with the batch's (var biased), and the running ones become
//! (1 - momentum) running + momentum batch (var unbiased), or stay as they are where the batch holds no
//! value. Radii as in [`super::layer_norm`].
//! Special values: an unknown element leaves its channel unknown in training; so does var + eps whose ball holds zero, and the
//! unbiased variance of one element.

use ulpian_spec::ops::batch_norm::BatchNorm;

use super::ball::Ball;
use super::layer_norm::moments;
use super::tensor::{Balls, lanes};
use crate::dd::Dd;

pub(super) fn evaluate(args: &BatchNorm<&Balls>, results: usize) -> Vec<Balls> {
    let x = args.input;
    let channels = x.shape()[1];
    let inner: usize = x.shape()[2..].iter().product();
    let count = x.shape()[0] * inner;
    let batch = args.training.then(|| {
        lanes(
            channels,
            #[inline(always)]
            |c| {
                moments(x, count, || {
                    (0..count).map(move |k| (k / inner.max(1) * channels + c) * inner + k % inner.max(1))
                })
            },
        )
    });
    let eps = Ball::exact(args.eps);
    let per_channel = |tensor: Option<&Balls>, c: usize| tensor.map_or(Ball::UNKNOWN, |t| t.get(c));
    let statistics: Vec<(Ball, Ball)> = (0..channels)
        .map(|c| match &batch {
            Some(m) => (m[c].mean, m[c].variance.add(eps).rsqrt()),
            None => (per_channel(args.running_mean, c), per_channel(args.running_var, c).add(eps).rsqrt()),
        })
        .collect();
    let output = Balls::generate(
        x.shape(),
        #[inline(always)]
        |i| {
            let c = i / inner % channels;
            let (mean, rstd) = statistics[c];
            let mut y = x.get(i).sub(mean).mul(rstd);
            if let Some(weight) = args.weight {
                y = y.mul(weight.get(c));
            }
            match args.bias {
                Some(bias) => y.add(bias.get(c)),
                None => y,
            }
        },
    );
    let mut out = vec![output];
    if let Some(batch) = batch
        && results > 1
    {
        let momentum = Ball::exact(args.momentum);
        let rest = Ball::new(Dd::sum(1.0, -args.momentum), 0.0);
        let update = |old: Option<&Balls>, new: &dyn Fn(usize) -> Ball| {
            if let (0, Some(old)) = (count, old) {
                return old.clone();
            }
            let mut updated = Balls::zeros(&[channels]);
            for c in 0..channels {
                let value = rest.mul(per_channel(old, c)).add(momentum.mul(new(c)));
                let at = updated.parts_mut();
                (at.0[c], at.1[c], at.2[c]) = (value.center.hi, value.center.lo, value.radius);
            }
            updated
        };
        let unbias = Ball::exact(count as f64).div(Ball::exact(count as f64 - 1.0));
        out.push(update(args.running_mean, &|c| batch[c].mean));
        out.push(update(args.running_var, &|c| batch[c].variance.mul(unbias)));
    }
    out
}
