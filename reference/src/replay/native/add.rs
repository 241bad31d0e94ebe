//! add (`kernels/cu/add.cu`): fma(alpha, other, input), one rounding.

use ulpian_spec::HostTensor;
use ulpian_spec::ops::add::Add;

use super::broadcast::pairs;
use super::element::{Element, Of, Real};

pub(super) fn run<E: Element>(_: Of<E>, args: &Add<&HostTensor>) -> Option<Vec<HostTensor>> {
    let alpha = E::Computed::of_scalar(args.alpha);
    pairs::<E>(args.input, &args.other, |a, b| alpha.fused(b, a))
}
