//! What a campaign says of each op.

use std::collections::{BTreeMap, BTreeSet};

use super::chain::{self, Edge};
use super::summary::{Criterion, cause};
use crate::campaign::criteria::SORT_THRESHOLD;
use crate::campaign::rows::{CaseRow, ExecutionRow, NodeRow};

/// What is known of one op.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OpRow {
    /// Executions that were judged and whose chain has the op.
    pub executions: usize,
    /// Executions that ended without a result.
    pub failed: usize,
    /// Executions with a result of this op that is NaN or infinite where the truth is not, or the reverse.
    pub class: usize,
    /// Executions found by each criterion, in the order of [`Criterion::ALL`]: `sort` where a result of this op differs, as SORT
    /// counts; `assert_close` where the chain's outputs differ and the verdict names this op; `bound` where this op's own error
    /// is beyond it.
    pub found: [usize; 3],
    /// What the judge says of these.
    pub causes: [BTreeMap<String, usize>; 3],
    /// Executions whose verdict puts a fault down to this op, by cause.
    pub faults: BTreeMap<String, usize>,
    /// In chains.
    pub chains: Part,
    /// Alone, where the ledger of single ops is given.
    pub alone: Part,
}

/// How an op fares in one campaign (Figure 13).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Part {
    /// Mean over the op's results of the mean |a - b| against the first executor.
    pub difference: Option<f64>,
    /// For each criterion, the executions with this op in which it takes part in what is found, and all in which the criterion
    /// was measured. Takes part: for `sort`, a result differs and the op made it or one that led to it; for `assert_close`, the
    /// outputs are not close; for `bound`, its own error is beyond it.
    pub involved: [(usize, usize); 3],
}

/// One execution with its node results.
struct Heard<'a> {
    row: &'a ExecutionRow,
    nodes: Vec<&'a NodeRow>,
    edges: &'a [Edge],
}

impl Heard<'_> {
    fn ops(&self) -> BTreeSet<&str> {
        self.nodes.iter().map(|n| n.op.as_str()).collect()
    }

    /// The ops that take part in what the criterion finds; `None` where it was not measured.
    fn involved(&self, criterion: Criterion) -> Option<BTreeSet<&str>> {
        let found = criterion.found(self.row)?;
        Some(match criterion {
            Criterion::Sort => {
                let differing = self.nodes.iter().filter(|n| differs(n));
                let nodes: BTreeSet<&str> =
                    differing.flat_map(|n| chain::origins(self.edges, chain::node(&n.node))).collect();
                let takes_part = |n: &&&NodeRow| nodes.contains(chain::node(&n.node));
                self.nodes.iter().filter(takes_part).map(|n| n.op.as_str()).collect()
            }
            Criterion::AssertClose if found => self.ops(),
            Criterion::AssertClose => BTreeSet::new(),
            Criterion::Bound => self.nodes.iter().filter(|n| beyond(n)).map(|n| n.op.as_str()).collect(),
        })
    }
}

/// SORT's criterion at one result.
fn differs(node: &NodeRow) -> bool {
    node.difference.is_some_and(|d| d > SORT_THRESHOLD)
}

/// NaN or infinite where the truth is not, or the reverse: its distance is infinite. The sign of a zero is a class too, without
/// distance.
pub(super) fn class(node: &NodeRow) -> bool {
    node.class_mismatches.is_some_and(|n| n > 0) && node.local_ulp.is_some_and(f64::is_infinite)
}

/// A local error beyond the bound, or an element of another class.
pub(super) fn beyond(node: &NodeRow) -> bool {
    node.bound_ratio.is_some_and(|r| r > 1.0) || node.class_mismatches.is_some_and(|n| n > 0)
}

fn heard<'a>(
    executions: &'a [ExecutionRow],
    nodes: &'a [NodeRow],
    edges: &'a BTreeMap<usize, Vec<Edge>>,
) -> Vec<Heard<'a>> {
    let mut by_execution: BTreeMap<(usize, &str), Vec<&NodeRow>> = BTreeMap::new();
    for node in nodes {
        by_execution.entry((node.case, &node.executor)).or_default().push(node);
    }
    let execution = |row: &'a ExecutionRow| Heard {
        row,
        nodes: by_execution.get(&(row.case, row.executor.as_str())).cloned().unwrap_or_default(),
        edges: edges.get(&row.case).map_or(&[], Vec::as_slice),
    };
    executions.iter().map(execution).collect()
}

/// Every op of a campaign, without the comparison with single ops.
pub(super) fn by_op(
    cases: &[CaseRow],
    executions: &[ExecutionRow],
    nodes: &[NodeRow],
) -> BTreeMap<String, OpRow> {
    let edges: BTreeMap<usize, Vec<Edge>> = cases.iter().map(|c| (c.number, chain::edges(c))).collect();
    let labels: BTreeMap<usize, &str> = cases.iter().map(|c| (c.number, c.labels.as_str())).collect();
    let mut ops: BTreeMap<String, OpRow> = BTreeMap::new();
    for execution in heard(executions, nodes, &edges) {
        if execution.row.status == "failed" {
            let chain = labels.get(&execution.row.case).into_iter().flat_map(|l| l.split(' '));
            for op in chain.collect::<BTreeSet<_>>() {
                ops.entry(op.to_owned()).or_default().failed += 1;
            }
        }
        for op in execution.ops() {
            let row = ops.entry(op.to_owned()).or_default();
            row.executions += 1;
            row.class += usize::from(execution.nodes.iter().any(|n| n.op == op && class(n)));
            for (at, criterion) in Criterion::ALL.into_iter().enumerate() {
                let found = match criterion {
                    Criterion::Sort => execution.nodes.iter().any(|n| n.op == op && differs(n)),
                    Criterion::AssertClose => {
                        criterion.found(execution.row) == Some(true)
                            && execution.row.op.as_deref() == Some(op)
                    }
                    Criterion::Bound => execution.nodes.iter().any(|n| n.op == op && beyond(n)),
                };
                if found {
                    row.found[at] += 1;
                    *row.causes[at].entry(cause(execution.row)).or_default() += 1;
                }
                if let Some(involved) = execution.involved(criterion) {
                    let (n, of) = &mut row.chains.involved[at];
                    *n += usize::from(involved.contains(op));
                    *of += 1;
                }
            }
        }
        if let (Some(op), Some(cause)) = (&execution.row.op, super::summary::fault(execution.row)) {
            *ops.entry(op.clone()).or_default().faults.entry(cause.name().to_owned()).or_default() += 1;
        }
    }
    for (op, difference) in differences(nodes) {
        ops.entry(op).or_default().chains.difference = Some(difference);
    }
    ops
}

/// Mean over an op's results of the mean difference from the first executor, whose own results have none.
fn differences(nodes: &[NodeRow]) -> BTreeMap<String, f64> {
    let mut sums: BTreeMap<String, (f64, usize)> = BTreeMap::new();
    for node in nodes {
        let Some(difference) = node.mean_difference.filter(|d| d.is_finite()) else { continue };
        let (sum, n) = sums.entry(node.op.clone()).or_default();
        *sum += difference;
        *n += 1;
    }
    sums.into_iter().map(|(op, (sum, n))| (op, sum / n as f64)).collect()
}
