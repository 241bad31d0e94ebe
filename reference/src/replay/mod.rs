//! Bit-exact software replays of named arithmetics, orders and formulas: hypotheses about how a result came about.
//!
//! A hypothesis that returns the very bits of a result convicts (or acquits) where no error bound can: see
//! [`Hypothesis::explains`]. Everything is computed with IEEE operations and CORE-MATH's correctly rounded functions, so
//! that a replay is the same on every machine. The hypotheses are
//! about calls in 32 and 16 bits; [`native`] holds float64 too.

mod accumulate;
mod adaptive_avg_pool2d;
mod batch_norm;
mod dots;
mod elementwise;
mod gelu;
mod lanes;
mod layer_norm;
pub mod native;
mod softmax;
mod table;
pub mod tensor_core;

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

/// The bits of every result of a call, `None` where the hypothesis does not apply to it.
pub type Run = fn(&Op<&HostTensor>) -> Option<Vec<HostTensor>>;

/// Whether a sample of the first result's elements agrees with what was seen; `None` where the hypothesis does not apply.
pub type Sample = fn(&Op<&HostTensor>, &HostTensor) -> Option<bool>;

/// The bits of a sum, from the operands of the product it contains and of the sum. The last argument says whether the
/// product is the sum's `other` (otherwise its `input`).
pub type RunPair = fn(&Op<&HostTensor>, &Op<&HostTensor>, bool) -> Option<Vec<HostTensor>>;

/// A named way of computing an op, with the bits it gives.
#[derive(Debug)]
pub struct Hypothesis {
    /// Its name in `replay:NAME`.
    pub name: &'static str,
    /// One clause that completes "the result is that of …".
    pub what: &'static str,
    /// Whose doing it is.
    pub blame: Blame,
    /// The ops it is about.
    pub ops: &'static [OpKind],
    /// Computes it.
    pub run: Run,
    /// Refutes it cheaply, where it is large.
    pub sample: Option<Sample>,
}

/// A named way of computing two nodes, a product and a sum of it, as one.
#[derive(Debug)]
pub struct Contraction {
    /// Its name in `replay:NAME`.
    pub name: &'static str,
    /// One clause that completes "the result is that of …".
    pub what: &'static str,
    /// Whose doing it is.
    pub blame: Blame,
    /// Computes it.
    pub run: RunPair,
}

impl Hypothesis {
    /// Are these very bits what this hypothesis gives for the first results of `op`? `None` where it does not apply. Any two
    /// NaN count as the same bits. A sample of the elements is tried first, so a refutation is cheap.
    pub fn explains(&self, op: &Op<&HostTensor>, seen: &[&HostTensor]) -> Option<bool> {
        if !self.ops.contains(&op.kind()) {
            return None;
        }
        if let (Some(sample), Some(first)) = (self.sample, seen.first())
            && !sample(op, first)?
        {
            return Some(false);
        }
        let results = (self.run)(op)?;
        Some(seen.len() <= results.len() && seen.iter().zip(&results).all(|(seen, own)| seen.same_bits(own)))
    }
}

/// Every hypothesis, in the order in which they should be tried: sound ones first, then the most specific.
pub fn hypotheses() -> &'static [Hypothesis] {
    table::HYPOTHESES
}

/// The hypothesis of this name.
pub fn hypothesis(name: &str) -> Option<&'static Hypothesis> {
    hypotheses().iter().find(|h| h.name == name)
}

/// Every hypothesis about a product and a sum of it in two nodes.
pub fn contractions() -> &'static [Contraction] {
    table::CONTRACTIONS
}
