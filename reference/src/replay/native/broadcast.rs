//! Two operands of one dtype, broadcast, or a tensor and a Python scalar.

use ulpian_spec::HostTensor;
use ulpian_spec::ops::TensorOrScalar;

use super::super::lanes::{broadcast_index, broadcast_shape};
use super::element::{Element, Real, result};

/// `f(input, other)` element by element.
pub(super) fn pairs<E: Element>(
    input: &HostTensor,
    other: &TensorOrScalar<&HostTensor>,
    f: impl Fn(E::Computed, E::Computed) -> E::Computed,
) -> Option<Vec<HostTensor>> {
    let a = E::elements(input)?;
    match other {
        TensorOrScalar::Scalar(s) => {
            let b = E::Computed::of_scalar(*s);
            result::<E>(input.shape(), |i| f(a[i].load(), b))
        }
        TensorOrScalar::Tensor(t) => {
            let b = E::elements(t)?;
            let shape = broadcast_shape(input.shape(), t.shape())?;
            let (left, right) = (broadcast_index(input.shape(), &shape), broadcast_index(t.shape(), &shape));
            result::<E>(&shape, |i| f(a[left[i]].load(), b[right[i]].load()))
        }
    }
}
