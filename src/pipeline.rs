//! The way of a case: truth, parties, hearing, verdict.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use ulpian_reference::{EvaluateError, Settings, Truth, evaluate_chain};
use ulpian_spec::verdict::CaseVerdict;
use ulpian_spec::{Case, ExecutorId, Outcome};
use ulpian_vendor_compare::judge::{Hearing, JudgeError};

use crate::Executors;

/// Which runs the judge is granted to explain an error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Interventions {
    /// Every one.
    #[default]
    All,
    /// Every one but `compile=on`, which takes seconds.
    Quick,
    /// None: replays are compared, no switch is thrown.
    None,
}

/// What is told while a case is heard.
pub trait Witness {
    /// An executor is about to run.
    fn hears(&mut self, _executor: &ExecutorId) {}

    /// Party number `place` has answered.
    fn heard(&mut self, _place: usize, _outcome: &Outcome) {}
}

impl<F: FnMut(&ExecutorId)> Witness for F {
    fn hears(&mut self, executor: &ExecutorId) {
        self(executor);
    }
}

/// The certified truth of every node result: over the real numbers, and op by op.
///
/// # Errors
/// [`EvaluateError`] where the evaluation would not fit.
pub fn truth(case: &Case) -> Result<Truth, EvaluateError> {
    evaluate_chain(case, &BTreeMap::new(), &Settings::default())
}

/// Hears every party, tries what may explain their errors, and gives the verdict.
///
/// # Errors
/// [`JudgeError`] where the truth cannot be computed. A party that cannot be heard is no error: it is part of the verdict.
pub fn judge(
    case: &Case,
    parties: &[ExecutorId],
    executors: &mut Executors,
    interventions: Interventions,
    witness: &mut dyn Witness,
) -> Result<CaseVerdict, JudgeError> {
    let mut hearing = Hearing::new(case, &Settings::default())?;
    for (place, party) in parties.iter().enumerate() {
        witness.hears(party);
        let outcome = executors.run(party, case);
        witness.heard(place, &outcome);
        hearing.hear(party.clone(), outcome);
    }
    while interventions != Interventions::None
        && let Some(request) = hearing.wants()
    {
        let compiles = request.executor.key("compile").is_some();
        let outcome = if compiles && interventions == Interventions::Quick {
            Outcome::Unavailable {
                reason: "compiling was left out".to_owned(),
                remedy: "allow all interventions".to_owned(),
            }
        } else {
            witness.hears(&request.executor);
            executors.intervene(&request.executor, &request.case)
        };
        hearing.answer(&request, outcome);
    }
    Ok(hearing.verdict(executors.facts()))
}
