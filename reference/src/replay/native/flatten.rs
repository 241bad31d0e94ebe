//! flatten (`kernels/cu/flatten.cu`): the same elements under another shape.

use ulpian_spec::ops::flatten::Flatten;
use ulpian_spec::{HostTensor, Op};

use super::element::{Element, Of};

pub(super) fn run<E: Element>(_: Of<E>, args: &Flatten<&HostTensor>) -> Option<Vec<HostTensor>> {
    let elements = E::elements(args.input)?.to_vec();
    let op = Op::Flatten(args.as_ref()).map(|_, t| t.tensor_type());
    let inferred = op.infer().ok()?;
    Some(vec![HostTensor::new(inferred.first()?.shape.clone(), E::storage(elements))?])
}
