//! The loop: every case of the plan that the ledger does not hold yet is judged, and its rows are written.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value, json};
use ulpian_spec::verdict::{CaseVerdict, ExecutorAtNode, Grade};
use ulpian_spec::{Case, ExecutorId, HostTensor, Outcome, ValueRef};

use super::CampaignError;
use super::criteria::{Difference, SORT_THRESHOLD, difference};
use super::ledger::Writer;
use super::plan::{Cases, Numbered, Plan};
use super::rows::{CaseRow, CaseRows, ExecutionRow, NodeRow};
use crate::Executors;
use crate::pipeline::{self, Witness};

/// What is told while a campaign runs.
pub trait Watch {
    /// `executor` is about to run on the case of this name.
    fn hears(&mut self, case: &str, executor: &ExecutorId);

    /// A case is in the ledger.
    fn recorded(&mut self, rows: &CaseRows);

    /// A worker says other things of itself than when the campaign began.
    fn other_environment(&mut self, name: &str);

    /// Should the campaign stop here?
    fn stop(&self) -> bool;
}

/// Judges what is left of the plan and returns how many cases that were.
///
/// # Errors
/// [`CampaignError`] where the ledger cannot be written. Nothing that happens to a case is an error.
pub fn run(
    ledger: &mut Writer,
    plan: &Plan,
    cases: &Cases<'_>,
    executors: &mut Executors,
    watch: &mut dyn Watch,
) -> Result<usize, CampaignError> {
    let parties: Vec<ExecutorId> = plan.executors.iter().filter_map(|text| text.parse().ok()).collect();
    let done = ledger.ledger().done_numbers()?;
    let mut facts = Map::new();
    let mut judged = 0;
    for number in (0..plan.cases).filter(|n| done.binary_search(n).is_err()) {
        if watch.stop() {
            break;
        }
        let start = Instant::now();
        let numbered = cases.make(number);
        let mut rows = one(number, numbered, &parties, plan, executors, watch);
        rows.seconds = start.elapsed().as_secs_f64();
        let now = executors.pool().environment_facts();
        for (name, said) in now.iter().filter(|(name, said)| facts.get(*name) != Some(said)) {
            if ledger.facts(name, &said.to_string())? {
                watch.other_environment(name);
            }
        }
        facts = now;
        ledger.record(&rows)?;
        judged += 1;
        watch.recorded(&rows);
    }
    Ok(judged)
}

fn one(
    number: usize,
    numbered: Numbered,
    parties: &[ExecutorId],
    plan: &Plan,
    executors: &mut Executors,
    watch: &mut dyn Watch,
) -> CaseRows {
    let Numbered { name, pattern, labels, case } = numbered;
    let mut row = CaseRow {
        number,
        name,
        pattern,
        labels: labels.unwrap_or_default().join(" "),
        edges: "[]".to_owned(),
        status: "judged".to_owned(),
        reason: None,
        cause: None,
    };
    let without = |row: CaseRow, status: &str, reason: String| CaseRows {
        case: CaseRow { status: status.to_owned(), reason: Some(reason), ..row },
        executions: Vec::new(),
        nodes: Vec::new(),
        verdict: None,
        seconds: 0.0,
    };
    let case = match case {
        Ok(case) => case,
        Err(reason) => return without(row, "invalid", reason),
    };
    if row.pattern.is_none() {
        let ops: Vec<&str> = case.nodes.iter().map(|n| n.op.kind().name()).collect();
        row.labels = ops.join(" ");
    }
    row.edges = edges(&case).to_string();
    let mut compared =
        Compared { case: &case, watch, first: BTreeMap::new(), differences: vec![None; parties.len()] };
    // A panic is a bug in Ulpian; it costs this case alone.
    let judged = catch_unwind(AssertUnwindSafe(|| {
        pipeline::judge(&case, parties, executors, plan.interventions, &mut compared)
    }));
    let differences = compared.differences;
    match judged {
        Ok(Ok(verdict)) => rows(row, &case, parties, verdict, &differences),
        Ok(Err(error)) => without(row, "failed", error.to_string()),
        Err(_) => without(row, "failed", "internal error".to_owned()),
    }
}

/// Each operand that another node made: `[from, to, argument]`.
fn edges(case: &Case) -> Value {
    let mut edges = Vec::new();
    for node in &case.nodes {
        for (argument, at) in node.op.operands() {
            if let ValueRef::Node { node: from, .. } = *at {
                edges.push(json!([case.nodes[from].id, node.id, argument]));
            }
        }
    }
    Value::Array(edges)
}

/// One party's differences from the first, by node result; of two compared before either is judged.
type Differences = BTreeMap<ValueRef, Difference>;

/// Compares what the parties return, as it comes.
struct Compared<'a> {
    case: &'a Case,
    watch: &'a mut dyn Watch,
    first: BTreeMap<ValueRef, Arc<HostTensor>>,
    differences: Vec<Option<Differences>>,
}

