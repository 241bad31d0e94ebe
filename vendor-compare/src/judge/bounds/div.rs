//! div: a quotient, or a quotient rounded to an integer.

use std::sync::Arc;

use ulpian_spec::ops::div::Div;
use ulpian_spec::{Enclosure, OpKind};

use super::operand::Pair;
use super::{Arithmetic, Levels, Operand, Row};

pub(super) const ROW: Row = Row {
    kind: OpKind::Div,
    bound: "u |y| + eta + the conversion of operands; with a rounding mode 1 more where a / b is within 2 d of an integer, and d where \
            d >= 1/2, d = (u + u_out) |a / b|",
    reason: "one quotient, rounded once; IEEE division is correctly rounded, and a reciprocal with a product is not it; the \
             rounding to an integer is documented as one of the division's result, which the result's dtype has rounded",
    blas: false,
};

pub(super) fn levels(args: &Div<&Operand<'_>>, truth: &[Arc<Enclosure>]) -> Vec<Levels> {
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
            let q = x.value / b.value;
            let before = if dx + db == 0.0 {
                0.0
            } else {
                (dx + q.abs() * db) / (b.value.abs() - db).max(f64::MIN_POSITIVE)
            };
            let quotient = before + a.u * (q.abs() + before) + a.eta;
            let stored =
                if a.narrow { quotient + a.u_out * (q.abs() + quotient) + a.eta_out } else { quotient };
            let integer = a.u * y.abs();
            let error = match args.rounding_mode {
                None => quotient,
                Some(_) if stored >= 0.5 => 1.0 + stored + integer,
                Some(_) if (q - q.round()).abs() <= 2.0 * stored => 1.0 + integer,
                Some(_) => integer,
            };
            [a.stored(y, error), y.abs()]
        },
    );
    vec![Levels::plain(worst, scale)]
}
