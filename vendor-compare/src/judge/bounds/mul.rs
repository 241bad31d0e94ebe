//! mul: a product.

use std::sync::Arc;

use rayon::prelude::*;
use ulpian_spec::ops::mul::Mul;
use ulpian_spec::{Enclosure, OpKind};

use super::operand::Pair;
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
    let pair = Pair::new(args.input, args.other, y.value.shape());
    let worst = (0..y.len())
        .into_par_iter()
        .map(|i| {
            if a.out.is_none() {
                return 0.0;
            }
            let [x, b] = pair.at(&a, i);
            let (dx, db) = (x.converted + x.error, b.converted + b.error);
            let before = x.value.abs() * db + b.value.abs() * dx + dx * db;
            a.stored(y.center[i], before + a.u * (y.center[i].abs() + before) + a.eta)
        })
        .collect();
    vec![Levels::plain(worst, y.center.iter().map(|c| c.abs()).collect())]
}
