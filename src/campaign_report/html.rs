//! The page: one file that needs nothing else, works offline and on a narrow screen.

use std::collections::BTreeMap;
use std::path::Path;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::ReportError;
use super::figures::{self, short};
use super::summary::{Criterion, Shown, Summary};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

pub(super) fn page(summary: &Summary, links: Option<&Path>) -> Result<String, ReportError> {
    let figure = |title: &str, caption: &str, svg: String| {
        html! {
            figure {
                figcaption { b { (title) } " " (caption) }
                div.plot { (PreEscaped(svg)) }
            }
        }
    };
    let differences = figures::differences(&summary.ops)?;
    let involved = figures::involved(&summary.ops)?;
    let growth = figures::growth(&summary.growth)?;
    let mut findings = Vec::new();
    for shown in &summary.findings {
        findings.push(finding(shown, links, figures::pattern(shown)?));
    }
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Campaign " (summary.name) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { "Campaign " (summary.name) }
                    @if !summary.complete {
                        p.warning { "This campaign has not run to its end: the figures are those so far." }
                    }
                    p {
                        (counted(&summary.cases)) " cases, " (counted(&summary.executions)) " executions over "
                        @for (i, executor) in summary.executors.iter().enumerate() {
                            @if i > 0 { ", " } code { (executor) }
                        }
                        ". Differences are measured against the first executor, errors against the certified truth."
                    }
                    nav {
                        a href="#overview" { "Overview" } " "
                        a href="#ops" { "By op" } " "
                        a href="#figures" { "Figures" } " "
                        a href="#findings" { "Findings" }
                        @if !summary.validity.is_empty() { " " a href="#validity" { "Valid inputs" } }
                    }
                }
                main {
                    section id="overview" { h2 { "What each criterion finds" } (criteria(summary)) }
                    section id="ops" { h2 { "Findings by op" } (ops(summary)) }
                    @if !summary.validity.is_empty() {
                        section id="validity" { h2 { "Valid inputs by op and generator" } (validity(summary)) }
                    }
                    section id="figures" {
                        h2 { "Figures" }
                        (figure("Average difference", "per op, in chains and alone; no bar where they never differ.", differences))
                        (figure("Part in erroneous executions", "of all executions with the op, the share that each criterion finds.", involved))
                        (figure("Growth of error", "median over the chains of the worst accumulated error, by place in the chain.", growth))
                    }
                    section id="findings" {
                        h2 { "Findings" }
                        @if findings.is_empty() {
                            p { "No execution was put down to a fault." }
                        } @else {
                            p {
                                "Executions that the judge puts down to a fault, grouped by pattern, op, cause and executor; of each group the worst. "
                                "Nodes are white where the result is correctly rounded, yellow where it carries an error that the precision allows, red where the error is beyond that."
                            }
                            (filters(summary))
                            p id="shown" {}
                            @for finding in &findings { (finding) }
                        }
                    }
                    section id="environment" {
                        h2 { "Where it ran" }
                        dl { @for (name, facts) in &summary.environment { dt { code { (name) } } dd { (facts) } } }
                    }
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    Ok(page.into_string())
}

fn counted(counts: &BTreeMap<String, usize>) -> String {
    let total: usize = counts.values().sum();
    let parts: Vec<String> = counts.iter().map(|(name, n)| format!("{n} {name}")).collect();
    format!("{total} ({})", parts.join(", "))
}

/// The causes that any criterion meets, in a fixed order.
fn causes(summary: &Summary) -> Vec<&String> {
    summary.causes.keys().collect()
}

fn criteria(summary: &Summary) -> Markup {
    let causes = causes(summary);
    html! {
        div.scroll { table {
            thead { tr { th { "criterion" } th { "found" } @for cause in &causes { th { (cause) } } } }
            tbody {
                tr {
                    td { "all executions" }
                    td.n { (summary.causes.values().sum::<usize>()) }
                    @for cause in &causes { td.n { (summary.causes[*cause]) } }
                }
                @for (criterion, found, by_cause) in &summary.criteria {
                    tr {
                        td { code { (criterion.name()) } }
                        td.n { (found) }
                        @for cause in &causes { td.n { (by_cause.get(*cause).copied().unwrap_or(0)) } }
                    }
                }
            }
        } }
    }
}

