//! The page: one file that needs nothing else, works offline, on a narrow screen and on a dark one.

use std::collections::{BTreeMap, BTreeSet};

use maud::{DOCTYPE, Markup, PreEscaped, html};
use ulpian_spec::verdict::Cause;

use super::entries::{Entry, Kind, Shown};
use super::figures::{self, Figure, times};
use super::summary::{Criterion, Summary};
use super::tables::{self, Table, counted, grouped};
use super::{diagram, script, small_case};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// Nothing is fetched, from nowhere.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";
/// Room for the findings, in bytes: the page stays below 3 MB however many there are.
const MOST_BYTES: usize = 2_500_000;

pub(super) fn page(summary: &Summary, figures: &[Figure]) -> String {
    let validity = tables::validity(summary);
    let missing = tables::missing(summary);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                link rel="icon" href="data:,";
                title { "Campaign " (summary.name) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header { (head(summary)) }
                nav {
                    a href="#criteria" { "Criteria" }
                    a href="#faults" { "Faults" }
                    a href="#findings" { "Findings" }
                    a href="#ops" { "By op" }
                    a href="#figures" { "Figures" }
                    @if validity.is_some() { a href="#validity" { "Valid inputs" } }
                    a href="#executors" { "Executors" }
                    a href="#missing" { "What is missing" }
                }
                main {
                    (table(&tables::criteria(summary)))
                    section id="faults" { h2 { "Faults by op" } (kinds(&summary.kinds)) }
                    section id="findings" { h2 { "Findings" } (findings(summary)) }
                    (table(&tables::ops(summary)))
                    @for criterion in Criterion::ALL {
                        @if let Some(found) = tables::causes(summary, criterion) { (table(&found)) }
                    }
                    section id="figures" {
                        h2 { "Figures" }
                        @if summary.single.is_none() {
                            p.note { "Single ops were not given to compare with: the figures are of chains alone." }
                        }
                        div.figures { @for f in figures { @if let Some(svg) = &f.svg { (figure(f, svg)) } } }
                        @for f in figures.iter().filter(|f| f.svg.is_none()) { p.note { b { (f.title) } ": " (f.caption) } }
                        details { summary { "The same in numbers" }
                            (table(&tables::single(summary)))
                            @if let Some(growth) = tables::growth(summary) { (table(&growth)) }
                        }
                    }
                    @if let Some(validity) = &validity { (table(validity)) }
                    (table(&tables::parties(summary)))
                    section id="missing" {
                        h2 { "What is missing" }
                        @if missing.is_empty() { p { "Nothing: every case was judged by every executor." } }
                        ul { @for note in &missing { li { (quoted(note)) } } }
                    }
                    section id="environment" {
                        h2 { "Where it ran" }
                        dl {
                            dt { "ulpian" }
                            dd { (summary.ulpian) ", " (grouped(summary.seconds.round() as usize)) " s of work" }
                            @for (name, facts) in &summary.environment { dt { code { (name) } } dd { (self::facts(facts)) } }
                        }
                    }
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

fn head(summary: &Summary) -> Markup {
    let judged = summary.causes.values().sum::<usize>();
    let done = summary.cases.values().sum::<usize>();
    let invalid = done - summary.cases.get("judged").copied().unwrap_or(0);
    let silent = summary.executions.values().sum::<usize>() - judged;
    let tile = |figure: String, what: &str, more: String| {
        html! { div.tile { b { (figure) } span { (what) } small { (more) } } }
    };
    let more = |n: usize, what: &str| if n == 0 { String::new() } else { format!(", {} {what}", grouped(n)) };
    let patterns = counted(summary.patterns, "pattern") + &more(invalid, "not judged");
    let executors = counted(summary.executors.len(), "executor") + &more(silent, "without a result");
    html! {
        h1 { "Campaign " (summary.name) }
        @if !summary.complete() {
            p.warning { "This campaign has not run to its end: the figures are those so far." }
        }
        div.tiles {
            (tile(grouped(done), "cases", patterns))
            (tile(grouped(judged), "judged executions", executors))
            (tile(grouped(summary.faults()), "with a fault", counted(summary.findings(), "finding")))
            @for (criterion, found, measured, _) in &summary.criteria {
                (tile(grouped(*found), &format!("found by {}", criterion.name()), format!("of {}", grouped(*measured))))
            }
        }
        ul.answers { @for line in tables::headline(summary) { li { (line) } } }
        p {
            @for (i, executor) in summary.executors.iter().enumerate() {
                @if i > 0 { ", " } code { (executor) }
            }
            ". Differences are measured against the first, errors against the certified truth."
        }
    }
}

fn table(table: &Table) -> Markup {
    let rows = table.rows.len();
    html! {
        section id=(table.id) {
            h2 { (table.title) }
            @if !table.note.is_empty() { p.note { (table.note) } }
            @if rows == 0 { p { "Nothing to show." } } @else {
                div.scroll tabindex="0" { table {
                    thead { tr { @for (i, name) in table.head.iter().enumerate() { th.n[i > 0] scope="col" { (name) } } } }
                    tbody { @for (r, row) in table.rows.iter().enumerate() {
                        tr.total[table.total && r + 1 == rows] {
                            @for (i, cell) in row.iter().enumerate() {
                                @if i == 0 { th scope="row" { code { (cell) } } }
                                @else { td.n.zero[cell == "0"] { (cell) } }
                            }
                        }
                    } }
                } }
            }
        }
    }
}

fn figure(f: &Figure, svg: &str) -> Markup {
    html! {
        figure id={ "figure-" (f.name) } {
            figcaption { b { (f.title) } br; (f.caption) }
            div.plot role="img" aria-label=(f.title) { (PreEscaped(figures::inline(svg))) }
        }
    }
}

fn cause(name: &str) -> Markup {
    html! { span class={ "cause " (name) } { (name) } }
}

fn of_bound(ratio: Option<f64>, class: bool) -> String {
    match (class, ratio) {
        (true, _) => "NaN or infinite where the truth is not, or the reverse".to_owned(),
        (_, Some(ratio)) => format!("{} its bound", times(ratio)),
        (_, None) => "not measured".to_owned(),
    }
}

fn kinds(kinds: &[Kind]) -> Markup {
    html! {
        @if kinds.is_empty() { p { "No execution was put down to a fault." } } @else {
            p.note { "Every execution with a fault, by the op at fault; the judge's most frequent reasons below each." }
            @for kind in kinds {
                div.kind {
                    p {
                        (cause(kind.cause.name())) " " b { code { (kind.op) } } ": "
                        a href={ "#findings?cause=" (kind.cause.name()) "&op=" (kind.op) } { (counted(kind.executions, "execution")) }
                        ", " (counted(kind.patterns, "pattern")) ", at worst " (of_bound(kind.ratio, false))
                        @if kind.class > 0 { ", NaN or infinities in " (grouped(kind.class)) }
                        "; " @for (i, executor) in kind.executors.iter().enumerate() { @if i > 0 { ", " } code { (executor) } }
                    }
                    ul { @for (why, n) in kind.because.iter().take(3) { li { (why) " (" (grouped(*n)) ")" } } }
                }
            }
        }
    }
}

fn findings(summary: &Summary) -> Markup {
    let chosen = chosen(summary);
    html! {
        @if chosen.is_empty() {
            p { "No execution was put down to a fault, so there is nothing to list." }
        } @else {
            p.note { "Executions with a fault by pattern, op and cause, the worst first, with the executors that share it; of each executor its worst execution." }
            p.legend {
                span.key.white {} "correctly rounded "
                span.key.yellow {} "an error that the precision allows, or brought in "
                span.key.red {} "the node's own error is beyond its bound "
                span.note { "×: of its bound" }
            }
            (filters(summary, &chosen))
            p id="shown" role="status" {}
            @for (_, text) in &chosen { (text) }
            p id="none" hidden { "No finding passes these filters." }
            @if let Some(more) = summary.entries.len().checked_sub(chosen.len()).filter(|n| *n > 0) {
                p.warning {
                    "For the page's size " (grouped(more)) " are left out, the least of their op and cause; `campaign findings` and `campaign export` have them all."
                }
            }
        }
    }
}

/// The entries that there is room for, drawn: the worst of each op and cause, then the second of each, and so on. In the order of
/// the summary.
fn chosen(summary: &Summary) -> Vec<(&Entry, Markup)> {
    let mut met: BTreeMap<(&str, Cause), usize> = BTreeMap::new();
    let mut ranked: Vec<(usize, usize)> = Vec::new();
    for (at, entry) in summary.entries.iter().enumerate() {
        let rank = met.entry((&entry.op, entry.cause)).or_default();
        ranked.push((*rank, at));
        *rank += 1;
    }
    ranked.sort_unstable();
    let mut bytes = 0;
    let mut chosen: BTreeMap<usize, Markup> = BTreeMap::new();
    for (_, at) in ranked {
        let text = entry(&summary.entries[at], summary);
        bytes += text.0.len();
        if bytes > MOST_BYTES {
            break;
        }
        chosen.insert(at, text);
    }
    chosen.into_iter().map(|(at, text)| (&summary.entries[at], text)).collect()
}

fn filters(summary: &Summary, chosen: &[(&Entry, Markup)]) -> Markup {
    let causes: BTreeSet<&str> = chosen.iter().map(|(e, _)| e.cause.name()).collect();
    let ops: BTreeSet<&str> = chosen.iter().map(|(e, _)| e.op.as_str()).collect();
    let select = |name: &str, names: Vec<&str>| {
        html! {
            label { (name) " " select name=(name) {
                option value="" { "all" }
                @for name in names { option value=(name) { (name) } }
            } }
        }
    };
    html! {
        form id="filters" {
            (select("cause", causes.into_iter().collect()))
            (select("op", ops.into_iter().collect()))
            (select("executor", summary.executors.iter().map(String::as_str).collect()))
            label { "text " input type="search" name="text" placeholder="conv2d → relu"; }
            button type="reset" { "Show all" }
        }
    }
}

fn entry(entry: &Entry, summary: &Summary) -> Markup {
    let places: Vec<String> = summary
        .executors
        .iter()
        .enumerate()
        .filter(|(_, e)| entry.findings.iter().any(|s| s.finding.worst.executor == **e))
        .map(|(place, _)| place.to_string())
        .collect();
    let executors = entry.findings.len();
    html! {
        details.finding id=(entry.name()) data-cause=(entry.cause.name()) data-op=(entry.op) data-executors=(places.join(" ")) {
            summary {
                (cause(entry.cause.name())) " " code { (entry.op) } " in "
                span.labels { (entry.flow()) }
                ": " (of_bound(entry.ratio(), entry.class())) ", " (counted(executors, "executor"))
                @if entry.executions() != executors { ", " (counted(entry.executions(), "execution")) }
            }
            @if let Some(because) = entry.findings.first().and_then(|s| s.finding.worst.because.as_ref()) { p { (because) "." } }
            div.scroll tabindex="0" { table {
                thead { tr {
                    th { "executor" } th { "reproducer" } th.n { "local error" } th.n { "of its bound" }
                    th { "found by" } th { "evidence" } th.n { "executions" } th { "worst case" }
                } }
                tbody { @for shown in &entry.findings { (row(shown)) } }
            } }
            div.drawings { @for (executors, drawing) in drawn(entry) {
                figure.drawing { div.plot { (drawing) } figcaption { @for e in executors { code { (e) } " " } } }
            } }
        }
    }
}

fn row(shown: &Shown) -> Markup {
    let worst = &shown.finding.worst;
    let found: Vec<&str> =
        Criterion::ALL.into_iter().filter(|c| c.found(worst) == Some(true)).map(Criterion::name).collect();
    html! {
        tr {
            th scope="row" { code { (worst.executor) } }
            td {
                @match (&shown.small, script(shown), small_case(shown)) {
                    (Some(small), script, Some(case)) => {
                        @if let Some(script) = script { a.repro href=(script) { "script" } ", " }
                        a.repro href=(case) { "case" }
                        " (" (grouped(small.elements_left)) " of " (grouped(small.elements)) " elements)"
                    }
                    _ => "–",
                }
            }
            td.n { (diagram::ulp(shown.at_fault().and_then(|n| n.local_ulp))) }
            td.n { (shown.ratio().map_or_else(|| "–".to_owned(), times)) }
            td { (if found.is_empty() { "–".to_owned() } else { found.join(", ") }) }
            td { (worst.grade.as_deref().unwrap_or("–")) }
            td.n { (grouped(shown.finding.executions)) }
            td { (grouped(worst.case)) ": " (shown.finding.case.name) }
        }
    }
}

/// The drawings of an entry: executors whose drawings are equal share one.
fn drawn(entry: &Entry) -> Vec<(Vec<&str>, Markup)> {
    let mut drawn: Vec<(Vec<&str>, Markup)> = Vec::new();
    for shown in &entry.findings {
        let executor = shown.finding.worst.executor.as_str();
        let drawing = diagram::pattern(shown);
        if let Some((executors, _)) = drawn.iter_mut().find(|(_, known)| known.0 == drawing.0) {
            executors.push(executor);
        } else {
            drawn.push((vec![executor], drawing));
        }
    }
    drawn
}

/// Text with its backticks as code.
fn quoted(text: &str) -> Markup {
    html! { @for (i, part) in text.split('`').enumerate() { @if i % 2 == 1 { code { (part) } } @else { (part) } } }
}

/// What a worker said of itself, without where it lies on the machine.
fn facts(text: &str) -> String {
    let Ok(serde_json::Value::Object(facts)) = serde_json::from_str(text) else { return text.to_owned() };
    let empty = |value: &serde_json::Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    let parts =
        facts.iter().filter(|(name, value)| *name != "executable" && !empty(value)).map(|(name, value)| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            format!("{} {value}", name.replace('_', " "))
        });
    parts.collect::<Vec<_>>().join(", ")
}
