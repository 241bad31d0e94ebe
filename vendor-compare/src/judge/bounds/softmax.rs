//! softmax along one dimension.

use std::sync::Arc;

use rayon::prelude::*;
use ulpian_spec::ops::softmax::Softmax;
use ulpian_spec::{Enclosure, OpKind};

use super::operand::Axis;
use super::{Arithmetic, Levels, Operand, Row};

pub(super) const ROW: Row = Row {
    kind: OpKind::Softmax,
    bound: "|y_i| (u |x_i - m| + e + sum_j y_j (u |x_j - m| + e) + gamma_{n-1} + 2 u) + 2 eta, m = max x, e = 4 u; of 16-bit \
            results u_out (|y_i| + sum_j y_j |y_i|) + 2 eta_out more",
    reason: "the shifted form: the difference is rounded, exp is good to 2 ulp and passes the difference's absolute error on \
             as a relative one, the sum has n - 1 additions, and a quotient (or a reciprocal and a product) follows; no documentation \
             forbids storing the exponentials in the result before they are divided, as two passes over a 16-bit result do",
    blas: false,
};

pub(super) fn levels(args: &Softmax<&Operand<'_>>, truth: &[Arc<Enclosure>]) -> Vec<Levels> {
    let y = &truth[0];
    let a = Arithmetic::of(y.value.dtype());
    let axis = Axis::of(args.input.shape, args.dim);
    let lanes: Vec<(f64, f64, f64)> = (0..axis.outer * axis.inner)
        .into_par_iter()
        .map(|lane| {
            let at = |j: usize| (lane / axis.inner * axis.size + j) * axis.inner + lane % axis.inner;
            let m = (0..axis.size).map(|j| args.input.values[at(j)]).fold(f64::NEG_INFINITY, f64::max);
            let (mut shift, mut carried) = (0.0, 0.0);
            for j in 0..axis.size {
                let (k, p) = (at(j), y.center[at(j)]);
                if p.is_finite() && p > 0.0 {
                    shift += p * (args.input.values[k] - m).abs();
                    carried += p * (args.input.error_at(k) + args.input.conversion_at(&a, k));
                }
            }
            (m, shift, carried)
        })
        .collect();
    let n = axis.size as f64;
    let e = 4.0 * a.u;
    let figures: Vec<(f64, f64, f64)> = (0..y.len())
        .into_par_iter()
        .map(|i| {
            let (m, shift, carried) =
                lanes[i / (axis.size.max(1) * axis.inner) * axis.inner + i % axis.inner];
            let p = y.center[i].abs();
            if !p.is_finite() || p == 0.0 {
                return (a.stored(y.center[i], 2.0 * a.eta), a.stored(y.center[i], 2.0 * a.eta), 0.0);
            }
            let x = args.input.values[i];
            let (stored, underflow) = if a.narrow { (2.0 * a.u_out, 2.0 * a.eta_out) } else { (0.0, 0.0) };
            let own = a.u * ((x - m).abs() + shift) + 2.0 * e + 2.0 * a.u + stored;
            let underflow = underflow + 2.0 * a.eta;
            let carried = carried + args.input.error_at(i) + args.input.conversion_at(&a, i);
            let worst = p * (own + a.gamma(n - 1.0) + carried) + underflow;
            let usual = p * (own + 4.0 * a.u * n.sqrt() + carried) + underflow;
            (
                a.stored(y.center[i], worst),
                a.stored(y.center[i], usual.min(worst)),
                p * (1.0 + (x - m).abs() + shift),
            )
        })
        .collect();
    vec![Levels {
        worst: figures.iter().map(|f| f.0).collect(),
        usual: figures.iter().map(|f| f.1).collect(),
        scale: figures.iter().map(|f| f.2).collect(),
        terms: n,
    }]
}
