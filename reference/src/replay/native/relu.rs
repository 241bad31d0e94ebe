//! relu (`kernels/cu/relu.cu`): x where x > 0 or NaN, +0 otherwise.

use ulpian_spec::HostTensor;
use ulpian_spec::ops::relu::Relu;

use super::element::{Element, Of, Real, result};

#[allow(clippy::eq_op)] // x != x: NaN
pub(super) fn run<E: Element>(_: Of<E>, args: &Relu<&HostTensor>) -> Option<Vec<HostTensor>> {
    let x = E::elements(args.input)?;
    result::<E>(args.input.shape(), |i| {
        let x = x[i].load();
        if x > E::Computed::ZERO || x != x { x } else { E::Computed::ZERO }
    })
}
