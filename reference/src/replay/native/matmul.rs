//! matmul (`kernels/cu/matmul.cu`): s = +0, then s = fma(input[k], other[k], s) for k ascending; one rounding to 16 bits.

use ulpian_spec::HostTensor;
use ulpian_spec::ops::matmul::Matmul;

use super::super::lanes::{broadcast_index, broadcast_shape};
use super::element::{Element, Of, Real, result};

pub(super) fn run<E: Element>(_: Of<E>, args: &Matmul<&HostTensor>) -> Option<Vec<HostTensor>> {
    let (a, b) = (E::elements(args.input)?, E::elements(args.other)?);
    let (left, m, inner) = match args.input.shape() {
        [] => return None,
        [k] => (&[][..], None, *k),
        [batch @ .., m, k] => (batch, Some(*m), *k),
    };
    let (right, n) = match args.other.shape() {
        [] => return None,
        [_] => (&[][..], None),
        [batch @ .., _, n] => (batch, Some(*n)),
    };
    let batch = broadcast_shape(left, right)?;
    let (from_a, from_b) = (broadcast_index(left, &batch), broadcast_index(right, &batch));
    let shape = [&batch[..], m.as_slice(), n.as_slice()].concat();
    let (rows, columns) = (m.unwrap_or(1), n.unwrap_or(1));
    crate::vectorize(|| {
        result::<E>(&shape, |i| {
            let (column, row, batch) = (i % columns, i / columns % rows, i / columns / rows);
            let a = &a[(from_a[batch] * rows + row) * inner..][..inner];
            let b = &b[from_b[batch] * inner * columns..][..inner * columns];
            let products = a.iter().zip(b.iter().skip(column).step_by(columns));
            products.fold(E::Computed::ZERO, |s, (x, w)| x.load().fused(w.load(), s))
        })
    })
}
