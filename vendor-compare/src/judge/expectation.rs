//! A verdict against what the case itself says it should be.

use ulpian_spec::verdict::{CaseVerdict, Cause, Expectation, ExpectationResult};
use ulpian_spec::{Case, ValueRef};

use super::chain::Chain;

/// What is not as expected, a sentence each.
pub(super) fn check(
    case: &Case,
    expect: &Expectation,
    verdict: &CaseVerdict,
    chain: &Chain,
) -> ExpectationResult {
    let mut unmet = Vec::new();
    let names = |causes: &[Cause]| causes.iter().map(|c| c.name()).collect::<Vec<_>>().join(" or ");
    let found = &verdict.verdict;
    if !expect.cause.is_empty() && !expect.cause.contains(&found.cause) {
        unmet.push(format!("the cause is {}, {} is expected", found.cause.name(), names(&expect.cause)));
    }
    if let Some(grade) = expect.grade
        && found.grade < grade
    {
        unmet.push(format!("the grade is {:?}, at least {grade:?} is expected", found.grade));
    }
    for (name, causes) in &expect.parties {
        // An executor that did not run here is passed over.
        if let Some(party) = verdict.executors.iter().find(|e| &e.executor == name)
            && !causes.contains(&party.verdict.cause)
        {
            unmet.push(format!(
                "the cause for {name} is {}, {} is expected ({})",
                party.verdict.cause.name(),
                names(causes),
                party.verdict.because
            ));
        }
    }
    for word in &expect.because {
        if !found.because.contains(word.as_str()) {
            unmet.push(format!("the sentence does not speak of `{word}`"));
        }
    }
    for (name, truth) in &expect.truth {
        let at = case.results().find(|&at| case.result_name(at) == *name);
        match at.and_then(|at: ValueRef| chain.real.get(&at)) {
            Some(real) => {
                if let Err(why) = truth.check(real) {
                    unmet.push(format!("the truth of {name}: {why}"));
                }
            }
            None => unmet.push(format!("there is no truth of {name}")),
        }
    }
    ExpectationResult { met: unmet.is_empty(), unmet }
}
