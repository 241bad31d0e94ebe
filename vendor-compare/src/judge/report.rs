//! The verdict in the form of the machine output.

use ulpian_spec::tensor::unravel;
use ulpian_spec::verdict::{
    At, CaseVerdict, Cause, Evidence, ExecutorAtNode, ExecutorVerdict, Grade, NodeReport, VERDICT_FORMAT,
    Verdict,
};
use ulpian_spec::{Case, ValueRef};

use super::chain::Chain;
use super::finding::{Finding, figure, gravest};
use super::hearing::Party;
use super::interventions::switch_name;
use super::matter::{Matter, Trial};
use super::{expectation, replays};

/// Assembles the verdict on a case.
pub(super) fn verdict(
    case: &Case,
    chain: &Chain,
    parties: &[Party],
    matters: &[Matter],
    findings: &[Option<Vec<Finding>>],
    environment: serde_json::Map<String, serde_json::Value>,
) -> CaseVerdict {
    let of_parties: Vec<(usize, Finding)> = findings
        .iter()
        .enumerate()
        .filter_map(|(p, found)| Some((p, of_party(case, &parties[p], found.as_ref()?)?)))
        .collect();
    let overall = match gravest(of_parties.iter().map(|(_, f)| f)) {
        None => nobody_heard(parties),
        Some((i, finding)) => {
            let (p, _) = of_parties[i];
            let mut because = finding.because.clone();
            let to_the_end = of_parties.iter().filter(|(p, _)| parties[*p].reason.is_none()).count();
            if finding.weight() == Cause::Agree && to_the_end > 1 {
                because =
                    format!("{to_the_end} executors return the correctly rounded value of every element");
            }
            if matches!(finding.weight(), Cause::Rounding | Cause::Conditioning)
                && let Some(comparison) = compare(parties, matters, p, finding)
            {
                because = format!("{because}; {comparison}");
            }
            let at = (finding.weight() != Cause::Agree).then(|| place(case, &parties[p], finding)).flatten();
            Verdict { cause: finding.weight(), grade: finding.grade, at, because }
        }
    };
    let executors = of_parties
        .iter()
        .map(|(p, f)| ExecutorVerdict {
            executor: parties[*p].id.to_string(),
            verdict: Verdict {
                cause: f.cause,
                grade: f.grade,
                at: if f.cause == Cause::Agree { None } else { place(case, &parties[*p], f) },
                because: f.because.clone(),
            },
        })
        .collect();
    let mut verdict = CaseVerdict {
        format: VERDICT_FORMAT.to_owned(),
        case: case.name.clone(),
        file: None,
        verdict: overall,
        executors,
        nodes: case.results().map(|at| node_report(case, parties, at)).collect(),
        evidence: matters.iter().flat_map(|m| evidence(case, parties, m)).collect(),
        expectation: None,
        environment,
    };
    verdict.expectation = case.expect.as_ref().map(|e| expectation::check(case, e, &verdict, chain));
    verdict
}

/// One finding for a party: its gravest; for one that failed, of the nodes before, `None` where there are none.
fn of_party(case: &Case, party: &Party, findings: &[Finding]) -> Option<Finding> {
    if party.reason.is_none() {
        return Some(of_results(case, party, findings));
    }
    let heard = party.heard.as_ref()?;
    let failed = heard.nodes.iter().position(|at| at.results.iter().all(Option::is_none))?;
    let (_, worst) = gravest(findings.iter())?;
    let because = format!("{}; at node {} it failed", worst.because, case.nodes[failed].id);
    Some(Finding { because, ..worst.clone() })
}

/// Where every node is exact and the exact chain is still missed, rounding op by op is what separates them.
fn of_results(case: &Case, party: &Party, findings: &[Finding]) -> Finding {
    let Some((_, worst)) = gravest(findings.iter()) else {
        return Finding {
            cause: Cause::Inconclusive,
            grade: Grade::Consistent,
            counts: true,
            because: format!("nothing that {} computed was observed; observe the result of a node", party.id),
            at: None,
            severity: 0.0,
        };
    };
    if worst.cause != Cause::Agree {
        return worst.clone();
    }
    let missed = party.heard.as_ref().and_then(|heard| {
        heard.nodes.iter().enumerate().find_map(|(n, at)| {
            at.accumulated
                .iter()
                .enumerate()
                .find_map(|(o, m)| m.as_ref().filter(|m| !m.exact).map(|m| (n, o, m.clone())))
        })
    });
    match missed {
        None if case.nodes.len() == 1 => worst.clone(),
        None => Finding {
            because: format!(
                "{} returns the correctly rounded value of every element of every node",
                party.id
            ),
            ..worst.clone()
        },
        Some((n, o, m)) => Finding {
            cause: Cause::Rounding,
            because: format!(
                "{} rounds every op correctly, as an ideal eager framework does; at {} the exact chain, rounded once, is {} ulp away",
                party.id,
                case.result_name(ValueRef::Node { node: n, output: o }),
                figure(m.ulp.value)
            ),
            at: Some((n, o, m.shows_at())),
            ..worst.clone()
        },
    }
}

