//! What the page and the Markdown summary say alike: tables, and sentences.

use std::collections::{BTreeMap, BTreeSet};

use ulpian_spec::verdict::Cause;

use super::figures::short;
use super::summary::{CAUSES, Criterion, Summary};

/// A table: the first column names the row, the others are figures.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Table {
    pub(super) id: &'static str,
    pub(super) title: String,
    pub(super) note: String,
    pub(super) head: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
    /// The last row is a sum.
    pub(super) total: bool,
}

/// 1234567 as 1,234,567.
pub(super) fn grouped(n: usize) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// n of `noun`, in the plural where it is not one.
pub(super) fn counted(n: usize, noun: &str) -> String {
    format!("{} {noun}{}", grouped(n), if n == 1 { "" } else { "s" })
}

fn share(n: usize, of: usize) -> String {
    if of == 0 { "–".to_owned() } else { format!("{:.1}%", 100.0 * n as f64 / of as f64) }
}

fn get(counts: &BTreeMap<String, usize>, name: &str) -> usize {
    counts.get(name).copied().unwrap_or(0)
}

/// The counts by cause of a fault, or not, as "3 rounding, 1 vendor".
fn listed(counts: &BTreeMap<String, usize>, of: impl Fn(Cause) -> bool) -> String {
    let parts: Vec<String> = CAUSES
        .into_iter()
        .filter(|c| of(*c) && get(counts, c.name()) > 0)
        .map(|c| format!("{} {}", grouped(get(counts, c.name())), c.name()))
        .collect();
    parts.join(", ")
}

/// The causes that the campaign met.
fn met(summary: &Summary) -> Vec<Cause> {
    CAUSES.into_iter().filter(|c| get(&summary.causes, c.name()) > 0).collect()
}

/// The answers, a sentence each.
pub(super) fn headline(summary: &Summary) -> Vec<String> {
    let judged = summary.causes.values().sum::<usize>();
    let faults = summary.faults();
    let mut lines = vec![match faults {
        0 => format!("In none of {} does the judge name a fault.", counted(judged, "judged execution")),
        _ => format!(
            "In {} of {} ({}) the judge names a fault: {}.",
            grouped(faults),
            counted(judged, "judged execution"),
            share(faults, judged),
            listed(&summary.causes, Cause::is_fault)
        ),
    }];
    for (criterion, found, measured, causes) in &summary.criteria {
        let what = match criterion {
            Criterion::Sort => "|a − b| > 1e-3 (sort)",
            Criterion::AssertClose => "torch.testing.assert_close",
            Criterion::Bound => "the bound",
        };
        let by_cause = match found {
            0 => String::new(),
            _ => format!(", of which the judge says: {}", listed(causes, |_| true)),
        };
        lines.push(format!("By {what}: {} of {} found{by_cause}.", grouped(*found), grouped(*measured)));
    }
    lines
}

/// Executions by criterion and cause.
pub(super) fn criteria(summary: &Summary) -> Table {
    let causes = met(summary);
    let judged = summary.causes.values().sum::<usize>();
    let row = |name: &str, found: usize, of: usize, counts: &BTreeMap<String, usize>| {
        let mut row = vec![name.to_owned(), grouped(found), share(found, of)];
        row.extend(causes.iter().map(|c| grouped(get(counts, c.name()))));
        row
    };
    let mut rows: Vec<Vec<String>> = summary
        .criteria
        .iter()
        .map(|(criterion, found, of, counts)| row(criterion.name(), *found, *of, counts))
        .collect();
    rows.push(row("all judged", judged, judged, &summary.causes));
    let mut head = vec!["criterion".to_owned(), "found".to_owned(), "share".to_owned()];
    head.extend(causes.iter().map(|c| c.name().to_owned()));
    Table {
        id: "criteria",
        title: "What each criterion finds, and whose doing it is".to_owned(),
        note: "sort and assert_close compare the chain's outputs with the first executor's, so that its own executions are not counted; bound asks whether a node's own error is beyond what the precision allows. Framework, vendor, hardware and defect are faults; rounding is nobody's, also where single elements near 0 are beyond their bound and the chain's outputs are not.".to_owned(),
        head,
        rows,
        total: true,
    }
}

