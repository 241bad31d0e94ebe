//! matmul (`cu/matmul.cu`).

use ulpian_spec::ops::matmul::Matmul;
use ulpian_spec::{HostTensor, TensorType};

use crate::Launch;
use crate::launch::strides;

pub(super) fn launches(args: &Matmul<&HostTensor>, results: &[TensorType]) -> Option<Vec<Launch>> {
    let mut launch = Launch::elementwise("matmul", &results[0])?;
    let (left, rows, inner) = match args.input.shape() {
        [] => return None,
        [k] => (&[][..], 1, *k),
        [batch @ .., m, k] => (batch, *m, *k),
    };
    let (right, columns) = match args.other.shape() {
        [] => return None,
        [_] => (&[][..], 1),
        [batch @ .., _, n] => (batch, *n),
    };
    let batch = results[0].shape[..left.len().max(right.len())].to_vec();
    launch.same_dtype(args.input)?;
    launch.same_dtype(args.other)?;
    launch.sizes([rows, columns, inner, batch.len()]);
    launch.sizes(batch.iter().copied());
    launch.sizes(strides(left, batch.len(), rows * inner));
    launch.sizes(strides(right, batch.len(), inner * columns));
    Some(vec![launch])
}
