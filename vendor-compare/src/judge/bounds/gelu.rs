//! gelu: x Phi(x), and its tanh form.
//!
//! Condition: of x Phi(x), 1 + x phi(x) / Phi(x); for x < 0 the quotient -x phi / Phi lies below 1 + x^2 (Mills' ratio), for
//! x >= 0 below 1/2. Of the tanh form x / (1 + exp(-2 t)), t = sqrt(2 / pi) (x + 0.044715 x^3): 1 + 2 x t' / (1 + exp(2 t)).

use std::sync::Arc;

use ulpian_spec::ops::GeluApproximate;
use ulpian_spec::ops::gelu::Gelu;
use ulpian_spec::{Enclosure, OpKind};

use super::parts::{From, by_run, each};
use super::{Arithmetic, Levels, Operand, Row};

pub(super) const ROW: Row = Row {
    kind: OpKind::Gelu,
    bound: "4 u c |y| + eta, c = 2 + x^2 for x < 0 and 2 otherwise; tanh form: c = 1 + 2 |x t'(x)| for x < 0",
    reason: "the function's own condition c, for the rounding of the argument, an exponential and three more operations; \
             0.5 x (1 + erf) cancels for x < 0 and exceeds it, x Phi(x) through erfc does not",
    blas: false,
};

pub(super) fn levels(args: &Gelu<&Operand<'_>>, truth: &[Arc<Enclosure>]) -> Vec<Levels> {
    let y = &truth[0];
    let a = Arithmetic::of(y.value.dtype());
    let (input, error) = (&args.input.values[..], args.input.error.as_deref());
    let from = [From::Each(&y.center), From::Each(input), From::or_zero(error)];
    let [worst, scale] = by_run(y.len(), usize::MAX, |_, at, part| {
        let count = part[0].len();
        each(
            from.map(|from| from.part(at, count)),
            part,
            #[inline(always)]
            |[y, x, error]| {
                let c = match args.approximate {
                    _ if x.is_nan() || x >= 0.0 => 2.0,
                    GeluApproximate::None => 2.0 + x * x,
                    GeluApproximate::Tanh => 1.0 + 2.0 * x.abs() * 0.798 * (1.0 + 0.134_145 * x * x),
                };
                let scale = c * y.abs();
                // |gelu'| stays below 1.13 for both forms.
                let carried = 1.13 * error;
                [a.stored(y, 4.0 * a.u * scale + 2.0 * a.eta + carried), scale]
            },
        );
    });
    vec![Levels::plain(worst, scale)]
}
