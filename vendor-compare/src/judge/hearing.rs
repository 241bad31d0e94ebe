//! The hearing of a case: parties, requests, answers, verdict.

use std::sync::Arc;

use ulpian_reference::{EvaluateError, Settings};
use ulpian_spec::verdict::CaseVerdict;
use ulpian_spec::{Case, ExecutorId, HostTensor, Op, Outcome, Run, ValueRef};

use super::chain::Shared;
use super::finding::Finding;
use super::interventions;
use super::local::{self, Heard, LocalTruths, same_inputs};
use super::matter::Matter;
use super::reason::{self, View};
use super::report;
use super::standing::{self, Standing};

/// Why there can be no hearing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JudgeError {
    /// The reference cannot give the truth of the case.
    #[error("case {case}: {source}")]
    Truth {
        /// The case's name.
        case: String,
        /// Why.
        source: EvaluateError,
    },
}

/// A run that the judge asks for: a case of one node on the inputs that an executor had there, under another switch.
#[derive(Debug, Clone)]
pub struct Request {
    /// Who should run it.
    pub executor: ExecutorId,
    /// What.
    pub case: Arc<Case>,
    /// Whose result it is to explain.
    pub for_executor: ExecutorId,
    /// At which node of the case heard.
    pub node: usize,
}

/// A party to the case.
pub(super) struct Party {
    /// Who.
    pub id: ExecutorId,
    /// `ok`, `unavailable` or `failed`.
    pub status: &'static str,
    /// Why it is not `ok`.
    pub reason: Option<String>,
    /// What it said.
    pub heard: Option<Heard>,
    /// Where it stands, by node.
    pub standings: Vec<(Standing, usize)>,
}

/// An answer to a request.
struct Answer {
    executor: ExecutorId,
    node: usize,
    op: Op<Arc<HostTensor>>,
    run: Result<Run, String>,
}

/// One case being heard.
pub struct Hearing {
    case: Arc<Case>,
    settings: Settings,
    shared: Shared,
    truths: LocalTruths,
    parties: Vec<Party>,
    matters: Option<Vec<Matter>>,
    answers: Vec<Answer>,
}

impl Hearing {
    /// Opens the hearing: computes the truths of the case.
    ///
    /// # Errors
    /// [`JudgeError::Truth`] where the reference cannot evaluate the case.
    pub fn new(case: &Case, settings: &Settings) -> Result<Hearing, JudgeError> {
        let shared = Shared::of(case, settings)
            .map_err(|source| JudgeError::Truth { case: case.name.clone(), source })?;
        Ok(Hearing {
            case: Arc::new(case.clone()),
            settings: settings.clone(),
            shared,
            truths: LocalTruths::default(),
            parties: Vec::new(),
            matters: None,
            answers: Vec::new(),
        })
    }

    /// Hears a party. An unavailable one is listed and judged nowhere, one that failed at the nodes before. Every party is to be heard before the first
    /// call of [`Hearing::wants`]: hearing one more opens every question anew, and only answers are kept.
    pub fn hear(&mut self, executor: ExecutorId, outcome: Outcome) {
        let (mut status, mut reason, run) = match outcome {
            Outcome::Unavailable { reason, remedy } => ("unavailable", Some(join(&reason, &remedy)), None),
            Outcome::Failed { reason, before } => {
                ("failed", Some(reason), (!before.results.is_empty()).then_some(before))
            }
            Outcome::Ok(run) => ("ok", None, Some(run)),
        };
        let heard =
            run.map(|run| local::hear(&self.case, &run, &mut self.shared, &mut self.truths, &self.settings));
        let heard = heard.transpose().unwrap_or_else(|why| {
            status = "failed";
            reason.get_or_insert_with(|| format!("it cannot be judged: {why}"));
            None
        });
        let standings = heard.as_ref().map_or_else(Vec::new, |heard| {
            (0..self.case.nodes.len()).map(|node| standing::of_node(&self.case, heard, node)).collect()
        });
        self.parties.push(Party { id: executor, status, reason, heard, standings });
        self.matters = None;
    }

    /// The next run that would help to explain something; `None` when nothing is left to ask.
    pub fn wants(&mut self) -> Option<Request> {
        if self.matters.is_none() {
            self.matters = Some(self.open_matters());
        }
        let count = self.matters.as_ref().map_or(0, Vec::len);
        for m in 0..count {
            self.share(m);
            loop {
                let matter = &mut self.matters.as_mut()?[m];
                let party = &self.parties[matter.party];
                if matter.is_settled(&party.id) {
                    matter.plan.clear();
                }
                let Some(executor) = matter.plan.pop_front() else { break };
                let node = matter.node;
                let op = party.heard.as_ref()?.nodes[node].op.clone()?;
                if let Some((run, at_node)) = self.known(&executor, node, &op) {
                    self.record(m, executor, run.as_ref().map_err(String::clone), at_node);
                    continue;
                }
                return Some(Request {
                    case: Arc::new(interventions::single_node(&self.case, node, &op)),
                    for_executor: party.id.clone(),
                    executor,
                    node,
                });
            }
        }
        None
    }

