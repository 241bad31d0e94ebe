//! matmul, with its rules for one-dimensional and batched operands.

use std::sync::Arc;

use rayon::prelude::*;
use ulpian_spec::ops::matmul::Matmul;
use ulpian_spec::{Enclosure, OpKind};

use super::operand::Broadcast;
use super::products::{Factors, Kind, Precision, accumulate, figures, matrix, suits_single};
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
    let sizes =
        Sizes { m, k, n, batches: (0..batches).map(|b| (from_left.at(b), from_right.at(b))).collect() };
    let (scale, carried) = match suits_single(y.value.dtype(), args.input, args.other, k) {
        Some(exact) => sums::<f32>(args, &sizes, exact),
        None => sums::<f64>(args, &sizes, false),
    };
    vec![figures(y, scale, carried, k as f64, false)]
}

struct Sizes {
    m: usize,
    k: usize,
    n: usize,
    /// Which matrices of the operands make each of the result's.
    batches: Vec<(usize, usize)>,
}

/// |A| |B| and what the operands' errors add.
fn sums<T: Precision>(
    args: &Matmul<&Operand<'_>>,
    sizes: &Sizes,
    exact: bool,
) -> (Vec<f64>, Option<Vec<f64>>) {
    let &Sizes { m, k, n, ref batches } = sizes;
    let factors = Factors::<T>::new(args.input, args.other, exact);
    let (mut scale, mut carried) = (vec![0.0; batches.len() * m * n], None);
    for (kind, left, erring) in factors.sums() {
        let to = if kind == Kind::Carried {
            carried.get_or_insert_with(|| vec![0.0; batches.len() * m * n])
        } else {
            &mut scale
        };
        let right = factors.right.storage(erring);
        to.par_chunks_mut((m * n).max(1)).zip(batches).for_each(|(to, &(l, r))| {
            let (left, right) = (&left[l * m * k..(l + 1) * m * k], &right[r * k * n..(r + 1) * k * n]);
            accumulate(matrix(left, m, k), matrix(right, k, n), to, kind);
        });
    }
    (scale, carried)
}
