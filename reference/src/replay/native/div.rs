//! div (`kernels/cu/div.cu`): the rounded quotient; with a rounding mode its floor or truncation, moved back by 1 where the
//! remainder's sign says that the quotient had been rounded to an integer beyond the exact one.

use ulpian_spec::HostTensor;
use ulpian_spec::ops::RoundingMode;
use ulpian_spec::ops::div::Div;

use super::broadcast::pairs;
use super::element::{Element, Of, Real};

pub(super) fn run<E: Element>(_: Of<E>, args: &Div<&HostTensor>) -> Option<Vec<HostTensor>> {
    pairs::<E>(args.input, &args.other, |a, b| match args.rounding_mode {
        None => a / b,
        Some(RoundingMode::Trunc) => trunc(a, b),
        Some(RoundingMode::Floor) => floor(a, b),
    })
}

fn floor<T: Real>(a: T, b: T) -> T {
    let n = (a / b).downward();
    let r = (-n).fused(b, a);
    let beyond = (r < T::ZERO && b > T::ZERO) || (r > T::ZERO && b < T::ZERO);
    if beyond { back(n, T::ONE) } else { n }
}

fn trunc<T: Real>(a: T, b: T) -> T {
    let n = (a / b).toward_zero();
    let r = (-n).fused(b, a);
    let beyond = n != T::ZERO && ((r < T::ZERO && a > T::ZERO) || (r > T::ZERO && a < T::ZERO));
    let step = if n < T::ZERO { -T::ONE } else { T::ONE };
    if beyond { back(n, step) } else { n }
}

/// n - step where that is exact, n otherwise.
fn back<T: Real>(n: T, step: T) -> T {
    let back = n - step;
    if n - back == step { back } else { n }
}
