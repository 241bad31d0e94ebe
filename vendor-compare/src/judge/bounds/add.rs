//! add: input + alpha * other.

use std::sync::Arc;

use rayon::prelude::*;
use ulpian_spec::ops::TensorOrScalar;
use ulpian_spec::ops::add::Add;
use ulpian_spec::{Enclosure, OpKind};

use super::operand::Broadcast;
use super::{Arithmetic, Levels, Operand, Row};

pub(super) const ROW: Row = Row {
    kind: OpKind::Add,
    bound: "u |y| + u |alpha b| (alpha other than 1 or -1) + the conversion of operands to the result's dtype",
    reason: "one product and one sum, each rounded once in the arithmetic; an FMA saves the first rounding",
    blas: false,
};

pub(super) fn levels(args: &Add<&Operand<'_>>, truth: &[Arc<Enclosure>]) -> Vec<Levels> {
    let y = &truth[0];
    let a = Arithmetic::of(y.value.dtype());
    let left = Broadcast::new(args.input.shape, y.value.shape());
    let right = match args.other {
        TensorOrScalar::Tensor(t) => Some((t, Broadcast::new(t.shape, y.value.shape()))),
        TensorOrScalar::Scalar(_) => None,
    };
    let alpha = args.alpha.as_f64();
    let alpha_error = a.conversion(alpha);
    let (worst, scale) = (0..y.len())
        .into_par_iter()
        .map(|i| {
            let l = left.at(i);
            let (x, x_error) = (args.input.values[l], args.input.error_at(l));
            let (b, b_error, b_converted) = match (&right, args.other) {
                (Some((t, at)), _) => {
                    let r = at.at(i);
                    (t.values[r], t.error_at(r), t.conversion_at(&a, r))
                }
                (None, TensorOrScalar::Scalar(s)) => (s.as_f64(), 0.0, a.conversion(s.as_f64())),
                (None, TensorOrScalar::Tensor(_)) => (0.0, 0.0, 0.0),
            };
            let scale = x.abs() + (alpha * b).abs();
            if a.out.is_none() {
                return (0.0, scale);
            }
            let product = if alpha.abs() == 1.0 { 0.0 } else { a.u * (alpha * b).abs() + a.eta };
            let converted =
                args.input.conversion_at(&a, l) + b_converted * alpha.abs() + alpha_error * b.abs();
            let carried = x_error + alpha.abs() * b_error;
            let before = (product + converted) * (1.0 + 4.0 * a.u_out) + carried;
            (a.stored(y.center[i], before + a.u * (y.center[i].abs() + before)), scale)
        })
        .unzip();
    vec![Levels::plain(worst, scale)]
}
