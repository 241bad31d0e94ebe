//! What an intermediate of a usual formula does to the element in question: overflow, or a subnormal flushed.

use std::sync::Arc;

use ulpian_reference::round;
use ulpian_spec::{HostTensor, Op};

use super::bounds::Arithmetic;
use super::local::AtNode;

/// Which intermediate overflows where the exact result does not, if one does, for element `index` of the first result.
pub(super) fn intermediate(at: &AtNode, index: usize) -> Option<&'static str> {
    let (op, local) = (at.op.as_ref()?, at.local.as_ref()?);
    let y = &local.truth[0];
    let max = Arithmetic::of(y.value.dtype()).max;
    match op {
        Op::LayerNorm(args) => {
            let size: usize = args.normalized_shape.iter().map(|&s| s.max(0) as usize).product();
            let row = index.checked_div(size)? * size;
            moments(&args.input, row..row + size, max)
        }
        Op::BatchNorm(args) if args.training => {
            let shape = args.input.shape();
            let inner: usize = shape.iter().skip(2).product();
            let c = index / inner.max(1) % shape[1];
            let each = (0..args.input.len()).filter(|i| i / inner.max(1) % shape[1] == c);
            moments(&args.input, each, max)
        }
        Op::AdaptiveAvgPool2d(args) => {
            let size = |s: &[usize]| (s[s.len() - 2], s[s.len() - 1]);
            let ((h, w), (oh, ow)) = (size(args.input.shape()), size(y.value.shape()));
            let along = |i: usize, n: usize, o: usize| i * n / o..((i + 1) * n).div_ceil(o);
            let (plane, r, c) = (index / (oh * ow), index / ow % oh, index % ow);
            let sum: f64 = along(r, h, oh)
                .flat_map(|r| along(c, w, ow).map(move |c| (plane * h + r) * w + c))
                .map(|i| args.input.get_f64(i).abs())
                .sum();
            (sum > max).then_some("the sum overflows before it is divided")
        }
        _ => None,
    }
}

fn moments(x: &Arc<HostTensor>, each: impl Iterator<Item = usize>, max: f64) -> Option<&'static str> {
    let values: Vec<f64> = each.map(|i| x.get_f64(i)).collect();
    let n = values.len() as f64;
    let mean = values.iter().map(|v| v / n).sum::<f64>();
    if values.iter().map(|v| v.abs()).sum::<f64>() > max {
        Some("the sum overflows before it is divided")
    } else if values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() > max {
        Some("the squares of x - mean overflow")
    } else if values.iter().map(|v| v * v).sum::<f64>() > max {
        Some("the squares of x overflow")
    } else {
        None
    }
}

/// Is every element beyond the bound a subnormal number that was returned as zero?
pub(super) fn subnormals_flushed(at: &AtNode, output: usize) -> bool {
    let (Some(Some(got)), Some(local)) = (at.results.get(output), &at.local) else {
        return false;
    };
    let (truth, levels) = (&local.truth[output], &local.levels[output]);
    let Some(format) = truth.value.dtype().float_format() else { return false };
    if got.tensor_type() != truth.tensor_type() {
        return false;
    }
    let normal = round::exp2i(i64::from(format.min_exponent));
    let mut any = false;
    for i in 0..truth.len() {
        let (g, c) = (got.get_f64(i), truth.center[i]);
        if !c.is_finite() || !g.is_finite() {
            if g.is_nan() != c.is_nan() || g.is_infinite() != c.is_infinite() {
                return false;
            }
            continue;
        }
        if (g - c).abs() - truth.radius[i] > levels.worst[i] {
            if g != 0.0 || c.abs() >= normal {
                return false;
            }
            any = true;
        }
    }
    any
}
