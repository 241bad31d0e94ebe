//! linear: input @ weight^T + bias.

use std::sync::Arc;

use ulpian_spec::ops::linear::Linear;
use ulpian_spec::{Enclosure, OpKind};

use super::products::{Matrix, accumulate, figures, magnitudes};
use super::{Levels, Operand, Row};

pub(super) const ROW: Row = Row {
    kind: OpKind::Linear,
    bound: "gamma_K |A| |B|; with a bias gamma_{K+1} (|A| |B| + |bias|)",
    reason: "K products and their sum in any order, with or without FMA (Higham, section 3.1)",
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
    let inexact = args.input.error.is_some()
        || args.weight.error.is_some()
        || args.bias.is_some_and(|b| b.error.is_some());
    let mut scale = vec![0.0; y.len()];
    let mut carried = inexact.then(|| vec![0.0; y.len()]);
    let (x, w) = (magnitudes(&args.input.values), magnitudes(&args.weight.values));
    accumulate(
        Matrix { magnitude: &x, error: args.input.error.as_deref(), rows: m, columns: k, transposed: false },
        Matrix { magnitude: &w, error: args.weight.error.as_deref(), rows: k, columns: n, transposed: true },
        &mut scale,
        carried.as_deref_mut(),
    );
    if let Some(bias) = args.bias {
        for i in 0..y.len() {
            let at = if bias.len() == 1 { 0 } else { i % n };
            scale[i] += bias.values[at].abs();
            if let Some(carried) = carried.as_mut() {
                carried[i] += bias.error_at(at);
            }
        }
    }
    vec![figures(y, scale, carried, k as f64, args.bias.is_some())]
}
