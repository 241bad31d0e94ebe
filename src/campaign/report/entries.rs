//! Findings as the page lists them: one entry for each pattern, op and cause, with the executors that share it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use ulpian_spec::verdict::Cause;

use super::chain::{self, Edge};
use super::ops;
use super::summary::fault;
use crate::campaign::findings::Finding;
use crate::campaign::rows::{ExecutionRow, FindingRow, NodeRow};

/// Executions that one pattern, op and cause have in common.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The pattern's id, where the cases were generated for one.
    pub pattern: Option<usize>,
    /// The labels of the pattern, or the ops of the case; blanks between them.
    pub labels: String,
    /// The op at fault.
    pub op: String,
    /// The cause.
    pub cause: Cause,
    /// A finding for each executor, the worst first; one at least.
    pub findings: Vec<Shown>,
}

impl Entry {
    /// The worst error of the node at fault, as a share of its bound.
    pub fn ratio(&self) -> Option<f64> {
        self.findings.iter().filter_map(Shown::ratio).max_by(f64::total_cmp)
    }

    /// Executions in all.
    pub fn executions(&self) -> usize {
        self.findings.iter().map(|shown| shown.finding.executions).sum()
    }

    /// Elements are NaN or infinite where the truth is not, or the reverse.
    pub fn class(&self) -> bool {
        self.findings.iter().any(|s| s.at_fault().is_some_and(ops::class))
    }

    /// The ops along the data flow.
    pub fn flow(&self) -> String {
        let Some(shown) = self.findings.first() else { return self.labels.clone() };
        let nodes = shown.nodes.iter().filter(|n| !n.node.contains('.'));
        chain::flow(&shown.edges, nodes.map(|n| (n.node.as_str(), n.op.as_str())))
    }

    /// A name for links.
    pub fn name(&self) -> String {
        self.findings.first().map(|shown| shown.finding.name()).unwrap_or_default()
    }
}

/// A finding with the nodes of its worst execution.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    /// The finding.
    pub finding: Finding,
    /// The node results of that execution.
    pub nodes: Vec<NodeRow>,
    /// The edges between them.
    pub edges: Vec<Edge>,
    /// The small case that shows it, where `campaign findings` has made one.
    pub small: Option<FindingRow>,
}

impl Shown {
    /// The result that the verdict names.
    pub fn at_fault(&self) -> Option<&NodeRow> {
        let named = self.finding.worst.node.as_deref()?;
        self.nodes.iter().find(|n| n.node == named || chain::node(&n.node) == named)
    }

    /// The error of the node at fault, as a share of its bound.
    pub fn ratio(&self) -> Option<f64> {
        self.at_fault().map_or(self.finding.worst.bound_ratio, |node| node.bound_ratio)
    }
}

/// The faults of one op and cause over all patterns: the page's answer in short.
#[derive(Debug, Clone, PartialEq)]
pub struct Kind {
    /// The cause.
    pub cause: Cause,
    /// The op.
    pub op: String,
    /// Executions.
    pub executions: usize,
    /// Patterns that show it.
    pub patterns: usize,
    /// Executors that show it, in the plan's order.
    pub executors: Vec<String>,
    /// Worst error of the op as a share of its bound.
    pub ratio: Option<f64>,
    /// Executions in which the op's result is NaN or infinite where the truth is not, or the reverse.
    pub class: usize,
    /// The judge's explanations, the most frequent first, with how often each was given.
    pub because: Vec<(String, usize)>,
}

