//! A verdict as the rows of a ledger.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use ulpian_spec::verdict::{CaseVerdict, ExecutorAtNode, Grade};
use ulpian_spec::{Case, ExecutorId, Outcome, ValueRef};

use super::criteria::{Difference, SORT_THRESHOLD, difference};
use super::rows::{CaseRow, CaseRows, ExecutionRow, NodeRow};

/// Each operand that another node made: `[from, to, argument]`.
pub(super) fn edges(case: &Case) -> Value {
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
pub(super) type Differences = BTreeMap<ValueRef, Difference>;

/// The differences of every party from the first; `None` for the first itself, and where there is nothing to compare.
pub(super) fn differences<'a>(outcomes: &'a [Outcome]) -> Vec<Option<Differences>> {
    let results = |outcome: &'a Outcome| match outcome {
        Outcome::Ok(run) => Some(&run.results),
        Outcome::Failed { before, .. } => Some(&before.results),
        Outcome::Unavailable { .. } => None,
    };
    let first = outcomes.first().and_then(results);
    let from_first = |(place, outcome)| {
        let got = results(outcome).filter(|_| place > 0)?;
        let pairs = got.iter().filter_map(|(at, got)| Some((*at, difference(got, first?.get(at)?))));
        Some(pairs.collect())
    };
    outcomes.iter().enumerate().map(from_first).collect()
}

/// The rows of a judged case.
pub(super) fn rows(
    mut row: CaseRow,
    case: &Case,
    parties: &[ExecutorId],
    verdict: CaseVerdict,
    differences: &[Option<Differences>],
) -> CaseRows {
    row.cause = Some(verdict.verdict.cause.name().to_owned());
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
