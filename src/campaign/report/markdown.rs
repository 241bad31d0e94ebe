//! The summary as Markdown: the answers, the tables, the figures as files, and the worst findings.

use std::fmt::Write;

use super::figures::{Figure, times};
use super::summary::{Criterion, Summary};
use super::tables::{self, Table, counted, grouped};
use super::{FIGURES, script};

/// Entries that are listed; the page has them all.
const MOST_ENTRIES: usize = 20;

pub(super) fn text(summary: &Summary, figures: &[Figure]) -> String {
    let mut out = format!("# Campaign {}\n\n", clean(&summary.name));
    if !summary.complete() {
        out += "**This campaign has not run to its end: the figures are those so far.**\n\n";
    }
    let executors: Vec<String> = summary.executors.iter().map(|e| code(e)).collect();
    let _ = writeln!(
        out,
        "{} of {}, {} over {}.\n",
        counted(summary.cases.values().sum(), "case"),
        counted(summary.patterns, "pattern"),
        counted(summary.executions.values().sum(), "execution"),
        executors.join(", ")
    );
    for line in tables::headline(summary) {
        let _ = writeln!(out, "- {}", clean(&line));
    }
    out += "\n[index.html](index.html) has the findings with their drawings, to be filtered.\n";

    table(&mut out, &tables::criteria(summary));
    faults(&mut out, summary);
    table(&mut out, &tables::ops(summary));
    for criterion in Criterion::ALL {
        if let Some(found) = tables::causes(summary, criterion) {
            table(&mut out, &found);
        }
    }
    table(&mut out, &tables::single(summary));
    plots(&mut out, figures.iter().filter(|f| !f.name.starts_with("growth")));
    if let Some(growth) = tables::growth(summary) {
        table(&mut out, &growth);
        plots(&mut out, figures.iter().filter(|f| f.name.starts_with("growth")));
    }
    if let Some(validity) = tables::validity(summary) {
        table(&mut out, &validity);
    }
    table(&mut out, &tables::parties(summary));

    findings(&mut out, summary);
    let missing = tables::missing(summary);
    if !missing.is_empty() {
        out += "\n## What is not in these figures\n\n";
        for note in missing {
            let _ = writeln!(out, "- {}", clean(&note));
        }
    }
    out
}

fn faults(out: &mut String, summary: &Summary) {
    if summary.kinds.is_empty() {
        return;
    }
    *out += "\n## Faults by op\n\n";
    *out += "| op | cause | executions | patterns | executors | worst, of its bound | NaN, inf | because |\n";
    *out += "|---|---|--:|--:|--:|--:|--:|---|\n";
    for kind in &summary.kinds {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            kind.op,
            kind.cause.name(),
            grouped(kind.executions),
            grouped(kind.patterns),
            kind.executors.len(),
            kind.ratio.map_or_else(|| "–".to_owned(), times),
            grouped(kind.class),
            kind.because.first().map(|(why, _)| clean(why)).unwrap_or_default()
        );
    }
}

fn findings(out: &mut String, summary: &Summary) {
    *out += "\n## Findings\n\n";
    if summary.entries.is_empty() {
        *out += "No execution was put down to a fault.\n";
        return;
    }
    *out += "| op | cause | pattern | executors | executions | worst, of its bound | reproducer |\n";
    *out += "|---|---|---|---|--:|--:|---|\n";
    for entry in summary.entries.iter().take(MOST_ENTRIES) {
        let executors: Vec<String> = entry.findings.iter().map(|s| code(&s.finding.worst.executor)).collect();
        let link = entry.findings.iter().find_map(script);
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} |",
            entry.op,
            entry.cause.name(),
            entry.flow(),
            executors.join(", "),
            grouped(entry.executions()),
            entry.ratio().map_or_else(|| "–".to_owned(), times),
            link.map_or_else(|| "–".to_owned(), |file| format!("[script]({file})")),
        );
    }
    if let Some(more) = summary.entries.len().checked_sub(MOST_ENTRIES).filter(|n| *n > 0) {
        let _ = writeln!(out, "\nand {} more, in [index.html](index.html#findings).", grouped(more));
    }
}

fn plots<'a>(out: &mut String, figures: impl Iterator<Item = &'a Figure>) {
    for figure in figures {
        match figure.svg {
            Some(_) => {
                let _ = writeln!(
                    out,
                    "\n**{}.** {}\n\n![{}]({FIGURES}/{}.svg)",
                    clean(&figure.title),
                    clean(&figure.caption),
                    clean(&figure.title),
                    figure.name
                );
            }
            None => {
                let _ = writeln!(out, "\n**{}.** {}", clean(&figure.title), clean(&figure.caption));
            }
        }
    }
}

fn table(out: &mut String, table: &Table) {
    let _ = writeln!(out, "\n## {}\n", clean(&table.title));
    if !table.note.is_empty() {
        let _ = writeln!(out, "{}\n", clean(&table.note));
    }
    let head: Vec<String> = table.head.iter().map(|h| clean(h)).collect();
    let _ = writeln!(out, "| {} |", head.join(" | "));
    let _ = writeln!(out, "|---|{}", "--:|".repeat(table.head.len().saturating_sub(1)));
    for row in &table.rows {
        let mut cells = row.iter();
        let first = cells.next().map(|c| code(c)).unwrap_or_default();
        let others: Vec<String> = cells.map(|c| clean(c)).collect();
        let _ = writeln!(out, "| {first} | {} |", others.join(" | "));
    }
}

/// Text that is no markup, within a table's cell and without; what stands in backticks stays code.
fn clean(text: &str) -> String {
    let (mut out, mut code) = (String::new(), false);
    for c in text.chars() {
        code ^= c == '`';
        match c {
            '\n' | '\r' => out.push(' '),
            '|' => out.push_str("\\|"),
            '<' | '>' | '*' | '_' | '[' | ']' | '\\' if !code => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

fn code(text: &str) -> String {
    format!("`{}`", text.replace('`', "'").replace('|', "\\|").replace('\n', " "))
}
