//! matmul, with its rules for one-dimensional and batched operands.

use std::sync::Arc;

use ulpian_spec::ops::matmul::Matmul;
use ulpian_spec::{Enclosure, OpKind};

use super::operand::Broadcast;
use super::products::{Matrix, accumulate, figures, magnitudes};
use super::{Levels, Operand, Row};

pub(super) const ROW: Row = Row {
    kind: OpKind::Matmul,
    bound: "gamma_K |A| |B|",
    reason: "K products and their sum in any order, with or without FMA (Higham, section 3.1)",
    blas: true,
};

pub(super) fn levels(args: &Matmul<&Operand<'_>>, truth: &[Arc<Enclosure>]) -> Vec<Levels> {
    let y = &truth[0];
    let (left, right) = (args.input.shape, args.other.shape);
    let (left_batch, m, k) = match left {
        [k] => (&left[..0], 1, *k),
        [batch @ .., m, k] => (batch, *m, *k),
        [] => (left, 1, 1),
    };
    let (right_batch, n) = match right {
        [batch @ .., _, n] => (batch, *n),
        _ => (&right[..0], 1),
    };
    let matrix = m * n;
    let batches = y.len().checked_div(matrix).unwrap_or(0);
    let batch_rank = left_batch.len().max(right_batch.len());
    let batch_shape = &y.value.shape()[..batch_rank.min(y.value.shape().len())];
    let (from_left, from_right) =
        (Broadcast::new(left_batch, batch_shape), Broadcast::new(right_batch, batch_shape));
    let mut scale = vec![0.0; y.len()];
    let mut carried = (args.input.error.is_some() || args.other.error.is_some()).then(|| vec![0.0; y.len()]);
    let (x, w) = (magnitudes(&args.input.values), magnitudes(&args.other.values));
    for batch in 0..batches {
        let (l, r) = (from_left.at(batch) * m * k, from_right.at(batch) * k * n);
        let to = batch * matrix..(batch + 1) * matrix;
        accumulate(
            Matrix {
                magnitude: &x[l..l + m * k],
                error: args.input.error.as_deref().map(|e| &e[l..l + m * k]),
                rows: m,
                columns: k,
                transposed: false,
            },
            Matrix {
                magnitude: &w[r..r + k * n],
                error: args.other.error.as_deref().map(|e| &e[r..r + k * n]),
                rows: k,
                columns: n,
                transposed: false,
            },
            &mut scale[to.clone()],
            carried.as_deref_mut().map(|c| &mut c[to]),
        );
    }
    vec![figures(y, scale, carried, k as f64, false)]
}
