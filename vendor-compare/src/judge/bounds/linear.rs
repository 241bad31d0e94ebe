//! linear: input @ weight^T + bias.

use std::sync::Arc;

use ulpian_spec::ops::linear::Linear;
use ulpian_spec::{Enclosure, OpKind};

use super::products::{Factors, Kind, Precision, accumulate, figures, matrix, suits_single};
use super::{Arithmetic, Levels, Operand, Row};

pub(super) const ROW: Row = Row {
    kind: OpKind::Linear,
    bound: "gamma_K |A| |B|; with a bias gamma_{K+1} (|A| |B| + |bias|); a 16-bit product with a one-dimensional weight u_out (|y| + \
            |bias|) more",
    reason: "K products and their sum in any order, with or without FMA (Higham, section 3.1); a one-dimensional weight is \
             documented as such only, and matmul and add, two ops of the result's dtype, compute it",
    blas: true,
};

pub(super) fn levels(args: &Linear<&Operand<'_>>, truth: &[Arc<Enclosure>]) -> Vec<Levels> {
    let y = &truth[0];
    let k = args.input.shape.last().copied().unwrap_or(1);
    let n = args
        .weight
        .len()
        .checked_div(k)
        .unwrap_or_else(|| if args.weight.shape.len() == 2 { args.weight.shape[0] } else { 1 });
    let m = y.len().checked_div(n).unwrap_or(0);
    let (mut scale, mut carried) = match suits_single(y.value.dtype(), args.input, args.weight, k) {
        Some(exact) => sums::<f32>(args, [m, k, n], exact),
        None => sums::<f64>(args, [m, k, n], false),
    };
    if args.bias.is_some_and(|b| b.error.is_some()) {
        carried.get_or_insert_with(|| vec![0.0; y.len()]);
    }
    if let Some(bias) = args.bias {
        for i in 0..y.len() {
            let at = if bias.len() == 1 { 0 } else { i % n };
            scale[i] += bias.values[at].abs();
            if let Some(carried) = carried.as_mut() {
                carried[i] += bias.error_at(at);
            }
        }
    }
    let a = Arithmetic::of(y.value.dtype());
    if let ([_], Some(bias), true) = (args.weight.shape, args.bias, a.narrow) {
        // The product is |y - bias| at most; what it loses is carried into the sum.
        let carried = carried.get_or_insert_with(|| vec![0.0; y.len()]);
        for (i, carried) in carried.iter_mut().enumerate() {
            let at = if bias.len() == 1 { 0 } else { i % n };
            *carried += a.u_out * (1.0 + a.u_out) * (y.center[i].abs() + bias.values[at].abs()) + a.eta_out;
        }
    }
    vec![figures(y, scale, carried, k as f64, args.bias.is_some())]
}

/// |A| |B| and what the operands' errors add.
fn sums<T: Precision>(
    args: &Linear<&Operand<'_>>,
    [m, k, n]: [usize; 3],
    exact: bool,
) -> (Vec<f64>, Option<Vec<f64>>) {
    let (mut scale, mut carried) = (vec![0.0; m * n], None);
    if m * k * n == 0 {
        return (scale, carried);
    }
    let factors = Factors::<T>::new(args.input, args.weight, exact);
    for (kind, left, erring) in factors.sums() {
        let to =
            if kind == Kind::Carried { carried.get_or_insert_with(|| vec![0.0; m * n]) } else { &mut scale };
        accumulate(matrix(left, m, k), matrix(factors.right.storage(erring), n, k).reversed_axes(), to, kind);
    }
    (scale, carried)
}
