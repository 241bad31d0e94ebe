//! relu: a selection.

use std::sync::Arc;

use ulpian_spec::ops::relu::Relu;
use ulpian_spec::{Enclosure, OpKind};

use super::{Levels, Operand, Row};

pub(super) const ROW: Row = Row {
    kind: OpKind::Relu,
    bound: "0",
    reason: "each result is the input or zero; the bits must match, and max(x, 0) moves no further than x",
    blas: false,
};

pub(super) fn levels(args: &Relu<&Operand<'_>>, truth: &[Arc<Enclosure>]) -> Vec<Levels> {
    vec![Levels::exact(&truth[0], args.input.error.as_deref().map(<[f64]>::to_vec))]
}
