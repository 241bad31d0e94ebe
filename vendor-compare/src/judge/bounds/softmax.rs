//! softmax along one dimension.

use std::sync::Arc;

use rayon::prelude::*;
use ulpian_spec::ops::softmax::Softmax;
use ulpian_spec::{Enclosure, OpKind};

use super::operand::Axis;
use super::parts::{by_run, put};
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
    let (input, error) = (&args.input.values[..], args.input.error.as_deref());
    let converts = args.input.dtype.float_format() != a.out;
    // What operand `k` may be off.
    let off = |k: usize| error.map_or(0.0, |e| e[k]) + if converts { a.conversion(input[k]) } else { 0.0 };
    let lanes: Vec<(f64, f64, f64)> = (0..axis.outer * axis.inner)
        .into_par_iter()
        .map(|lane| {
            let start = lane / axis.inner * axis.size * axis.inner + lane % axis.inner;
            let positions = || (0..axis.size).map(|j| start + j * axis.inner);
            let m = positions().map(|k| input[k]).fold(f64::NEG_INFINITY, f64::max);
            let (mut shift, mut carried) = (0.0, 0.0);
            for k in positions() {
                let p = y.center[k];
                if p.is_finite() && p > 0.0 {
                    shift += p * (input[k] - m).abs();
                    carried += p * off(k);
                }
            }
            (m, shift, carried)
        })
        .collect();
    let n = axis.size as f64;
    let e = 4.0 * a.u;
    let (stored, stored_underflow) = if a.narrow { (2.0 * a.u_out, 2.0 * a.eta_out) } else { (0.0, 0.0) };
    let underflow = stored_underflow + 2.0 * a.eta;
    let (gamma, sqrt) = (a.gamma(n - 1.0), 4.0 * a.u * n.sqrt());
    let [worst, usual, scale] = by_run(y.len(), axis.size * axis.inner, |outer, at, mut part| {
        for k in 0..part[0].len() {
            let i = at + k;
            let lane = if axis.inner == 1 { outer } else { outer * axis.inner + i % axis.inner };
            let (m, shift, carried) = lanes[lane];
            let p = y.center[i].abs();
            if !p.is_finite() || p == 0.0 {
                let least = a.stored(y.center[i], 2.0 * a.eta);
                put(&mut part, k, [least, least, 0.0]);
                continue;
            }
            let distance = (input[i] - m).abs();
            let own = a.u * (distance + shift) + 2.0 * e + 2.0 * a.u + stored;
            let carried = carried + off(i);
            let worst = p * (own + gamma + carried) + underflow;
            let usual = p * (own + sqrt + carried) + underflow;
            let figures = [a.stored(y.center[i], worst), a.stored(y.center[i], usual.min(worst))];
            put(&mut part, k, [figures[0], figures[1], p * (1.0 + distance + shift)]);
        }
    });
    vec![Levels { worst, usual: Some(usual), scale, terms: n }]
}
