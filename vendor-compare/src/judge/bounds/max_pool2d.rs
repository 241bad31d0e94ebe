//! max_pool2d: a selection.

use std::sync::Arc;

use ulpian_spec::ops::max_pool2d::MaxPool2d;
use ulpian_spec::{Enclosure, OpKind};

use super::parts::by_run;
use super::{Levels, Operand, Row};

pub(super) const ROW: Row = Row {
    kind: OpKind::MaxPool2d,
    bound: "0",
    reason: "each result is one of the inputs; the bits must match, and the position is an integer",
    blas: false,
};

/// With inexact inputs a maximum moves by at most its plane's greatest error, and a position may be any other.
pub(super) fn levels(args: &MaxPool2d<&Operand<'_>>, truth: &[Arc<Enclosure>]) -> Vec<Levels> {
    let plane = |shape: &[usize]| shape.iter().rev().take(2).product::<usize>().max(1);
    let greatest: Option<Vec<f64>> = args.input.error.as_ref().map(|error| {
        error.chunks(plane(args.input.shape)).map(|c| c.iter().copied().fold(0.0, f64::max)).collect()
    });
    let result = |(k, y): (usize, &Arc<Enclosure>)| {
        let worst = greatest.as_ref().map(|greatest| {
            let [worst] = by_run(y.len(), plane(y.value.shape()), |number, _, [worst]| {
                let moved = greatest.get(number).copied().unwrap_or(0.0);
                worst.fill(if k == 0 || moved == 0.0 { moved } else { f64::INFINITY });
            });
            worst
        });
        Levels::exact(y, worst)
    };
    truth.iter().enumerate().map(result).collect()
}
