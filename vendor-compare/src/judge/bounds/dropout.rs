//! dropout, given its mask.

use std::sync::Arc;

use ulpian_spec::ops::dropout::Dropout;
use ulpian_spec::{Enclosure, OpKind};

use super::parts::by_element;
use super::{Arithmetic, Levels, Operand, Row};

pub(super) const ROW: Row = Row {
    kind: OpKind::Dropout,
    bound: "in training 2 u_out |y|; otherwise 0",
    reason: "x mask / (1 - p): the factor 1 / (1 - p) is rounded to the result's dtype, and so is the product",
    blas: false,
};

pub(super) fn levels(args: &Dropout<&Operand<'_>>, truth: &[Arc<Enclosure>]) -> Vec<Levels> {
    let y = &truth[0];
    let a = Arithmetic::of(y.value.dtype());
    let factor = if args.training && args.p > 0.0 && args.p < 1.0 { 1.0 / (1.0 - args.p) } else { 1.0 };
    let lossy = factor != 1.0;
    let [worst, scale] = by_element(y.len(), |i| {
        let kept = args.mask.is_none_or(|m| m.values[i] != 0.0);
        let carried = if kept { args.input.error_at(i) * factor } else { 0.0 };
        let own =
            if lossy { 2.0 * a.u_out * (1.0 + a.u_out) * y.center[i].abs() + 2.0 * a.eta_out } else { 0.0 };
        let worst = if y.center[i].is_finite() && kept { (own + carried) * (1.0 + 1e-12) } else { 0.0 };
        [worst, y.center[i].abs()]
    });
    vec![Levels::plain(worst, scale)]
}