/// Table II: by op and kind.
pub(super) fn ops(summary: &Summary) -> Table {
    let faults: Vec<Cause> = met(summary).into_iter().filter(|c| c.is_fault()).collect();
    let mut head: Vec<String> =
        ["op", "executions", "crash", "NaN, inf", "sort", "assert_close", "bound"].map(str::to_owned).into();
    head.extend(faults.iter().map(|c| format!("fault: {}", c.name())));
    let row = |(op, r): &(String, super::OpRow)| {
        let mut row = vec![op.clone()];
        row.extend([r.executions, r.failed, r.class].into_iter().chain(r.found).map(grouped));
        row.extend(faults.iter().map(|c| grouped(get(&r.faults, c.name()))));
        row
    };
    Table {
        id: "ops",
        title: "Findings by op and kind (Table II of SORT)".to_owned(),
        note: "Executions with the op. crash: no result. NaN, inf: NaN or infinite where the truth is not, or the reverse. sort: a result of the op differs by more than 1e-3, as the paper counts, whoever made the error. assert_close: the outputs are not close, and the verdict names the op. bound: the op's own error is beyond it. Slowness, the paper's fourth kind, is not measured.".to_owned(),
        head,
        rows: summary.ops.iter().map(row).collect(),
        total: false,
    }
}

/// For each op, what the judge says of the executions that a criterion finds; `None` where it finds nothing.
pub(super) fn causes(summary: &Summary, criterion: Criterion) -> Option<Table> {
    let at = criterion as usize;
    let causes: Vec<Cause> = CAUSES
        .into_iter()
        .filter(|c| summary.ops.iter().any(|(_, row)| get(&row.causes[at], c.name()) > 0))
        .collect();
    let mut head = vec!["op".to_owned(), format!("found by {}", criterion.name())];
    head.extend(causes.iter().map(|c| c.name().to_owned()));
    let found = summary.ops.iter().filter(|(_, row)| row.found[at] > 0);
    let rows: Vec<Vec<String>> = found
        .map(|(op, r)| {
            let mut row = vec![op.clone(), grouped(r.found[at])];
            row.extend(causes.iter().map(|c| grouped(get(&r.causes[at], c.name()))));
            row
        })
        .collect();
    let id = match criterion {
        Criterion::Sort => "sort-causes",
        Criterion::AssertClose => "assert-close-causes",
        Criterion::Bound => "bound-causes",
    };
    (!rows.is_empty()).then(|| Table {
        id,
        title: format!("What the judge says of the executions that {} finds", criterion.name()),
        note: String::new(),
        head,
        rows,
        total: false,
    })
}

/// The executors.
pub(super) fn parties(summary: &Summary) -> Table {
    let causes = met(summary);
    let mut head = vec!["executor".to_owned(), "judged".to_owned()];
    head.extend(causes.iter().map(|c| c.name().to_owned()));
    head.extend(["unavailable".to_owned(), "failed".to_owned()]);
    let rows = summary.parties.iter().map(|party| {
        let silent = |status: &str| {
            party.silent.iter().filter(|(s, ..)| s == status).map(|(_, _, n)| n).sum::<usize>()
        };
        let mut row = vec![party.executor.clone(), grouped(party.causes.values().sum())];
        row.extend(causes.iter().map(|c| grouped(get(&party.causes, c.name()))));
        row.extend([grouped(silent("unavailable")), grouped(silent("failed"))]);
        row
    });
    Table {
        id: "executors",
        title: "By executor".to_owned(),
        note: "The first executor is what the others are compared with; truth is no executor.".to_owned(),
        head,
        rows: rows.collect(),
        total: false,
    }
}

/// Table I: a row for each op or size, a share for each generator, and the total. `None` where no inputs were generated.
pub(super) fn validity(summary: &Summary) -> Option<Table> {
    if summary.validity.is_empty() {
        return None;
    }
    let names: BTreeSet<&String> = summary.validity.iter().flat_map(|v| v.by_op.keys()).collect();
    let cell = |(valid, all): (usize, usize)| match all {
        0 => "/".to_owned(),
        _ => format!("{:.2}% of {}", 100.0 * valid as f64 / all as f64, grouped(all)),
    };
    let of = |name: &String| {
        let shares = summary.validity.iter().map(|v| cell(v.by_op.get(name).copied().unwrap_or_default()));
        [name.clone()].into_iter().chain(shares).collect()
    };
    let mut rows: Vec<Vec<String>> = names.into_iter().map(of).collect();
    let totals = summary
        .validity
        .iter()
        .map(|v| cell(v.by_op.values().fold((0, 0), |(a, b), (valid, all)| (a + valid, b + all))));
    rows.push(["total".to_owned()].into_iter().chain(totals).collect());
    Some(Table {
        id: "validity",
        title: "Valid inputs by op and generator (Table I of SORT)".to_owned(),
        note: "Inputs that PyTorch's rules accept, of all that were made; patterns of several ops are kept by their size. /: the generator made none.".to_owned(),
        head: ["op".to_owned()].into_iter().chain(summary.validity.iter().map(|v| v.generator.clone())).collect(),
        rows,
        total: true,
    })
}

