//! The way of a case: truth, parties, hearing, verdict.

use std::collections::BTreeMap;

use ulpian_reference::{EvaluateError, Settings, Truth, evaluate_chain};
use ulpian_spec::verdict::CaseVerdict;
use ulpian_spec::{Case, ExecutorId};
use ulpian_vendor_compare::judge::{Hearing, JudgeError};

use crate::Executors;

/// The certified truth of every node result: over the real numbers, and op by op.
///
/// # Errors
/// [`EvaluateError`] where the evaluation would not fit.
pub fn truth(case: &Case) -> Result<Truth, EvaluateError> {
    evaluate_chain(case, &BTreeMap::new(), &Settings::default())
}

/// Hears every party, tries what may explain their errors, and gives the verdict. `watch` is told who is heard.
///
/// # Errors
/// [`JudgeError`] where the truth cannot be computed. A party that cannot be heard is no error: it is part of the verdict.
pub fn judge(
    case: &Case,
    parties: &[ExecutorId],
    executors: &mut Executors,
    watch: &mut dyn FnMut(&ExecutorId),
) -> Result<CaseVerdict, JudgeError> {
    let mut hearing = Hearing::new(case, &Settings::default())?;
    for party in parties {
        watch(party);
        let outcome = executors.run(party, case);
        hearing.hear(party.clone(), outcome);
    }
    while let Some(request) = hearing.wants() {
        watch(&request.executor);
        let outcome = executors.intervene(&request.executor, &request.case);
        hearing.answer(&request, outcome);
    }
    Ok(hearing.verdict(executors.facts()))
}