impl Witness for Compared<'_> {
    fn hears(&mut self, executor: &ExecutorId) {
        self.watch.hears(&self.case.name, executor);
    }

    fn heard(&mut self, place: usize, outcome: &Outcome) {
        let results = match outcome {
            Outcome::Ok(run) => &run.results,
            Outcome::Failed { before, .. } => &before.results,
            Outcome::Unavailable { .. } => return,
        };
        if place == 0 {
            self.first = results.clone();
            return;
        }
        let pairs = results.iter().filter_map(|(at, got)| Some((*at, difference(got, self.first.get(at)?))));
        self.differences[place] = Some(pairs.collect());
    }
}

fn rows(
    mut row: CaseRow,
    case: &Case,
    parties: &[ExecutorId],
    mut verdict: CaseVerdict,
    differences: &[Option<Differences>],
) -> CaseRows {
    row.cause = Some(verdict.verdict.cause.name().to_owned());
    // The facts of workers depend on which of them have run so far; the ledger keeps them apart.
    verdict.environment.retain(|_, fact| !fact.is_object());
    let executions = parties
        .iter()
        .enumerate()
        .map(|(place, id)| execution(row.number, case, place, &id.to_string(), &verdict, &differences[place]))
        .collect();
    let mut nodes = Vec::new();
    for (place, (report, at)) in verdict.nodes.iter().zip(case.results()).enumerate() {
        for (party, e) in report.executors.iter().enumerate().filter(|(_, e)| e.status == "ok") {
            let apart = differences[party].as_ref().and_then(|d| d.get(&at));
            nodes.push(NodeRow {
                case: row.number,
                place,
                node: report.node.clone(),
                executor: e.executor.clone(),
                op: report.op.clone(),
                dtype: report.dtype.clone(),
                class_mismatches: e.class_mismatches,
                local_ulp: e.local.as_ref().map(|d| d.max_ulp),
                local_abs: e.local.as_ref().map(|d| d.max_abs),
                bound_ratio: e.local.as_ref().map(|d| d.bound_ratio),
                accumulated_ulp: e.accumulated.as_ref().map(|d| d.max_ulp),
                accumulated_abs: e.accumulated.as_ref().map(|d| d.max_abs),
                condition: e.condition,
                difference: apart.map(|d| d.worst),
                mean_difference: apart.map(|d| d.mean),
            });
        }
    }
    // Nothing in a verdict fails to be JSON: its floats are written as text where JSON has no number for them.
    let line = serde_json::to_string(&verdict).unwrap_or_default();
    CaseRows { case: row, executions, nodes, verdict: Some(line), seconds: 0.0 }
}

fn execution(
    number: usize,
    case: &Case,
    place: usize,
    executor: &str,
    verdict: &CaseVerdict,
    differences: &Option<Differences>,
) -> ExecutionRow {
    let at_nodes: Vec<&ExecutorAtNode> = verdict.nodes.iter().map(|n| &n.executors[place]).collect();
    let not_ok = at_nodes.iter().find(|e| e.status == "failed" || e.status == "unavailable");
    let own = verdict.executors.iter().find(|e| e.executor == executor).map(|e| &e.verdict);
    let node = own.and_then(|v| v.at.as_ref()).map(|at| at.node.clone());
    let op = node.as_ref().and_then(|node| verdict.nodes.iter().find(|n| &n.node == node));
    let worst = |figure: fn(&ExecutorAtNode) -> Option<f64>| {
        at_nodes.iter().filter_map(|e| figure(e)).reduce(f64::max)
    };
    let mismatches: Vec<usize> = at_nodes.iter().filter_map(|e| e.class_mismatches).collect();
    let mismatches = (!mismatches.is_empty()).then(|| mismatches.iter().sum::<usize>());
    let bound_ratio = worst(|e| e.local.as_ref().map(|d| d.bound_ratio));
    let outputs = differences
        .as_ref()
        .and_then(|d| case.outputs.iter().filter_map(|at| d.get(at).copied()).reduce(Difference::join));
    ExecutionRow {
        case: number,
        place,
        executor: executor.to_owned(),
        status: not_ok.map_or("ok", |e| e.status.as_str()).to_owned(),
        reason: not_ok.and_then(|e| e.reason.clone()),
        cause: own.map(|v| v.cause.name().to_owned()),
        grade: own.map(|v| grade(v.grade).to_owned()),
        node,
        op: op.map(|n| n.op.clone()),
        because: own.map(|v| v.because.clone()),
        class_mismatches: mismatches,
        local_ulp: worst(|e| e.local.as_ref().map(|d| d.max_ulp)),
        bound_ratio,
        accumulated_ulp: worst(|e| e.accumulated.as_ref().map(|d| d.max_ulp)),
        difference: outputs.map(|d| d.worst),
        close_ratio: outputs.map(|d| d.close_ratio),
        sort: outputs.map(|d| d.worst > SORT_THRESHOLD),
        assert_close: outputs.map(|d| d.close_ratio > 1.0),
        bound: mismatches.map(|n| n > 0 || bound_ratio.is_some_and(|r| r > 1.0)),
    }
}

const fn grade(grade: Grade) -> &'static str {
    match grade {
        Grade::Refuted => "refuted",
        Grade::Consistent => "consistent",
        Grade::ConfirmedByIntervention => "confirmed-by-intervention",
        Grade::ConfirmedBitwise => "confirmed-bitwise",
    }
}
