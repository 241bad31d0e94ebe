//! The figures behind tables and plots.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ulpian_mining::Values;
use ulpian_mining::generate::baseline::Baseline;
use ulpian_spec::OpKind;
use ulpian_spec::verdict::Cause;

use super::ReportError;
use super::chain;
use super::entries::{self, Entry, Kind};
use super::ops::{self, OpRow};
use crate::campaign::findings;
use crate::campaign::rows::{CaseRow, ExecutionRow, NodeRow};
use crate::campaign::{Ledger, Source};
use crate::generation::Recipe;
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

    /// Does it find this execution? `None` where it was not measured.
    pub const fn found(self, execution: &ExecutionRow) -> Option<bool> {
        match self {
            Criterion::Sort => execution.sort,
            Criterion::AssertClose => execution.assert_close,
            Criterion::Bound => execution.bound,
        }
    }
}

/// Every cause, the innocent ones first.
pub(super) const CAUSES: [Cause; 9] = [
    Cause::Agree,
    Cause::Rounding,
    Cause::Conditioning,
    Cause::Unspecified,
    Cause::Inconclusive,
    Cause::Framework,
    Cause::Vendor,
    Cause::Hardware,
    Cause::Defect,
];

/// How one executor fared.
#[derive(Debug, Clone, PartialEq)]
pub struct Party {
    /// The executor.
    pub executor: String,
    /// Its judged executions by cause.
    pub causes: BTreeMap<String, usize>,
    /// Why it gave no result: (`unavailable` or `failed`, reason, executions), the most frequent first.
    pub silent: Vec<(String, String, usize)>,
}

/// Accumulated error of one executor along chains.
#[derive(Debug, Clone, PartialEq)]
pub struct Growth {
    /// The executor.
    pub executor: String,
    /// By depth, from the first node.
    pub steps: Vec<Step>,
}

/// Medians over the results of one depth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// How many results there are.
    pub results: usize,
    /// Worst accumulated error, in ulp.
    pub ulp: f64,
    /// Worst accumulated error, absolute.
    pub absolute: f64,
}

/// The share of valid inputs of one generator.
#[derive(Debug, Clone, PartialEq)]
pub struct Validity {
    /// The generator.
    pub generator: String,
    /// (valid, all) by op, or by size where a pattern has several.
    pub by_op: BTreeMap<String, (usize, usize)>,
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
    /// Cases of the plan.
    pub planned: usize,
    /// Patterns that have cases.
    pub patterns: usize,
    /// Executions by status.
    pub executions: BTreeMap<String, usize>,
    /// Judged executions by cause.
    pub causes: BTreeMap<String, usize>,
    /// Executions found by each criterion, all in which it was measured, and the found ones by cause.
    pub criteria: Vec<(Criterion, usize, usize, BTreeMap<String, usize>)>,
    /// The executors.
    pub parties: Vec<Party>,
    /// Why cases were not judged, with how often.
    pub unjudged: Vec<(String, usize)>,
    /// By op, in the order of the list of ops.
    pub ops: Vec<(String, OpRow)>,
    /// The name of the ledger of single ops, where there is one.
    pub single: Option<String>,
    /// Growth of error along chains.
    pub growth: Vec<Growth>,
    /// The share of valid inputs.
    pub validity: Vec<Validity>,
    /// The faults by op and cause.
    pub kinds: Vec<Kind>,
    /// The findings, the worst first.
    pub entries: Vec<Entry>,
    /// Facts about the machine and its libraries.
    pub environment: Vec<(String, String)>,
    /// Ulpian's version.
    pub ulpian: String,
    /// Seconds of work, all cases together.
    pub seconds: f64,
}

