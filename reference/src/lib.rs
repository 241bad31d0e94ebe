//! The certified CPU truth: for every element of every op, and of chains of ops, a proved enclosure of the exact real
//! result, and that result correctly rounded.
//!
//! Three layers answer, cheapest first, element by element:
//! - `fast`: single ops over exact inputs, in float64 with a proved radius;
//! - `balls`: chains, in double-double with a float64 radius;
//! - `exact`: any element of any chain in arbitrary precision, until its rounding is unique. It is the definition of
//!   every op's meaning, special values included; the other two only save time.

mod assemble;
mod balls;
mod chain;
mod dd;
mod driver;
pub mod eft;
mod elementary;
mod error;
mod exact;
mod fast;
pub mod replay;
pub mod round;

use std::collections::BTreeMap;
use std::sync::Arc;

use ulpian_spec::{Case, Enclosure, HostTensor, Op, ValueRef};

pub use error::EvaluateError;

/// Limits of an evaluation.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Working precision, in bits, at which an element is given up as undecided.
    pub max_precision: u32,
    /// Most bytes that one evaluation may hold at a time, by its own estimate.
    pub max_bytes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { max_precision: 1 << 14, max_bytes: 8 << 30 }
    }
}

/// The truths of a case, by node result.
#[derive(Debug, Clone, Default)]
pub struct Truth {
    /// T1: the exact chain over the real numbers, from the case's inputs, rounded once.
    pub real: BTreeMap<ValueRef, Enclosure>,
    /// T2: each op exact and then rounded to its dtype before the next one.
    pub per_op: BTreeMap<ValueRef, Arc<HostTensor>>,
    /// Results that are not determined: those of a dropout in training without a mask, and what depends on them.
    pub undetermined: Vec<ValueRef>,
}

/// The exact results of one op on these very inputs (T3, the local truth), one [`Enclosure`] per result.
///
/// # Errors
/// [`EvaluateError`] where the call is one that PyTorch rejects, where memory would not suffice, or where the result is not
/// determined (dropout in training without a mask).
pub fn evaluate(op: &Op<&HostTensor>, settings: &Settings) -> Result<Vec<Enclosure>, EvaluateError> {
    driver::evaluate(op, settings)
}

/// T1 and T2 of a case. `masks` gives, by node position, the mask of a dropout in training that has none of its own.
///
/// # Errors
/// As [`evaluate`], but for undetermined results, which are listed.
pub fn evaluate_chain(
    case: &Case,
    masks: &BTreeMap<usize, Arc<HostTensor>>,
    settings: &Settings,
) -> Result<Truth, EvaluateError> {
    chain::evaluate_chain(case, masks, settings)
}
