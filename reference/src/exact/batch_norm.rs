//! batch_norm: (x - mean) / sqrt(var + eps) * weight + bias per channel (dimension 1). In training mean and biased variance
//! are the batch's, and the running ones become (1 - momentum) running + momentum batch, the variance unbiased; eps and momentum
//! are the exact float64. A batch without a value leaves the running ones as they are, as PyTorch's kernels do.
//!
//! Special values: see [`norm`]. In training a channel with NaN or an infinity is NaN throughout. A batch of one value has
//! the unbiased variance 0 / 0, NaN.

use ulpian_spec::ops::batch_norm::BatchNorm;

use super::{Context, Source, Value, norm};

pub(super) fn element(args: &BatchNorm<Source<'_>>, at: usize, cx: &Context<'_>) -> Value {
    let shape = cx.shape(&args.input);
    let channels = shape[1];
    let inner: usize = shape[2..].iter().product();
    let channel = if cx.output == 0 { at / inner % channels } else { at };
    let prec = cx.prec;
    let running = |s: &Option<Source<'_>>| s.as_ref().map_or(Value::Nan, |s| cx.get(s, channel));
    let count = shape[0] * inner;
    match cx.output {
        1 if count == 0 => return running(&args.running_mean),
        2 if count == 0 => return running(&args.running_var),
        _ => {}
    }
    let shared = cx.shared(channel, || {
        if !args.training {
            let var = running(&args.running_var);
            return vec![running(&args.running_mean), norm::deviation(&var, args.eps, prec)];
        }
        let values = (0..count).map(|k| {
            let (n, i) = (k / inner, k % inner);
            cx.get(&args.input, (n * channels + channel) * inner + i)
        });
        let [mean, var, unbiased] = norm::statistics(values, count, prec);
        vec![mean, norm::deviation(&var, args.eps, prec), unbiased]
    });
    let updated = |old: &Option<Source<'_>>, new: &Value| {
        let momentum = Value::from_f64(args.momentum);
        let kept = Value::from_int(1).sub(&momentum, prec).mul(&running(old), prec);
        kept.add(&momentum.mul(new, prec), prec)
    };
    match cx.output {
        1 => updated(&args.running_mean, &shared[0]),
        2 => updated(&args.running_var, &shared[2]),
        _ => {
            let weight = args.weight.as_ref().map(|w| cx.get(w, channel));
            let bias = args.bias.as_ref().map(|b| cx.get(b, channel));
            let x = cx.get(&args.input, at);
            norm::normalized(&x, [&shared[0], &shared[1]], weight, bias, prec)
        }
    }
}