impl Summary {
    /// Reads the ledger of a campaign.
    ///
    /// # Errors
    /// [`ReportError::Campaign`] where it cannot be read.
    pub fn new(ledger: &Ledger) -> Result<Summary, ReportError> {
        let plan = ledger.plan()?;
        let (cases, executions, nodes) = (ledger.cases()?, ledger.executions()?, ledger.nodes()?);
        let order = |name: &str| OpKind::ALL.iter().position(|op| op.name() == name);
        let mut ops: Vec<_> = ops::by_op(&cases, &executions, &nodes).into_iter().collect();
        ops.sort_by_key(|(name, _)| order(name));
        let criteria = Criterion::ALL.map(|criterion| {
            let found = || executions.iter().filter(|e| criterion.found(e) == Some(true));
            let measured = executions.iter().filter(|e| criterion.found(e).is_some()).count();
            (criterion, found().count(), measured, count(found().map(cause)))
        });
        let entries = entries::entries(findings::group(ledger)?, &nodes, ledger.findings()?);
        let reason = |c: &CaseRow| {
            (c.status != "judged").then(|| format!("{}: {}", c.status, c.reason.clone().unwrap_or_default()))
        };
        let mut summary = Summary {
            name: name(ledger),
            cases: count(cases.iter().map(|c| c.status.clone())),
            planned: plan.cases,
            patterns: cases.iter().map(|c| (c.pattern, &c.labels)).collect::<BTreeSet<_>>().len(),
            executions: count(executions.iter().map(|e| e.status.clone())),
            causes: count(executions.iter().filter(|e| e.status == "ok").map(cause)),
            criteria: criteria.into(),
            parties: plan.executors.iter().map(|executor| party(executor, &executions)).collect(),
            unjudged: most(count(cases.iter().filter_map(reason))),
            ops,
            single: None,
            growth: growth(&cases, &nodes, &plan.executors),
            validity: Vec::new(),
            kinds: entries::kinds(&executions, &nodes, &entries, &plan.executors),
            entries,
            environment: ledger.environment()?,
            ulpian: plan.ulpian.clone(),
            seconds: ledger.seconds()?,
            executors: plan.executors.clone(),
        };
        if let Source::Generated(recipe) = &plan.source {
            summary.add_cases(recipe, &cases);
        }
        Ok(summary)
    }

    /// Did the campaign run to its end?
    pub fn complete(&self) -> bool {
        self.cases.values().sum::<usize>() == self.planned
    }

    /// Findings in all.
    pub fn findings(&self) -> usize {
        self.entries.iter().map(|entry| entry.findings.len()).sum()
    }

    /// Judged executions in which a fault is named.
    pub fn faults(&self) -> usize {
        CAUSES.iter().filter(|c| c.is_fault()).filter_map(|c| self.causes.get(c.name())).sum()
    }

    /// Adds a campaign of single ops, to compare chains with.
    ///
    /// # Errors
    /// [`ReportError::Campaign`] where its ledger cannot be read.
    pub fn add_single(&mut self, ledger: &Ledger, recipe: &Recipe) -> Result<(), ReportError> {
        let cases = ledger.cases()?;
        let mut alone = ops::by_op(&cases, &ledger.executions()?, &ledger.nodes()?);
        for (op, row) in &mut self.ops {
            row.alone = alone.remove(op).map(|row| row.chains).unwrap_or_default();
        }
        self.single = Some(name(ledger));
        self.add_cases(recipe, &cases);
        Ok(())
    }

    /// Adds the cases of a campaign to the table of valid inputs, by its generator.
    pub(super) fn add_cases(&mut self, recipe: &Recipe, cases: &[CaseRow]) {
        let generator = match (recipe.baseline, recipe.values) {
            (Some(Baseline::Uniform), _) => "uniform",
            (Some(Baseline::Mutate), _) => "mutate",
            (None, Values::Range) => "ulpian",
            (None, Values::Sketch) => "ulpian, sketch",
        };
        let mut by_op: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for case in cases {
            let key = match case.labels.split(' ').count() {
                1 => case.labels.clone(),
                nodes => format!("{nodes} nodes"),
            };
            let (valid, all) = by_op.entry(key).or_default();
            *valid += usize::from(case.status != "invalid");
            *all += 1;
        }
        self.add_shares(generator, by_op);
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
        self.add_shares(generator, summary.by_op);
        Ok(())
    }

    fn add_shares(&mut self, generator: &str, by_op: BTreeMap<String, (usize, usize)>) {
        match self.validity.iter_mut().find(|v| v.generator == generator) {
            Some(known) => {
                for (op, (valid, all)) in by_op {
                    let shares = known.by_op.entry(op).or_default();
                    *shares = (shares.0 + valid, shares.1 + all);
                }
            }
            None => self.validity.push(Validity { generator: generator.to_owned(), by_op }),
        }
    }
}

