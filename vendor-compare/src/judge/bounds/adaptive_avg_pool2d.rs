//! adaptive_avg_pool2d: means over windows.

use std::sync::Arc;

use rayon::prelude::*;
use ulpian_spec::ops::adaptive_avg_pool2d::AdaptiveAvgPool2d;
use ulpian_spec::{Enclosure, OpKind};

use super::{Arithmetic, Levels, Operand, Row};

pub(super) const ROW: Row = Row {
    kind: OpKind::AdaptiveAvgPool2d,
    bound: "gamma_{n+1} mean |x| over the window of n elements",
    reason: "n - 1 additions in any order, a division and a rounding; dividing first bounds every intermediate by the largest \
             input, so that an overflow of the sum is not excused",
    blas: false,
};

pub(super) fn levels(args: &AdaptiveAvgPool2d<&Operand<'_>>, truth: &[Arc<Enclosure>]) -> Vec<Levels> {
    let y = &truth[0];
    let a = Arithmetic::of(y.value.dtype());
    let size = |shape: &[usize]| (shape[shape.len() - 2], shape[shape.len() - 1]);
    let ((h, w), (oh, ow)) = (size(args.input.shape), size(y.value.shape()));
    let window = |i: usize, n: usize, o: usize| (i * n / o, ((i + 1) * n).div_ceil(o));
    let figures: Vec<(f64, f64, f64, f64)> = (0..y.len())
        .into_par_iter()
        .map(|i| {
            let (plane, row, column) = (i / (oh * ow), i / ow % oh, i % ow);
            let ((top, bottom), (left, right)) = (window(row, h, oh), window(column, w, ow));
            let (mut sum, mut carried) = (0.0, 0.0);
            for r in top..bottom {
                for c in left..right {
                    let at = (plane * h + r) * w + c;
                    sum += args.input.values[at].abs();
                    carried += args.input.error_at(at);
                }
            }
            let n = ((bottom - top) * (right - left)) as f64;
            let (mean, carried) = (sum / n, carried / n + n * a.eta);
            let worst = a.gamma(n + 1.0) * mean + carried;
            let usual = (4.0 * a.u * (n + 1.0).sqrt() * mean + carried).min(worst);
            (a.stored(y.center[i], worst), a.stored(y.center[i], usual), mean, n)
        })
        .collect();
    vec![Levels {
        worst: figures.iter().map(|f| f.0).collect(),
        usual: figures.iter().map(|f| f.1).collect(),
        scale: figures.iter().map(|f| f.2).collect(),
        terms: figures.iter().map(|f| f.3).fold(1.0, f64::max),
    }]
}
