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

/// The certified truth of every node result: over the real numbers, and op by op.
///
/// # Errors
/// [`EvaluateError`] where the evaluation would not fit.
pub fn truth(case: &Case) -> Result<Truth, EvaluateError> {
    evaluate_chain(case, &BTreeMap::new(), &Settings::default())
}

/// Hears every party, tries what may explain their errors, and gives the verdict. `witness` is told who is about to run.
///
/// # Errors
/// [`JudgeError`] where the truth cannot be computed. A party that cannot be heard is no error: it is part of the verdict.
pub fn judge(
    case: &Case,
    parties: &[ExecutorId],
    executors: &mut Executors,
    interventions: Interventions,
    witness: &mut dyn FnMut(&ExecutorId),
) -> Result<CaseVerdict, JudgeError> {
    let mut hearing = Hearing::new(case, &Settings::default())?;
    let outcomes = hear(case, parties, executors, witness);
    explain(&mut hearing, parties, outcomes, interventions, |executor, case| {
        witness(executor);
        executors.intervene(executor, case)
    });
    Ok(hearing.verdict(executors.facts()))
}

/// What every party says of a case.
pub fn hear(
    case: &Case,
    parties: &[ExecutorId],
    executors: &mut Executors,
    witness: &mut dyn FnMut(&ExecutorId),
) -> Vec<Outcome> {
    let one = |party| {
        witness(party);
        executors.run(party, case)
    };
    parties.iter().map(one).collect()
}

/// Takes what the parties said, and throws the switches that may explain their errors; `run` does.
pub fn explain(
    hearing: &mut Hearing,
    parties: &[ExecutorId],
    outcomes: Vec<Outcome>,
    interventions: Interventions,
    mut run: impl FnMut(&ExecutorId, &Case) -> Outcome,
) {
    for (party, outcome) in parties.iter().zip(outcomes) {
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
            run(&request.executor, &request.case)
        };
        hearing.answer(&request, outcome);
    }
}
