//! linear (`kernels/cu/linear.cu`): s = +0, then s = fma(input[k], weight[k], s) for k ascending, then s + bias; one rounding to
//! 16 bits.

use ulpian_spec::HostTensor;
use ulpian_spec::ops::linear::Linear;

use super::element::{Element, Of, Real, result};

pub(super) fn run<E: Element>(_: Of<E>, args: &Linear<&HostTensor>) -> Option<Vec<HostTensor>> {
    let (x, w) = (E::elements(args.input)?, E::elements(args.weight)?);
    let bias = match args.bias {
        Some(t) => Some(E::elements(t)?),
        None => None,
    };
    let [rows @ .., inner] = args.input.shape() else { return None };
    let outputs = &args.weight.shape()[..args.weight.shape().len().checked_sub(1)?];
    let columns = outputs.first().copied().unwrap_or(1);
    let shape = [rows, outputs].concat();
    crate::vectorize(|| {
        result::<E>(&shape, |i| {
            let (column, row) = (i % columns, i / columns);
            let products = x[row * inner..][..*inner].iter().zip(&w[column * inner..][..*inner]);
            let sum = products.fold(E::Computed::ZERO, |s, (x, w)| x.load().fused(w.load(), s));
            match bias {
                Some([all]) => sum + all.load(),
                Some(bias) => sum + bias[column].load(),
                None => sum,
            }
        })
    })
}
