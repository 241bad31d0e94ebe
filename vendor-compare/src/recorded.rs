//! `recorded:NAME`: what a case says that somebody saw.

use std::sync::Arc;

use ulpian_spec::{Case, Executor, ExecutorId, Outcome, Run};

/// A recorded party.
#[derive(Debug, Clone)]
pub struct Recorded {
    id: ExecutorId,
}

impl Recorded {
    /// The party whose observations bear this name.
    pub fn new(name: &str) -> Recorded {
        Recorded { id: ExecutorId::new("recorded", name) }
    }
}

impl Executor for Recorded {
    fn id(&self) -> &ExecutorId {
        &self.id
    }

    fn run(&mut self, case: &Case) -> Outcome {
        let seen = case.observed.iter().filter(|o| o.executor == self.id.variant);
        let run = Run { results: seen.map(|o| (o.at, Arc::clone(&o.tensor))).collect(), ..Run::default() };
        if run.results.is_empty() {
            let parties = case.recorded_parties().join(", ");
            return Outcome::Unavailable {
                reason: format!("case {} holds no observation by `{}`", case.name, self.id.variant),
                remedy: if parties.is_empty() {
                    "add what was seen to the case's `observed`".to_owned()
                } else {
                    format!("its recorded parties are: {parties}")
                },
            };
        }
        Outcome::Ok(run)
    }
}