/// Growth of error along chains, as figures.
pub(super) fn growth(summary: &Summary) -> Option<Table> {
    let places = summary.growth.iter().map(|g| g.steps.len()).max()?;
    let rows = summary.growth.iter().map(|g| {
        let step = |p: usize| {
            let cell = |s: &super::Step| {
                format!("{} ulp, {} ({})", short(s.ulp), short(s.absolute), grouped(s.results))
            };
            g.steps.get(p).map_or_else(|| "–".to_owned(), cell)
        };
        [g.executor.clone()].into_iter().chain((0..places).map(step)).collect()
    });
    Some(Table {
        id: "growth",
        title: "Growth of error along chains".to_owned(),
        note: "Median of the worst element's accumulated error in ulp, and absolute (number of results), by depth in the chain.".to_owned(),
        head: ["executor".to_owned()].into_iter().chain((1..=places).map(|p| format!("depth {p}"))).collect(),
        rows: rows.collect(),
        total: false,
    })
}

/// Mean difference by op, and how often it is involved, in chains and alone: Figure 13 as figures.
pub(super) fn single(summary: &Summary) -> Table {
    let ways = if summary.single.is_some() { 2 } else { 1 };
    let suffix = |way: usize| match (ways, way) {
        (1, _) => "",
        (_, 0) => ", in chains",
        _ => ", alone",
    };
    let mut head = vec!["op".to_owned()];
    for what in ["mean |a − b|", "sort", "assert_close", "bound"] {
        head.extend((0..ways).map(|way| format!("{what}{}", suffix(way))));
    }
    let rows = summary.ops.iter().map(|(op, row)| {
        let parts = &[&row.chains, &row.alone][..ways];
        let mut cells = vec![op.clone()];
        cells.extend(parts.iter().map(|p| p.difference.map_or_else(|| "–".to_owned(), short)));
        for at in 0..Criterion::ALL.len() {
            cells.extend(parts.iter().map(|p| share(p.involved[at].0, p.involved[at].1)));
        }
        cells
    });
    Table {
        id: "involved",
        title: "Chains and single ops (Figure 13 of SORT)".to_owned(),
        note: "Mean difference from the first executor, and the share of executions with the op in which it takes part in what a criterion finds.".to_owned(),
        head,
        rows: rows.collect(),
        total: false,
    }
}

/// What the figures do not hold, and how to have it.
pub(super) fn missing(summary: &Summary) -> Vec<String> {
    let done = summary.cases.values().sum::<usize>();
    let mut notes = Vec::new();
    if !summary.complete() {
        notes.push(format!(
            "{} of {} are done: `ulpian campaign resume` goes on.",
            grouped(done),
            counted(summary.planned, "case")
        ));
    }
    for (reason, n) in summary.unjudged.iter().take(5) {
        notes.push(format!("{} not judged, {reason}", counted(*n, "case")));
    }
    let silent: Vec<_> =
        summary.parties.iter().flat_map(|p| p.silent.iter().map(move |s| (&p.executor, s))).collect();
    for (executor, (status, reason, n)) in silent.iter().take(12) {
        notes.push(format!("`{executor}` {status} in {}: {reason}", counted(*n, "execution")));
    }
    if silent.len() > 12 {
        notes.push(format!("{} more reasons are in `ulpian campaign export`.", grouped(silent.len() - 12)));
    }
    if summary.single.is_none() {
        notes.push("Single ops, to compare chains with: give the ledger of a campaign with `--single-op` as a further `--ledger`.".to_owned());
    }
    if summary.validity.len() < 2 {
        notes.push("Other generators' shares of valid inputs: give the ledgers of campaigns with `--baseline`, or `--validity NAME=FILE` with what `ulpian generate --json` printed.".to_owned());
    }
    let unscripted = summary
        .entries
        .iter()
        .flat_map(|e| &e.findings)
        .filter(|shown| shown.small.as_ref().is_none_or(|small| small.repro.is_none()))
        .count();
    if unscripted > 0 {
        notes.push(format!(
            "{} without a script: `ulpian campaign findings` makes findings small and writes one, unless the executor is not PyTorch or the verdict is not met again.",
            counted(unscripted, "finding")
        ));
    }
    notes
}
