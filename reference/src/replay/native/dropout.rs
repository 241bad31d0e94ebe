//! dropout (`kernels/cu/dropout.cu`): input * (mask / (1 - p)), the difference in float64 and rounded to what is computed in.

use ulpian_spec::HostTensor;
use ulpian_spec::ops::dropout::Dropout;

use super::element::{Element, Of, Real, result};

/// `None` where a mask is needed and absent, or holds something but 0 and 1.
pub(super) fn run<E: Element>(_: Of<E>, args: &Dropout<&HostTensor>) -> Option<Vec<HostTensor>> {
    let x = E::elements(args.input)?;
    let shape = args.input.shape();
    if !args.training || args.p == 0.0 {
        return result::<E>(shape, |i| x[i].load());
    }
    if args.p == 1.0 {
        return result::<E>(shape, |i| x[i].load() * E::Computed::ZERO);
    }
    let mask = args.mask?.to_f64_vec();
    if mask.iter().any(|&m| m != 0.0 && m != 1.0) {
        return None;
    }
    let keep = E::Computed::rounded(1.0 - args.p);
    result::<E>(shape, |i| x[i].load() * (E::Computed::rounded(mask[i]) / keep))
}