/// The ledger's name, its file's without the ending.
pub(super) fn name(ledger: &Ledger) -> String {
    let file = ledger.file();
    file.file_stem().unwrap_or(file.as_os_str()).to_string_lossy().into_owned()
}

fn count(names: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for name in names {
        *counts.entry(name).or_default() += 1;
    }
    counts
}

fn most<T: Ord>(counts: BTreeMap<T, usize>) -> Vec<(T, usize)> {
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, n)| Reverse(*n));
    counts
}

/// The cause of an execution; inconclusive where the judge gave none.
pub(super) fn cause(execution: &ExecutionRow) -> String {
    execution.cause.clone().unwrap_or_else(|| Cause::Inconclusive.name().to_owned())
}

/// The cause, where it is a fault.
pub(super) fn fault(execution: &ExecutionRow) -> Option<Cause> {
    CAUSES.into_iter().find(|c| c.is_fault() && execution.cause.as_deref() == Some(c.name()))
}

fn party(executor: &str, executions: &[ExecutionRow]) -> Party {
    let own = || executions.iter().filter(|e| e.executor == executor);
    let silent = own().filter(|e| e.status != "ok");
    let mut reasons: BTreeMap<(String, String), usize> = BTreeMap::new();
    for row in silent {
        let reason = nameless(row.reason.as_deref().unwrap_or_default());
        *reasons.entry((row.status.clone(), reason)).or_default() += 1;
    }
    let silent = most(reasons).into_iter().map(|((status, reason), n)| (status, reason, n)).collect();
    let causes = count(own().filter(|e| e.status == "ok").map(cause));
    Party { executor: executor.to_owned(), causes, silent }
}

/// A reason without the name of the node that it is about, which differs from case to case.
fn nameless(reason: &str) -> String {
    match reason.split_once(" node ").map(|(before, rest)| (before, rest.split_once(' '))) {
        Some((before, Some((_, after)))) => format!("{before} a node {after}"),
        _ => reason.to_owned(),
    }
}

/// Median accumulated error by depth, over chains of more than one node.
fn growth(cases: &[CaseRow], nodes: &[NodeRow], executors: &[String]) -> Vec<Growth> {
    let mut by_case: BTreeMap<usize, BTreeMap<usize, &str>> = BTreeMap::new();
    for node in nodes {
        by_case.entry(node.case).or_default().insert(node.place, chain::node(&node.node));
    }
    let mut depths: BTreeMap<usize, BTreeMap<&str, usize>> = BTreeMap::new();
    for case in cases.iter().filter(|c| c.labels.contains(' ')) {
        let names = by_case.get(&case.number).into_iter().flat_map(BTreeMap::values).copied();
        depths.insert(case.number, chain::depths(&chain::edges(case), names));
    }
    let of = |executor: &String| {
        let mut by_depth: BTreeMap<usize, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
        for node in nodes.iter().filter(|n| n.executor == *executor) {
            let depth = depths.get(&node.case).and_then(|d| d.get(chain::node(&node.node)));
            let finite = |error: Option<f64>| error.filter(|e| e.is_finite());
            let (Some(&depth), Some(ulp), Some(absolute)) =
                (depth, finite(node.accumulated_ulp), finite(node.accumulated_abs))
            else {
                continue;
            };
            let step = by_depth.entry(depth).or_default();
            step.0.push(ulp);
            step.1.push(absolute);
        }
        let step = |(mut ulp, mut absolute): (Vec<f64>, Vec<f64>)| Step {
            results: ulp.len(),
            ulp: median(&mut ulp),
            absolute: median(&mut absolute),
        };
        Growth { executor: executor.clone(), steps: by_depth.into_values().map(step).collect() }
    };
    executors.iter().map(of).filter(|growth| !growth.steps.is_empty()).collect()
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_the_same_for_every_node() {
        assert_eq!(nameless("the rows of node mul_3 (mul) depend"), "the rows of a node (mul) depend");
        assert_eq!(nameless("no tensor has four dimensions"), "no tensor has four dimensions");
        assert_eq!(nameless("no such node x"), "no such node x");
    }

    #[test]
    fn the_median_is_the_upper_of_two() {
        assert_eq!((median(&mut [3.0, 1.0, 2.0]), median(&mut [2.0, 1.0]), median(&mut [])), (2.0, 2.0, 0.0));
    }
}