fn ops(summary: &Summary) -> Markup {
    let causes = causes(summary);
    html! {
        p {
            "Executions whose verdict names the op, by criterion; elements of another class (NaN, infinities) and failures; and what the judge says of those that "
            code { "sort" } " finds."
        }
        div.scroll { table {
            thead { tr {
                th { "op" } th { "executions" }
                @for criterion in Criterion::ALL { th { code { (criterion.name()) } } }
                th { "class" } th { "failed" }
                @for cause in &causes { th { "sort: " (cause) } }
            } }
            tbody { @for (op, row) in &summary.ops { tr {
                td { code { (op) } } td.n { (row.executions) }
                @for n in row.found { td.n { (n) } }
                td.n { (row.class) } td.n { (row.failed) }
                @for cause in &causes { td.n { (row.sort_causes.get(*cause).copied().unwrap_or(0)) } }
            } } }
        } }
    }
}

fn validity(summary: &Summary) -> Markup {
    html! {
        div.scroll { table {
            thead { tr { th { "op" } @for v in &summary.validity { th { (v.generator) } } } }
            tbody { @for (op, shares) in validity_rows(summary) { tr {
                td { code { (op) } } @for share in shares { td.n { (share) } }
            } } }
        } }
    }
}

/// Table I: a row for each op or size, a share for each generator, and the total.
pub(super) fn validity_rows(summary: &Summary) -> Vec<(String, Vec<String>)> {
    let mut names: Vec<&String> = summary.validity.iter().flat_map(|v| v.by_op.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let share = |good: usize, all: usize| match all {
        0 => "-".to_owned(),
        _ => format!("{:.2}%", 100.0 * good as f64 / all as f64),
    };
    let row = |name: &String| {
        let of = |by_op: &BTreeMap<String, (usize, usize)>| by_op.get(name).copied().unwrap_or((0, 0));
        let shares = summary.validity.iter().map(|v| of(&v.by_op)).map(|(good, all)| share(good, all));
        (name.clone(), shares.collect())
    };
    let mut rows: Vec<(String, Vec<String>)> = names.into_iter().map(row).collect();
    let total = summary.validity.iter().map(|v| {
        let (good, all) = v.by_op.values().fold((0, 0), |(a, b), (good, all)| (a + good, b + all));
        share(good, all)
    });
    rows.push(("total".to_owned(), total.collect()));
    rows
}

fn filters(summary: &Summary) -> Markup {
    let all = |of: fn(&Shown) -> String| {
        let mut names: Vec<String> = summary.findings.iter().map(of).collect();
        names.sort_unstable();
        names.dedup();
        names
    };
    let select = |name: &str, names: Vec<String>| {
        html! {
            label { (name) " " select name=(name) {
                option value="" { "all" }
                @for name in names { option value=(name) { (name) } }
            } }
        }
    };
    html! {
        form id="filters" {
            (select("cause", all(|s| s.finding.cause.name().to_owned())))
            (select("op", all(|s| s.finding.op.clone())))
            (select("executor", all(|s| s.finding.worst.executor.clone())))
        }
    }
}

fn finding(shown: &Shown, links: Option<&Path>, svg: String) -> Markup {
    let f = &shown.finding;
    let name = f.name();
    html! {
        details.finding id=(name) data-cause=(f.cause.name()) data-op=(f.op) data-executor=(f.worst.executor) {
            summary {
                span class={ "cause " (f.cause.name()) } { (f.cause.name()) }
                " " code { (f.op) } " in " (f.labels.replace(' ', " → ")) ", " code { (f.worst.executor) }
                ": " (f.worst.bound_ratio.map_or_else(|| "not measured".to_owned(), short)) " of the bound, "
                (f.executions) (if f.executions == 1 { " execution" } else { " executions" })
            }
            @if let Some(because) = &f.worst.because { p { (because) } }
            div.plot { (PreEscaped(svg)) }
            p {
                "Case " code { (f.case.name) }
                @if let Some(grade) = &f.worst.grade { ", " (grade) }
                ". Found by "
                @for (criterion, found) in [
                    ("sort", f.worst.sort), ("assert_close", f.worst.assert_close), ("bound", f.worst.bound),
                ] {
                    code { (criterion) } (if found == Some(true) { ": yes " } else { ": no " })
                }
                @if let Some(small) = &shown.small {
                    "Shown by " (small.elements_left) " of " (small.elements) " elements"
                    @if let (Some(folder), Some(script)) = (links, shown.script()) {
                        @let link = folder.join(&script);
                        ": " a href=(link.display()) { (script) }
                    }
                    "."
                }
            }
        }
    }
}
