//! layer_norm: (x - mean) / sqrt(var + eps) * weight + bias over the last dimensions, var biased, eps the exact float64.
//!
//! Special values: see [`norm`]; a row with NaN or an infinity is NaN throughout. Finite inputs never overflow on the way.

use ulpian_spec::ops::layer_norm::LayerNorm;

use super::{Context, Source, Value, norm};

pub(super) fn element(args: &LayerNorm<Source<'_>>, at: usize, cx: &Context<'_>) -> Value {
    let length = args.normalized_shape.iter().product::<i64>() as usize;
    let (row, column) = (at / length, at % length);
    let shared = cx.shared(row, || {
        let values = (0..length).map(|k| cx.get(&args.input, row * length + k));
        let [mean, var, _] = norm::statistics(values, length, cx.prec);
        let deviation = norm::deviation(&var, args.eps, cx.prec);
        vec![mean, deviation]
    });
    let weight = args.weight.as_ref().map(|w| cx.get(w, column));
    let bias = args.bias.as_ref().map(|b| cx.get(b, column));
    norm::normalized(&cx.get(&args.input, at), [&shared[0], &shared[1]], weight, bias, cx.prec)
}
