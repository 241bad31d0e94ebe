//! The summary as Markdown: the tables, and the worst findings.

use std::fmt::Write;
use std::path::Path;

use super::figures::short;
use super::html::validity_rows;
use super::summary::{Criterion, Summary};

/// Findings that are listed; the page has them all.
const MOST_FINDINGS: usize = 20;

pub(super) fn text(summary: &Summary, links: Option<&Path>) -> String {
    let mut out = String::new();
    let total = |counts: &std::collections::BTreeMap<String, usize>| counts.values().sum::<usize>();
    let _ = writeln!(out, "# Campaign {}\n", summary.name);
    if !summary.complete {
        let _ = writeln!(out, "This campaign has not run to its end: the figures are those so far.\n");
    }
    let executors: Vec<String> = summary.executors.iter().map(|e| format!("`{e}`")).collect();
    let _ = writeln!(
        out,
        "{} cases, {} executions over {}. Differences are measured against the first executor, errors against the certified truth.\n",
        total(&summary.cases),
        total(&summary.executions),
        executors.join(", ")
    );

    let causes: Vec<&str> = summary.causes.keys().map(String::as_str).collect();
    let _ = writeln!(out, "## What each criterion finds\n");
    head(&mut out, &[&["criterion", "found"], causes.as_slice()].concat());
    let of = |by_cause: &std::collections::BTreeMap<String, usize>| {
        causes.iter().map(|cause| by_cause.get(*cause).copied().unwrap_or(0).to_string()).collect::<Vec<_>>()
    };
    row(
        &mut out,
        "all executions",
        &[vec![total(&summary.causes).to_string()], of(&summary.causes)].concat(),
    );
    for (criterion, found, by_cause) in &summary.criteria {
        row(&mut out, criterion.name(), &[vec![found.to_string()], of(by_cause)].concat());
    }

    let _ = writeln!(out, "\n## Findings by op\n");
    let criteria = Criterion::ALL.map(Criterion::name);
    let sort: Vec<String> = causes.iter().map(|cause| format!("sort: {cause}")).collect();
    let sort: Vec<&str> = sort.iter().map(String::as_str).collect();
    head(
        &mut out,
        &[
            &["op", "executions"][..],
            &criteria,
            &["class", "failed"],
            &sort,
            &["difference in chains", "alone"],
        ]
        .concat(),
    );
    for (op, r) in &summary.ops {
        let mut cells = vec![r.executions.to_string()];
        cells.extend(r.found.iter().chain([&r.class, &r.failed]).map(ToString::to_string));
        cells.extend(of(&r.sort_causes));
        cells.extend(r.difference.iter().map(|d| d.map_or_else(|| "-".to_owned(), short)));
        row(&mut out, op, &cells);
    }

    if !summary.validity.is_empty() {
        let _ = writeln!(out, "\n## Valid inputs by op and generator\n");
        let names: Vec<&str> = summary.validity.iter().map(|v| v.generator.as_str()).collect();
        head(&mut out, &[&["op"], names.as_slice()].concat());
        for (op, shares) in validity_rows(summary) {
            row(&mut out, &op, &shares);
        }
    }

    let _ = writeln!(out, "\n## Growth of error along chains\n");
    let places = summary.growth.iter().map(|d| d.medians.len()).max().unwrap_or(0);
    let names: Vec<String> = (1..=places).map(|p| format!("node {p}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let _ = writeln!(out, "Median over the chains of the worst accumulated error, in ulp.\n");
    head(&mut out, &[&["executor"], names.as_slice()].concat());
    for depth in &summary.growth {
        let cells: Vec<String> =
            (0..places).map(|p| depth.medians.get(p).map_or_else(|| "-".to_owned(), |m| short(*m))).collect();
        row(&mut out, &depth.executor, &cells);
    }

    let _ = writeln!(out, "\n## Findings\n");
    if summary.findings.is_empty() {
        let _ = writeln!(out, "No execution was put down to a fault.");
        return out;
    }
    head(&mut out, &["finding", "pattern", "executor", "executions", "of the bound", "because"]);
    for shown in summary.findings.iter().take(MOST_FINDINGS) {
        let f = &shown.finding;
        let name = match (links, shown.script()) {
            (Some(folder), Some(script)) => format!("[{}]({})", f.name(), folder.join(script).display()),
            _ => f.name(),
        };
        row(
            &mut out,
            &name,
            &[
                f.labels.clone(),
                f.worst.executor.clone(),
                f.executions.to_string(),
                f.worst.bound_ratio.map_or_else(|| "-".to_owned(), short),
                f.worst.because.clone().unwrap_or_default(),
            ],
        );
    }
    if summary.findings.len() > MOST_FINDINGS {
        let _ = writeln!(out, "\nand {} more, in index.html.", summary.findings.len() - MOST_FINDINGS);
    }
    out
}

fn head(out: &mut String, names: &[&str]) {
    let _ = writeln!(out, "| {} |", names.join(" | "));
    let _ = writeln!(out, "|---{}|", "|--:".repeat(names.len().saturating_sub(1)));
}

fn row(out: &mut String, first: &str, cells: &[String]) {
    let clean = |text: &str| text.replace('|', "\\|").replace('\n', " ");
    let cells: Vec<String> = cells.iter().map(|c| clean(c)).collect();
    let _ = writeln!(out, "| {} | {} |", clean(first), cells.join(" | "));
}