/// The findings as entries, the worst first.
pub(super) fn entries(findings: Vec<Finding>, nodes: &[NodeRow], small: Vec<FindingRow>) -> Vec<Entry> {
    let mut small: BTreeMap<(usize, usize), FindingRow> =
        small.into_iter().map(|row| ((row.case, row.place), row)).collect();
    let wanted: BTreeSet<(usize, &str)> =
        findings.iter().map(|f| (f.case.number, f.worst.executor.as_str())).collect();
    let mut by_execution: BTreeMap<(usize, &str), Vec<NodeRow>> = BTreeMap::new();
    for node in nodes.iter().filter(|n| wanted.contains(&(n.case, n.executor.as_str()))) {
        by_execution.entry((node.case, &node.executor)).or_default().push(node.clone());
    }
    let mut entries: Vec<Entry> = Vec::new();
    let mut places: BTreeMap<(Option<usize>, String, String, Cause), usize> = BTreeMap::new();
    for finding in &findings {
        let shown = Shown {
            nodes: by_execution
                .get(&(finding.case.number, finding.worst.executor.as_str()))
                .cloned()
                .unwrap_or_default(),
            edges: chain::edges(&finding.case),
            small: small.remove(&(finding.case.number, finding.worst.place)),
            finding: finding.clone(),
        };
        let key = (finding.pattern, finding.labels.clone(), finding.op.clone(), finding.cause);
        let at = *places.entry(key).or_insert_with(|| {
            entries.push(Entry {
                pattern: finding.pattern,
                labels: finding.labels.clone(),
                op: finding.op.clone(),
                cause: finding.cause,
                findings: Vec::new(),
            });
            entries.len() - 1
        });
        entries[at].findings.push(shown);
    }
    let ratio = |r: Option<f64>| r.unwrap_or(0.0);
    for entry in &mut entries {
        entry.findings.sort_by(|a, b| ratio(b.ratio()).total_cmp(&ratio(a.ratio())));
    }
    entries.sort_by(|a, b| b.class().cmp(&a.class()).then(ratio(b.ratio()).total_cmp(&ratio(a.ratio()))));
    entries
}

/// A kind while it is counted.
struct Tally {
    kind: Kind,
    parties: BTreeSet<usize>,
    because: BTreeMap<String, usize>,
}

/// The faults by op and cause, the most frequent first.
pub(super) fn kinds(
    executions: &[ExecutionRow],
    nodes: &[NodeRow],
    entries: &[Entry],
    executors: &[String],
) -> Vec<Kind> {
    let at: BTreeMap<(usize, &str, &str), &NodeRow> =
        nodes.iter().map(|n| ((n.case, n.executor.as_str(), n.node.as_str()), n)).collect();
    let mut kinds: BTreeMap<(Cause, &str), Tally> = BTreeMap::new();
    for row in executions {
        let (Some(cause), Some(op)) = (fault(row), row.op.as_deref()) else { continue };
        let Tally { kind, parties, because } = kinds.entry((cause, op)).or_insert_with(|| Tally {
            kind: Kind {
                cause,
                op: op.to_owned(),
                executions: 0,
                patterns: entries.iter().filter(|e| e.cause == cause && e.op == op).count(),
                executors: Vec::new(),
                ratio: None,
                class: 0,
                because: Vec::new(),
            },
            parties: BTreeSet::new(),
            because: BTreeMap::new(),
        });
        let node = row.node.as_deref().and_then(|n| at.get(&(row.case, row.executor.as_str(), n)));
        let ratio = node.and_then(|n| n.bound_ratio);
        kind.ratio = [kind.ratio, ratio].into_iter().flatten().max_by(f64::total_cmp);
        kind.class += usize::from(node.is_some_and(|n| ops::class(n)));
        kind.executions += 1;
        parties.insert(row.place);
        if let Some(text) = &row.because {
            *because.entry(explanation(text).to_owned()).or_default() += 1;
        }
    }
    let mut kinds: Vec<Kind> = kinds
        .into_values()
        .map(|Tally { mut kind, parties, because }| {
            kind.executors = parties.iter().filter_map(|&p| executors.get(p).cloned()).collect();
            kind.because = because.into_iter().collect();
            kind.because.sort_by_key(|(_, n)| Reverse(*n));
            kind
        })
        .collect();
    kinds.sort_by_key(|kind| Reverse(kind.executions));
    kinds
}

/// What follows the figures of one execution in the judge's sentence.
fn explanation(because: &str) -> &str {
    because.split_once(": ").map_or(because, |(_, why)| why)
}
