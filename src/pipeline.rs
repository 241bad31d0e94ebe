//! The way of a case: truth, parties, hearing, verdict.

use std::collections::BTreeMap;

use ulpian_reference::{EvaluateError, Settings, Truth, evaluate_chain};
use ulpian_spec::Case;

/// The certified truth of every node result: over the real numbers, and op by op.
///
/// # Errors
/// [`EvaluateError`] where the evaluation would not fit.
pub fn truth(case: &Case) -> Result<Truth, EvaluateError> {
    evaluate_chain(case, &BTreeMap::new(), &Settings::default())
}
