//! mul (`kernels/cu/mul.cu`): one product, one rounding.

use ulpian_spec::HostTensor;
use ulpian_spec::ops::mul::Mul;

use super::broadcast::pairs;
use super::element::{Element, Of};

pub(super) fn run<E: Element>(_: Of<E>, args: &Mul<&HostTensor>) -> Option<Vec<HostTensor>> {
    pairs::<E>(args.input, &args.other, |a, b| a * b)
}
