//! Findings: executions that the judge puts down to a fault, grouped by pattern, op, cause and executor.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ulpian_spec::verdict::Cause;
use ulpian_spec::{Case, ExecutorId, HostTensor, Outcome};

use super::CampaignError;
use super::ledger::Ledger;
use super::minimise::{Budget, Kept, Minimised, minimise};
use super::plan::{Cases, Plan};
use super::repro::repro;
use super::rows::{CaseRow, ExecutionRow, FindingRow};
use super::writer::Writer;
use crate::{Executors, pipeline};

/// A group of executions with one pattern, op, cause and executor, and its worst.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The pattern's id, where the cases were generated for one.
    pub pattern: Option<usize>,
    /// The labels of the pattern, or the ops of the cases; blanks between them.
    pub labels: String,
    /// The op at fault.
    pub op: String,
    /// The cause.
    pub cause: Cause,
    /// How many executions there are.
    pub executions: usize,
    /// The worst of them: its case.
    pub case: CaseRow,
    /// The worst of them.
    pub worst: ExecutionRow,
}

impl Finding {
    /// A name that tells it from the ledger's other findings, for files.
    pub fn name(&self) -> String {
        format!("{}-{}-{:05}-{}", self.op, self.cause.name(), self.case.number, self.worst.place)
    }
}

/// The findings of a ledger: first the worst of each op, cause and executor, then the second of each, and so on; among equals
/// the worst first.
///
/// # Errors
/// [`CampaignError`] where the ledger cannot be read.
pub fn group(ledger: &Ledger) -> Result<Vec<Finding>, CampaignError> {
    let cases: BTreeMap<usize, CaseRow> = ledger.cases()?.into_iter().map(|c| (c.number, c)).collect();
    let at_nodes: HashMap<(usize, String, String), Severity> = ledger
        .nodes()?
        .into_iter()
        .map(|n| ((n.case, n.executor, n.node), severity(n.class_mismatches, n.bound_ratio)))
        .collect();
    // An earlier node may be further off its bound than the one at fault.
    let worst = |e: &ExecutionRow| {
        let node = e.node.clone().and_then(|node| at_nodes.get(&(e.case, e.executor.clone(), node)));
        node.copied().unwrap_or_else(|| severity(e.class_mismatches, e.bound_ratio))
    };
    let mut groups: BTreeMap<(Option<usize>, String, String, Cause, usize), Finding> = BTreeMap::new();
    for execution in ledger.executions()? {
        let (Some(cause), Some(op), Some(case)) =
            (execution.cause.as_deref().and_then(fault), &execution.op, cases.get(&execution.case))
        else {
            continue;
        };
        let key = (case.pattern, case.labels.clone(), op.clone(), cause, execution.place);
        let finding = groups.entry(key).or_insert_with(|| Finding {
            pattern: case.pattern,
            labels: case.labels.clone(),
            op: op.clone(),
            cause,
            executions: 0,
            case: case.clone(),
            worst: execution.clone(),
        });
        finding.executions += 1;
        if worst(&execution) > worst(&finding.worst) {
            finding.case = case.clone();
            finding.worst = execution;
        }
    }
    let mut findings: Vec<Finding> = groups.into_values().collect();
    let order = |f: &Finding| (f.case.number, f.worst.place);
    findings.sort_by(|a, b| {
        let (x, y) = (worst(&a.worst), worst(&b.worst));
        y.0.cmp(&x.0).then(y.1.total_cmp(&x.1)).then(order(a).cmp(&order(b)))
    });
    let mut met: BTreeMap<(String, Cause, usize), usize> = BTreeMap::new();
    let ranks: Vec<usize> = findings
        .iter()
        .map(|f| {
            let rank = met.entry((f.op.clone(), f.cause, f.worst.place)).or_default();
            *rank += 1;
            *rank
        })
        .collect();
    let mut ranked: Vec<(usize, Finding)> = ranks.into_iter().zip(findings).collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    let findings = ranked.into_iter().map(|(_, finding)| finding).collect();
    Ok(findings)
}

/// Makes a finding small and writes it into the ledger, unless that is done already. `None` where its verdict is not met again.
///
/// # Errors
/// [`CampaignError`] where the ledger cannot be read or written.
pub fn reproduce(
    writer: &mut Writer,
    finding: &Finding,
    plan: &Plan,
    cases: &Cases<'_>,
    executors: &mut Executors,
    budget: Budget,
) -> Result<Option<FindingRow>, CampaignError> {
    let (case, place) = (finding.case.number, finding.worst.place);
    let known = writer.ledger().findings()?.into_iter().find(|row| (row.case, row.place) == (case, place));
    let row = match known {
        Some(row) if row.executions == finding.executions => return Ok(Some(row)),
        Some(row) => FindingRow { executions: finding.executions, ..row },
        None => match made_small(finding, plan, cases, executors, budget) {
            Some(row) => row,
            None => return Ok(None),
        },
    };
    writer.record_finding(&row)?;
    Ok(Some(row))
}

fn made_small(
    finding: &Finding,
    plan: &Plan,
    cases: &Cases<'_>,
    executors: &mut Executors,
    budget: Budget,
) -> Option<FindingRow> {
    let whole = cases.make(finding.case.number).case.ok()?;
    let kept = Kept {
        executor: finding.worst.executor.parse().ok()?,
        cause: finding.cause,
        op: finding.op.clone(),
        node: finding.worst.node.clone()?,
        interventions: plan.interventions,
    };
    let name = finding.name();
    let Minimised { case, verdict, elements, elements_left } =
        minimise(&whole, &name, &kept, executors, budget)?;
    let script = results(&case, &kept.executor, executors)
        .and_then(|(computed, certified)| repro(&case, &kept.executor, &verdict, &computed, &certified));
    Some(FindingRow {
        case: finding.case.number,
        place: finding.worst.place,
        executions: finding.executions,
        name,
        elements,
        elements_left,
        because: verdict.executors.first()?.verdict.because.clone(),
        minimised: case.to_json(),
        repro: script,
    })
}

type Tensors = Vec<Arc<HostTensor>>;

/// The results of a case's only node: as the executor computes them, and the certified ones.
fn results(case: &Case, executor: &ExecutorId, executors: &mut Executors) -> Option<(Tensors, Tensors)> {
    let Outcome::Ok(run) = executors.run(executor, case) else { return None };
    let truth = pipeline::truth(case).ok()?;
    let certified: Option<Tensors> =
        case.results().map(|at| truth.real.get(&at).map(|e| Arc::new(e.value.clone()))).collect();
    let computed: Option<Tensors> = case.results().map(|at| run.results.get(&at).cloned()).collect();
    Some((computed?, certified?))
}

/// Class before distance; distance as a share of the bound.
fn severity(class_mismatches: Option<usize>, bound_ratio: Option<f64>) -> Severity {
    (class_mismatches.unwrap_or(0) > 0, bound_ratio.unwrap_or(0.0))
}

type Severity = (bool, f64);

/// The cause of this name, where it is a fault.
fn fault(name: &str) -> Option<Cause> {
    [Cause::Framework, Cause::Vendor, Cause::Hardware, Cause::Defect].into_iter().find(|c| c.name() == name)
}
