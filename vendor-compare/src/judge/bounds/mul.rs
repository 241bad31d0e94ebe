//! mul: a product.

use std::sync::Arc;

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
    let result = &truth[0];
    let a = Arithmetic::of(result.value.dtype());
    let pair = Pair::new(&a, args.input, args.other, result.value.shape());
    let [worst, scale] = pair.each(
        &result.center,
        #[inline(always)]
        |y, x, b| {
            if a.out.is_none() {
                return [0.0, y.abs()];
            }
            let (dx, db) = (x.converted + x.error, b.converted + b.error);
            let before = x.value.abs() * db + b.value.abs() * dx + dx * db;
            let worst = before + a.u * (y.abs() + before) + a.eta;
            [a.stored(y, worst), y.abs()]
        },
    );
    vec![Levels::plain(worst, scale)]
}
