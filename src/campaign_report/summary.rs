//! The figures behind tables and plots.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ulpian_spec::OpKind;
use ulpian_spec::verdict::Cause;

use super::ReportError;
use crate::campaign::Ledger;
use crate::campaign::findings::{self, Finding};
use crate::campaign::rows::{CaseRow, ExecutionRow, FindingRow, NodeRow};
use crate::records::GenerateSummary;

/// By what an execution counts as found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Criterion {
    /// |a - b| above 1e-3 against the first executor (SORT).
    Sort,
    /// `torch.testing.assert_close` against the first executor.
    AssertClose,
    /// Outside what the precision allows, against the truth.
    Bound,
}

impl Criterion {
    /// All of them.
    pub const ALL: [Criterion; 3] = [Criterion::Sort, Criterion::AssertClose, Criterion::Bound];

    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Criterion::Sort => "sort",
            Criterion::AssertClose => "assert_close",
            Criterion::Bound => "bound",
        }
    }

    fn found(self, execution: &ExecutionRow) -> bool {
        let by = match self {
            Criterion::Sort => execution.sort,
            Criterion::AssertClose => execution.assert_close,
            Criterion::Bound => execution.bound,
        };
        by == Some(true)
    }
}

/// What is known of one op.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OpRow {
    /// Executions whose chain has the op.
    pub executions: usize,
    /// Of these, the ones found by each criterion, in the order of [`Criterion::ALL`].
    pub involved: [usize; 3],
    /// Executions found by each criterion whose verdict names this op.
    pub found: [usize; 3],
    /// Executions with an element of another class (NaN, infinity) at this op.
    pub class: usize,
    /// Executions that failed.
    pub failed: usize,
    /// The causes of the executions that SORT's criterion finds.
    pub sort_causes: BTreeMap<String, usize>,
    /// Mean over nodes of this op of the mean |a - b| against the first executor: in chains, and alone.
    pub difference: [Option<f64>; 2],
}

/// Accumulated error of one executor at one place of a chain.
#[derive(Debug, Clone, PartialEq)]
pub struct Depth {
    /// The executor.
    pub executor: String,
    /// For each place from the first node, the median over chains of the worst accumulated error, in ulp.
    pub medians: Vec<f64>,
}

/// The share of valid inputs of one generator.
#[derive(Debug, Clone, PartialEq)]
pub struct Validity {
    /// The generator.
    pub generator: String,
    /// (valid, all) by op.
    pub by_op: BTreeMap<String, (usize, usize)>,
}

/// A finding with the nodes of its worst execution.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    /// The finding.
    pub finding: Finding,
    /// The node results of that execution.
    pub nodes: Vec<NodeRow>,
    /// (from, to, argument) by node ids.
    pub edges: Vec<(String, String, String)>,
    /// The small case that shows it, where `campaign findings` has made one.
    pub small: Option<FindingRow>,
}

impl Shown {
    /// The name of its script's file, where there is one: `campaign findings` writes it.
    pub fn script(&self) -> Option<String> {
        self.small.as_ref().filter(|row| row.repro.is_some()).map(|row| format!("{}.py", row.name))
    }
}

/// Everything a report shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The ledger's name.
    pub name: String,
    /// The executors, the first of which the others are compared with.
    pub executors: Vec<String>,
    /// Cases by status.
    pub cases: BTreeMap<String, usize>,
    /// Executions by status.
    pub executions: BTreeMap<String, usize>,
    /// Executions by cause.
    pub causes: BTreeMap<String, usize>,
    /// Executions found by each criterion, and of these by cause.
    pub criteria: Vec<(Criterion, usize, BTreeMap<String, usize>)>,
    /// By op, in the order of the list of ops.
    pub ops: Vec<(String, OpRow)>,
    /// Growth of error along chains.
    pub growth: Vec<Depth>,
    /// The share of valid inputs.
    pub validity: Vec<Validity>,
    /// The findings, the worst first.
    pub findings: Vec<Shown>,
    /// Facts about the machine and its libraries.
    pub environment: Vec<(String, String)>,
    /// The campaign's plan ran to its end.
    pub complete: bool,
}

impl Summary {
    /// Reads a ledger, and one of single ops beside it.
    ///
    /// # Errors
    /// [`ReportError::Campaign`] where a ledger cannot be read.
    pub fn new(ledger: &Ledger, single: Option<&Ledger>) -> Result<Summary, ReportError> {
        let plan = ledger.plan()?;
        let (cases, executions, nodes) = (ledger.cases()?, ledger.executions()?, ledger.nodes()?);
        let mut ops = by_op(&cases, &executions, &nodes);
        for (op, difference) in differences(&nodes, &plan.executors) {
            ops.entry(op).or_default().difference[0] = Some(difference);
        }
        if let Some(single) = single {
            let executors = single.plan()?.executors;
            for (op, difference) in differences(&single.nodes()?, &executors) {
                ops.entry(op).or_default().difference[1] = Some(difference);
            }
        }
        let order = |name: &str| OpKind::ALL.iter().position(|op| op.name() == name);
        let mut ops: Vec<_> = ops.into_iter().collect();
        ops.sort_by_key(|(name, _)| order(name));
        let criteria = Criterion::ALL.map(|criterion| {
            let found = || executions.iter().filter(|e| criterion.found(e));
            (criterion, found().count(), count(found().map(cause)))
        });
        let file = ledger.file();
        Ok(Summary {
            name: file.file_stem().unwrap_or(file.as_os_str()).to_string_lossy().into_owned(),
            complete: cases.len() == plan.cases,
            executors: plan.executors.clone(),
            cases: count(cases.iter().map(|c| c.status.clone())),
            executions: count(executions.iter().map(|e| e.status.clone())),
            causes: count(executions.iter().filter(|e| e.status == "ok").map(cause)),
            criteria: criteria.into(),
            ops,
            growth: growth(&cases, &nodes, &plan.executors),
            validity: Vec::new(),
            findings: shown(findings::group(ledger)?, &nodes, ledger.findings()?),
            environment: ledger.environment()?,
        })
    }

