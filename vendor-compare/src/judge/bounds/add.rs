//! add: input + alpha * other.

use std::sync::Arc;

use ulpian_spec::ops::add::Add;
use ulpian_spec::{Enclosure, OpKind};

use super::operand::Pair;
use super::{Arithmetic, Levels, Operand, Row};

pub(super) const ROW: Row = Row {
    kind: OpKind::Add,
    bound: "u |y| + u |alpha b| (alpha other than 1 or -1) + the conversion of operands to the result's dtype",
    reason: "one product and one sum, each rounded once in the arithmetic; an FMA saves the first rounding",
    blas: false,
};

pub(super) fn levels(args: &Add<&Operand<'_>>, truth: &[Arc<Enclosure>]) -> Vec<Levels> {
    let result = &truth[0];
    let a = Arithmetic::of(result.value.dtype());
    let pair = Pair::new(&a, args.input, args.other, result.value.shape());
    let alpha = args.alpha.as_f64();
    let alpha_error = a.conversion(alpha);
    let [worst, scale] = pair.each(
        &result.center,
        #[inline(always)]
        |y, x, b| {
            let scale = x.value.abs() + (alpha * b.value).abs();
            if a.out.is_none() {
                return [0.0, scale];
            }
            let product = if alpha.abs() == 1.0 { 0.0 } else { a.u * (alpha * b.value).abs() + a.eta };
            let converted = x.converted + b.converted * alpha.abs() + alpha_error * b.value.abs();
            let carried = x.error + alpha.abs() * b.error;
            let before = (product + converted) * (1.0 + 4.0 * a.u_out) + carried;
            [a.stored(y, before + a.u * (y.abs() + before)), scale]
        },
    );
    vec![Levels::plain(worst, scale)]
}
