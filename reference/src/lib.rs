//! The certified CPU truth: for every element of every op, and of chains of ops, a proved enclosure of the exact real
//! result, and that result correctly rounded.
//!
//! # Three truths
//!
//! What the right answer is depends on where rounding is allowed. All three are needed to say whose an error is.
//!
//! - **T1, the exact chain** ([`Truth::real`]): every op over the real numbers, from the case's inputs, rounded to the result's
//!   dtype once, at the end. No executor can be expected to return it, but every error is measured from it.
//! - **T2, exact per op** ([`Truth::per_op`]): each op exact and then rounded to its dtype before the next one, which is what
//!   an ideal eager framework returns. A fused kernel may legally be nearer to T1 than T2 is.
//! - **T3, the local truth** ([`evaluate`] on an executor's own earlier outputs): what this op should have made of the inputs
//!   that it had. |observed - T3| is the op's own error; what is left of |observed - T1| came in with the inputs and was
//!   amplified by the condition of the op.
//!
//! # One op
//!
//! ```
//! use ulpian_reference::{Settings, evaluate};
//! use ulpian_spec::ops::softmax::Softmax;
//! use ulpian_spec::{HostTensor, Op};
//!
//! let x = HostTensor::f32(&[1, 3], &[0.0, 1.0, f32::NEG_INFINITY]);
//! let op = Op::Softmax(Softmax { input: &x, dim: 1, dtype: None });
//! let truth = &evaluate(&op, &Settings::default())?[0];
//!
//! // The correctly rounded float32, and a proved interval: 1 / (1 + e) lies within `radius` of `center + low`.
//! assert_eq!(truth.value.get_f64(0), f64::from(0.26894143_f32));
//! assert!((truth.center[0] - 1.0 / (1.0 + std::f64::consts::E)).abs() <= truth.radius[0] + 1e-16);
//! assert!(truth.undecided.is_empty());
//! # Ok::<(), ulpian_reference::EvaluateError>(())
//! ```
//!
//! # A chain
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use ulpian_reference::{Settings, evaluate_chain};
//! use ulpian_spec::case::Limits;
//! use ulpian_spec::{Case, ValueRef};
//!
//! let text = r#"{
//!   "format": "ulpian-case/1", "name": "a-third-of-three",
//!   "nodes": [
//!     {"id": "third", "op": "div",
//!      "args": {"input": {"dtype": "float16", "shape": [1], "data": [1]}, "other": 3}},
//!     {"id": "one", "op": "mul", "args": {"input": "%third", "other": 3}}
//!   ]
//! }"#;
//! let case = Case::from_json(text, "third.json", Limits::default())?;
//! let truth = evaluate_chain(&case, &BTreeMap::new(), &Settings::default())?;
//!
//! let one = ValueRef::Node { node: 1, output: 0 };
//! // Over the real numbers it is 1; rounded after the first op it is 3 * 0.333251953125, which is a tie and rounds to even.
//! assert_eq!(truth.real[&one].value.get_f64(0), 1.0);
//! assert_eq!(truth.per_op[&one].get_f64(0), 1.0);
//! let third = ValueRef::Node { node: 0, output: 0 };
//! assert_eq!(truth.per_op[&third].get_f64(0), 0.333251953125);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How it is computed
//!
//! Three layers answer, cheapest first, element by element:
//! - `fast`: single ops over exact inputs, in float64 with a proved radius;
//! - `balls`: chains, in double-double with a float64 radius, or in float64 where wide enclosures will do ([`enclose_real`]);
//! - `exact`: any element of any chain in arbitrary precision, until its rounding is unique. It is the definition of
//!   every op's meaning, special values included; the other two only save time.
//!
//! Results depend neither on the number of threads nor on the machine's instruction set. An element whose rounding cannot be
//! pinned down within [`Settings::max_precision`] is listed as undecided; exact ties are decided. Where the exact result is not a
//! finite real number, the enclosure's centre is that NaN or infinity.

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
pub mod order;
#[cfg(test)]
mod random;
pub mod replay;
pub mod round;
mod simd;

use std::collections::BTreeMap;
use std::sync::Arc;

use ulpian_spec::{Case, Enclosure, HostTensor, Op, ValueRef};

pub use error::EvaluateError;
pub use simd::vectorize;

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

/// Enclosures of T1, by node result, in a fraction of the time of [`evaluate_real`]: some 2^-50 of the terms of sums wide, which is
/// enough to measure a result of 32 or 16 bits by. An element whose rounding that leaves open is listed as undecided.
///
/// # Errors
/// As [`evaluate_chain`].
pub fn enclose_real(
    case: &Case,
    masks: &BTreeMap<usize, Arc<HostTensor>>,
    settings: &Settings,
) -> Result<BTreeMap<ValueRef, Enclosure>, EvaluateError> {
    chain::enclose_real(case, masks, settings)
}

/// T1 of a case alone, by node result; undetermined results are absent. It takes less time than [`evaluate_chain`].
///
/// # Errors
/// As [`evaluate_chain`].
pub fn evaluate_real(
    case: &Case,
    masks: &BTreeMap<usize, Arc<HostTensor>>,
    settings: &Settings,
) -> Result<BTreeMap<ValueRef, Enclosure>, EvaluateError> {
    chain::evaluate_real(case, masks, settings)
}