    /// Adds what `generate --json` printed, by the generator's name.
    ///
    /// # Errors
    /// [`ReportError::Io`], or [`ReportError::Validity`] where the last line is something else.
    pub fn add_validity(&mut self, generator: &str, file: &Path) -> Result<(), ReportError> {
        let text = std::fs::read_to_string(file)
            .map_err(|source| ReportError::Io { file: file.to_owned(), source })?;
        let last = text.lines().last().unwrap_or_default();
        let summary: GenerateSummary = serde_json::from_str(last)
            .map_err(|e| ReportError::Validity { file: file.to_owned(), message: e.to_string() })?;
        self.validity.push(Validity { generator: generator.to_owned(), by_op: summary.by_op });
        Ok(())
    }
}

fn count(names: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for name in names {
        *counts.entry(name).or_default() += 1;
    }
    counts
}

fn cause(execution: &ExecutionRow) -> String {
    execution.cause.clone().unwrap_or_else(|| Cause::Inconclusive.name().to_owned())
}

fn by_op(cases: &[CaseRow], executions: &[ExecutionRow], nodes: &[NodeRow]) -> BTreeMap<String, OpRow> {
    let mut chains: BTreeMap<usize, BTreeSet<&str>> = BTreeMap::new();
    let mut class: BTreeSet<(usize, &str, &str)> = BTreeSet::new();
    for node in nodes {
        chains.entry(node.case).or_default().insert(&node.op);
        if node.class_mismatches.is_some_and(|n| n > 0) {
            class.insert((node.case, &node.executor, &node.op));
        }
    }
    for case in cases {
        if let std::collections::btree_map::Entry::Vacant(empty) = chains.entry(case.number) {
            empty.insert(case.labels.split(' ').filter(|label| OpKind::from_name(label).is_some()).collect());
        }
    }
    let mut ops: BTreeMap<String, OpRow> = BTreeMap::new();
    for execution in executions {
        let chain = chains.get(&execution.case).into_iter().flatten();
        let found = Criterion::ALL.map(|criterion| criterion.found(execution));
        for &op in chain {
            let row = ops.entry(op.to_owned()).or_default();
            row.executions += 1;
            row.failed += usize::from(execution.status == "failed");
            row.class += usize::from(class.contains(&(execution.case, execution.executor.as_str(), op)));
            for (involved, found) in row.involved.iter_mut().zip(found) {
                *involved += usize::from(found);
            }
        }
        let Some(op) = &execution.op else { continue };
        let row = ops.entry(op.clone()).or_default();
        for (named, found) in row.found.iter_mut().zip(found) {
            *named += usize::from(found);
        }
        if Criterion::Sort.found(execution) {
            *row.sort_causes.entry(cause(execution)).or_default() += 1;
        }
    }
    ops
}

/// Mean over an op's nodes of the mean difference from the first executor, that executor's own nodes left out.
fn differences(nodes: &[NodeRow], executors: &[String]) -> BTreeMap<String, f64> {
    let mut sums: BTreeMap<String, (f64, usize)> = BTreeMap::new();
    for node in nodes {
        let Some(difference) = node.mean_difference.filter(|d| d.is_finite()) else { continue };
        if executors.first() == Some(&node.executor) {
            continue;
        }
        let (sum, n) = sums.entry(node.op.clone()).or_default();
        *sum += difference;
        *n += 1;
    }
    sums.into_iter().map(|(op, (sum, n))| (op, sum / n as f64)).collect()
}

/// Median accumulated error by place in the chain, over chains of more than one node.
fn growth(cases: &[CaseRow], nodes: &[NodeRow], executors: &[String]) -> Vec<Depth> {
    let chains: BTreeSet<usize> =
        cases.iter().filter(|c| c.labels.contains(' ')).map(|case| case.number).collect();
    executors
        .iter()
        .map(|executor| {
            let mut by_place: Vec<Vec<f64>> = Vec::new();
            for node in nodes.iter().filter(|n| n.executor == *executor && chains.contains(&n.case)) {
                let Some(ulp) = node.accumulated_ulp.filter(|u| u.is_finite()) else { continue };
                if by_place.len() <= node.place {
                    by_place.resize(node.place + 1, Vec::new());
                }
                by_place[node.place].push(ulp);
            }
            let medians = by_place.iter_mut().map_while(|errors| median(errors)).collect();
            Depth { executor: executor.clone(), medians }
        })
        .filter(|depth| !depth.medians.is_empty())
        .collect()
}

fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn shown(findings: Vec<Finding>, nodes: &[NodeRow], small: Vec<FindingRow>) -> Vec<Shown> {
    let mut small: BTreeMap<(usize, usize), FindingRow> =
        small.into_iter().map(|row| ((row.case, row.place), row)).collect();
    findings
        .into_iter()
        .map(|finding| {
            let here = |n: &&NodeRow| n.case == finding.case.number && n.executor == finding.worst.executor;
            let edges = serde_json::from_str(&finding.case.edges).unwrap_or_default();
            let small = small.remove(&(finding.case.number, finding.worst.place));
            Shown { nodes: nodes.iter().filter(here).cloned().collect(), edges, small, finding }
        })
        .collect()
}
