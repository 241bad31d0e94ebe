//! max_pool2d: a selection.

use std::sync::Arc;

use ulpian_spec::ops::max_pool2d::MaxPool2d;
use ulpian_spec::{Enclosure, OpKind};

use super::{Levels, Operand, Row};

pub(super) const ROW: Row = Row {
    kind: OpKind::MaxPool2d,
    bound: "0",
    reason: "each result is one of the inputs; the bits must match, and the position is an integer",
    blas: false,
};

/// With inexact inputs a maximum moves by at most its plane's greatest error, and a position may be any other.
pub(super) fn levels(args: &MaxPool2d<&Operand<'_>>, truth: &[Arc<Enclosure>]) -> Vec<Levels> {
    let mut all: Vec<Levels> = truth.iter().map(|y| Levels::exact(y)).collect();
    let Some(error) = &args.input.error else {
        return all;
    };
    let plane = |shape: &[usize]| shape.iter().rev().take(2).product::<usize>().max(1);
    let greatest: Vec<f64> =
        error.chunks(plane(args.input.shape)).map(|c| c.iter().copied().fold(0.0, f64::max)).collect();
    for (k, levels) in all.iter_mut().enumerate() {
        let size = plane(truth[k].value.shape());
        for (i, worst) in levels.worst.iter_mut().enumerate() {
            let moved = greatest.get(i / size).copied().unwrap_or(0.0);
            *worst = if k == 0 || moved == 0.0 { moved } else { f64::INFINITY };
        }
    }
    all
}