fn nobody_heard(parties: &[Party]) -> Verdict {
    let because = match parties.iter().find_map(|p| p.reason.as_ref().map(|r| (p, r))) {
        Some((p, reason)) => format!("nobody could be heard: {} is {}: {reason}", p.id, p.status),
        None => "nobody was heard; name an executor or record an observation".to_owned(),
    };
    Verdict { cause: Cause::Inconclusive, grade: Grade::Consistent, at: None, because }
}

/// How much further off the party is at that node than another party, or than itself under a switch.
fn compare(parties: &[Party], matters: &[Matter], p: usize, finding: &Finding) -> Option<String> {
    let (node, output, _) = finding.at?;
    let error = |party: &Party| {
        let m = party.heard.as_ref()?.nodes[node].settled[output].as_ref()?;
        (m.within() && m.abs.value > 0.0).then_some(m.abs.value)
    };
    let own = error(&parties[p])?;
    let others = parties.iter().filter_map(|q| Some((q.id.to_string(), error(q)?)));
    let switched = matters
        .iter()
        .filter(|m| m.party == p && m.node == node && m.output == output)
        .flat_map(|m| &m.trials)
        .filter_map(|(e, t)| match t {
            Trial::Ran { measured, .. } if measured.within() && measured.abs.value > 0.0 => {
                Some((format!("itself under {}", switch_name(&parties[p].id, e)), measured.abs.value))
            }
            _ => None,
        });
    let (name, least) = others.chain(switched).min_by(|a, b| a.1.total_cmp(&b.1))?;
    (own >= 2.0 * least).then(|| {
        format!("{} is {} times as far from the truth as {name}", parties[p].id, figure(own / least))
    })
}

fn place(case: &Case, party: &Party, finding: &Finding) -> Option<At> {
    let (node, output, index) = finding.at?;
    let at = ValueRef::Node { node, output };
    let shape = &case.nodes[node].types[output].shape;
    Some(At { node: case.result_name(at), executor: party.id.to_string(), index: unravel(index, shape) })
}

fn node_report(case: &Case, parties: &[Party], at: ValueRef) -> NodeReport {
    let ValueRef::Node { node, output } = at else {
        return NodeReport {
            node: case.result_name(at),
            op: String::new(),
            dtype: String::new(),
            executors: vec![],
        };
    };
    NodeReport {
        node: case.result_name(at),
        op: case.nodes[node].op.kind().name().to_owned(),
        dtype: case.nodes[node].types[output].dtype.name().to_owned(),
        executors: parties.iter().map(|p| executor_at(p, node, output)).collect(),
    }
}

fn executor_at(party: &Party, node: usize, output: usize) -> ExecutorAtNode {
    let mut row = ExecutorAtNode {
        executor: party.id.to_string(),
        status: party.status.to_owned(),
        reason: party.reason.clone(),
        class_mismatches: None,
        local: None,
        accumulated: None,
        condition: None,
    };
    let Some(heard) = &party.heard else { return row };
    let at = &heard.nodes[node];
    let Some(got) = &at.results[output] else {
        if row.reason.is_none() {
            row.status = "missing".to_owned();
            row.reason = Some("it ran, and this result was not observed".to_owned());
        }
        return row;
    };
    (row.status, row.reason) = ("ok".to_owned(), None);
    if let (Some(m), Some(local)) = (&at.measured[output], &at.local) {
        row.class_mismatches = Some(m.class_mismatches);
        row.local = m.distance(got, &local.truth[output]);
        let i = m.ulp.index;
        if let (Some(&scale), Some(&center)) =
            (local.levels[output].scale.get(i), local.truth[output].center.get(i))
            && center != 0.0
            && center.is_finite()
        {
            row.condition = Some(scale / center.abs());
        }
    }
    if let (Some(m), Some(real)) =
        (&at.accumulated[output], heard.chain.real.get(&ValueRef::Node { node, output }))
    {
        row.class_mismatches = row.class_mismatches.or(Some(m.class_mismatches));
        row.accumulated = m.distance(got, real);
    }
    row
}

fn evidence(case: &Case, parties: &[Party], matter: &Matter) -> Vec<Evidence> {
    let (executor, node) = (parties[matter.party].id.to_string(), case.nodes[matter.node].id.clone());
    let replays = matter.replays.iter().map(|r| Evidence {
        executor: executor.clone(),
        node: node.clone(),
        tried: replays::executor_name(r.hypothesis),
        outcome: if r.same_bits { "same bits" } else { "other bits" }.to_owned(),
        max_ulp: r.ulp,
    });
    let trials = matter.trials.iter().map(|(tried, trial)| {
        let (outcome, max_ulp) = match trial {
            Trial::NotRun(why) => (format!("did not run: {why}"), None),
            Trial::Ran { same_bits: true, measured, .. } => {
                ("same bits".to_owned(), Some(measured.max_ulp()))
            }
            Trial::Ran { vanishes: true, measured, .. } => {
                ("the error vanishes".to_owned(), Some(measured.max_ulp()))
            }
            Trial::Ran { same_at_fault: true, measured, .. } => {
                ("other bits, the same at the element in question".to_owned(), Some(measured.max_ulp()))
            }
            Trial::Ran { measured, .. } => ("other bits".to_owned(), Some(measured.max_ulp())),
        };
        Evidence {
            executor: executor.clone(),
            node: node.clone(),
            tried: tried.to_string(),
            outcome,
            max_ulp,
        }
    });
    replays.chain(trials).collect()
}
