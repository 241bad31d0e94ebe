//! Bit-exact software replays of named arithmetics, orders and formulas: hypotheses about how a result came about.

use ulpian_spec::{HostTensor, Op, OpKind};

/// Whose doing it is when a hypothesis returns the very bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Blame {
    /// A sound algorithm at the documented precision: only the order or the rounding differs.
    Nobody,
    /// The framework's formula or default.
    Framework,
    /// The arithmetic of the hardware: TF32, a 16-bit accumulator, contraction.
    Hardware,
}

/// A named way of computing an op, with the bits it gives.
pub struct Hypothesis {
    /// Its name in `replay:NAME`.
    pub name: &'static str,
    /// One clause that completes "the result is that of …".
    pub what: &'static str,
    /// Whose doing it is.
    pub blame: Blame,
    /// The ops it is about.
    pub ops: &'static [OpKind],
    /// The bits of every result, `None` where it does not apply to these arguments.
    pub run: fn(&Op<&HostTensor>) -> Option<Vec<HostTensor>>,
}

/// Every hypothesis, in the order in which they should be tried: sound ones first, then the most specific.
pub fn hypotheses() -> &'static [Hypothesis] {
    &[]
}
