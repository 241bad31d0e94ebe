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
    let mut levels = Levels::exact(&truth[0]);
    if let Some(error) = &args.input.error {
        levels.worst = error.to_vec();
    }
    vec![levels]
}
