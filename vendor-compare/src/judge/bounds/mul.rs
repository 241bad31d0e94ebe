//! mul: a product.

use std::sync::Arc;

use rayon::prelude::*;
use ulpian_spec::ops::TensorOrScalar;
use ulpian_spec::ops::mul::Mul;
use ulpian_spec::{Enclosure, OpKind};

use super::operand::Broadcast;
use super::{Arithmetic, Levels, Operand, Row};

pub(super) const ROW: Row = Row {
    kind: OpKind::Mul,
    bound: "u |y| + eta + the conversion of operands to the result's dtype",
    reason: "one product, rounded once; a product that underflows is off by half the least subnormal number",
    blas: false,
};

pub(super) fn levels(args: &Mul<&Operand<'_>>, truth: &[Arc<Enclosure>]) -> Vec<Levels> {
    let y = &truth[0];
    let a = Arithmetic::of(y.value.dtype());
    let left = Broadcast::new(args.input.shape, y.value.shape());
    let right = match args.other {
        TensorOrScalar::Tensor(t) => Some((t, Broadcast::new(t.shape, y.value.shape()))),
        TensorOrScalar::Scalar(_) => None,
    };
    let worst = (0..y.len())
        .into_par_iter()
        .map(|i| {
            if a.out.is_none() {
                return 0.0;
            }
            let l = left.at(i);
            let x = args.input.values[l];
            let (b, b_error, b_converted) = match (&right, args.other) {
                (Some((t, at)), _) => {
                    let r = at.at(i);
                    (t.values[r], t.error_at(r), t.conversion_at(&a, r))
                }
                (None, TensorOrScalar::Scalar(s)) => (s.as_f64(), 0.0, a.conversion(s.as_f64())),
                (None, TensorOrScalar::Tensor(_)) => (0.0, 0.0, 0.0),
            };
            let (dx, db) = (args.input.conversion_at(&a, l) + args.input.error_at(l), b_converted + b_error);
            let before = x.abs() * db + b.abs() * dx + dx * db;
            a.stored(y.center[i], before + a.u * (y.center[i].abs() + before) + a.eta)
        })
        .collect();
    vec![Levels::plain(worst, y.center.iter().map(|c| c.abs()).collect())]
}
