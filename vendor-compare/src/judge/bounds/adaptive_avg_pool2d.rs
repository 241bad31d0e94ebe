//! adaptive_avg_pool2d: means over windows.

use std::sync::Arc;

use ulpian_spec::ops::adaptive_avg_pool2d::AdaptiveAvgPool2d;
use ulpian_spec::{Enclosure, OpKind};

use super::parts::{by_run, put};
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
    let (input, error) = (&args.input.values[..], args.input.error.as_deref());
    let [worst, usual, scale] = by_run(y.len(), ow, |number, at, mut part| {
        let (plane, row) = (number / oh, number % oh);
        let (top, bottom) = window(row, h, oh);
        for k in 0..part[0].len() {
            let (left, right) = window(at + k - number * ow, w, ow);
            let (mut sum, mut carried) = (0.0, 0.0);
            for r in top..bottom {
                let from = (plane * h + r) * w;
                for x in &input[from + left..from + right] {
                    sum += x.abs();
                }
                for e in error.map_or(&[][..], |e| &e[from + left..from + right]) {
                    carried += e;
                }
            }
            let n = ((bottom - top) * (right - left)) as f64;
            let (mean, carried) = (sum / n, carried / n + n * a.eta);
            let worst = a.gamma(n + 1.0) * mean + carried;
            let usual = (4.0 * a.u * (n + 1.0).sqrt() * mean + carried).min(worst);
            let y = y.center[at + k];
            put(&mut part, k, [a.stored(y, worst), a.stored(y, usual), mean]);
        }
    });
    let longest =
        |n: usize, o: usize| (0..o).map(|i| window(i, n, o)).map(|(from, to)| to - from).max().unwrap_or(0);
    let terms = (longest(h, oh) * longest(w, ow)).max(1) as f64;
    vec![Levels { worst, usual: Some(usual), scale, terms }]
}
