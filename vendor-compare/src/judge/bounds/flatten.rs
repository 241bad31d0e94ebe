//! flatten: a copy.

use std::sync::Arc;

use ulpian_spec::ops::flatten::Flatten;
use ulpian_spec::{Enclosure, OpKind};

use super::{Levels, Operand, Row};

pub(super) const ROW: Row = Row {
    kind: OpKind::Flatten,
    bound: "0",
    reason: "elements are copied; the bits must match",
    blas: false,
};

pub(super) fn levels(args: &Flatten<&Operand<'_>>, truth: &[Arc<Enclosure>]) -> Vec<Levels> {
    vec![Levels::exact(&truth[0], args.input.error.as_deref().map(<[f64]>::to_vec))]
}