    /// Takes the answer to a request.
    pub fn answer(&mut self, request: &Request, outcome: Outcome) {
        let run = match outcome {
            Outcome::Ok(run) => Ok(run),
            Outcome::Unavailable { reason, remedy } => Err(join(&reason, &remedy)),
            Outcome::Failed { reason, .. } => Err(reason),
        };
        let Some(matters) = &self.matters else { return };
        let found = matters
            .iter()
            .position(|m| m.node == request.node && self.parties[m.party].id == request.for_executor);
        let Some(m) = found else { return };
        let op = self.parties[matters[m].party].heard.as_ref().and_then(|h| h.nodes[request.node].op.clone());
        self.record(m, request.executor.clone(), run.as_ref().map_err(String::clone), 0);
        if let Some(op) = op {
            self.answers.push(Answer { executor: request.executor.clone(), node: request.node, op, run });
        }
    }

    /// The verdict on what was heard. `environment` is passed through.
    pub fn verdict(&mut self, environment: serde_json::Map<String, serde_json::Value>) -> CaseVerdict {
        if self.matters.is_none() {
            self.matters = Some(self.open_matters());
        }
        let findings: Vec<Option<Vec<Finding>>> = (0..self.parties.len()).map(|p| self.findings(p)).collect();
        report::verdict(
            &self.case,
            &self.shared.chain,
            &self.parties,
            self.matters.as_deref().unwrap_or_default(),
            &findings,
            environment,
        )
    }

    fn open_matters(&self) -> Vec<Matter> {
        let mut matters = Vec::new();
        for (p, party) in self.parties.iter().enumerate() {
            let Some(heard) = &party.heard else { continue };
            for (node, &standing) in party.standings.iter().enumerate() {
                let fused = party.id.key("compile").is_some() && self.case.nodes.len() > 1;
                matters.extend(Matter::open(p, &party.id, node, standing, &heard.nodes[node], fused));
            }
        }
        matters
    }

    /// Lets matter `m` have the trials of an earlier one about the same bits on the same inputs, where a switch leads both to the same
    /// code: their executors differ in nothing but threads and rows.
    fn share(&mut self, m: usize) {
        let Some(matters) = &self.matters else { return };
        let matter = &matters[m];
        if !matter.trials.is_empty() || matter.plan.is_empty() {
            return;
        }
        let at = |matter: &Matter| self.parties[matter.party].heard.as_ref().map(|h| &h.nodes[matter.node]);
        let code = |matter: &Matter| {
            let mut id = self.parties[matter.party].id.clone();
            id.keys.retain(|key, _| key != "threads" && key != "batch");
            id
        };
        let earlier = matters[..m].iter().find(|e| {
            let (Some(a), Some(b)) = (at(e), at(matter)) else { return false };
            e.node == matter.node
                && code(e) == code(matter)
                && !e.trials.is_empty()
                && e.plan.is_empty()
                && matches!((&a.op, &b.op), (Some(x), Some(y)) if same_inputs(x, y))
                && a.results.iter().zip(&b.results).all(|(x, y)| match (x, y) {
                    (Some(x), Some(y)) => x.same_bits(y),
                    (x, y) => x.is_none() && y.is_none(),
                })
        });
        if let Some(trials) = earlier.map(|e| e.trials.clone())
            && let Some(matters) = &mut self.matters
        {
            matters[m].trials = trials;
            matters[m].plan.clear();
        }
    }

    /// What is already known of a run of one node, and the node's position in it.
    fn known(
        &self,
        executor: &ExecutorId,
        node: usize,
        op: &Op<Arc<HostTensor>>,
    ) -> Option<(Result<Run, String>, usize)> {
        if let Some(a) =
            self.answers.iter().find(|a| &a.executor == executor && a.node == node && same_inputs(&a.op, op))
        {
            return Some((a.run.clone(), 0));
        }
        let party = self.parties.iter().find(|p| &p.id == executor)?;
        if executor.key("compile").is_some() && self.case.nodes.len() > 1 {
            return None;
        }
        let Some(heard) = &party.heard else {
            return Some((Err(party.reason.clone().unwrap_or_default()), node));
        };
        let at = &heard.nodes[node];
        if !at.op.as_ref().is_some_and(|other| same_inputs(op, other)) {
            return None;
        }
        if let Some(reason) = party.reason.as_ref().filter(|_| at.results.iter().all(Option::is_none)) {
            return Some((Err(reason.clone()), node));
        }
        let results = at
            .results
            .iter()
            .enumerate()
            .filter_map(|(output, r)| Some((ValueRef::Node { node, output }, r.clone()?)))
            .collect();
        Some((Ok(Run { results, ..Run::default() }), node))
    }

    fn record(&mut self, m: usize, executor: ExecutorId, run: Result<&Run, String>, node: usize) {
        let Some(matters) = &mut self.matters else { return };
        let matter = &mut matters[m];
        if let Some(heard) = &self.parties[matter.party].heard {
            matter.record(executor, run, node, &heard.nodes[matter.node]);
        }
    }

    /// The findings about party `p`, one a node at most; `None` where it was not heard.
    fn findings(&self, p: usize) -> Option<Vec<Finding>> {
        let party = &self.parties[p];
        let heard = party.heard.as_ref()?;
        let matters = self.matters.as_deref().unwrap_or_default();
        Some(
            party
                .standings
                .iter()
                .enumerate()
                .filter_map(|(node, &(standing, output))| {
                    let matter = matters.iter().find(|m| m.party == p && m.node == node);
                    reason::find(&View {
                        case: &self.case,
                        id: &party.id,
                        heard,
                        node,
                        output,
                        standing,
                        matter,
                    })
                })
                .collect(),
        )
    }
}

fn join(reason: &str, remedy: &str) -> String {
    if remedy.is_empty() { reason.to_owned() } else { format!("{reason}; {remedy}") }
}
