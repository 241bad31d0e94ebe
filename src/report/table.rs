//! Verdicts and truths for people.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use comfy_table::{Cell, CellAlignment, Table, presets};
use owo_colors::{OwoColorize, Style};
use ulpian::spec::verdict::{CaseVerdict, Cause, Distance, Grade, TruthLine, Verdict};

/// The figures of one case and the verdict on it.
pub(crate) fn case(verdict: &CaseVerdict) -> String {
    let mut text = String::new();
    let file = verdict.file.as_ref().map_or_else(String::new, |f| format!("  {}", f.dimmed()));
    let _ = writeln!(text, "{}{file}", verdict.case.bold());
    let _ = writeln!(text, "{}", figures(verdict));
    for (executor, why) in failed(verdict) {
        let _ = writeln!(text, "  {} {executor}: {why}", "failed:".red().bold());
    }
    let _ = writeln!(text, "{}", sentence(&verdict.verdict));
    for party in verdict.executors.iter().filter(|p| p.verdict != verdict.verdict) {
        let _ = writeln!(text, "  {}: {}", party.executor, sentence(&party.verdict));
    }
    for e in &verdict.evidence {
        let ulp = e.max_ulp.map_or_else(String::new, |u| format!(", {} ulp", short(u)));
        let line = format!("  {} at {}, tried {}: {}{ulp}", e.executor, e.node, e.tried, e.outcome);
        let _ = writeln!(text, "{}", line.dimmed());
    }
    if let Some(expectation) = &verdict.expectation {
        if expectation.met {
            let _ = writeln!(text, "  {}", "expectation met".green());
        }
        for unmet in &expectation.unmet {
            let _ = writeln!(text, "  {} {unmet}", "expectation unmet:".red().bold());
        }
    }
    text
}

fn figures(verdict: &CaseVerdict) -> Table {
    let mut table =
        compact(&["node", "op", "executor", "class", "local ulp", "accumulated", "of bound", "condition"]);
    for node in &verdict.nodes {
        let mut shown = false;
        for at in node.executors.iter().filter(|e| e.status == "ok") {
            let (name, op) = if shown { ("", "") } else { (node.node.as_str(), node.op.as_str()) };
            shown = true;
            table.add_row(vec![
                Cell::new(name),
                Cell::new(op),
                Cell::new(&at.executor),
                number(at.class_mismatches.map(|n| n.to_string())),
                number(ulp(at.local.as_ref())),
                number(ulp(at.accumulated.as_ref())),
                number(at.local.as_ref().map(|d| short(d.bound_ratio))),
                number(at.condition.map(short)),
            ]);
        }
    }
    table
}

/// A table without rules, two blanks between columns.
pub(super) fn compact(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let cells = header.iter().map(|text| {
        let numeric = !matches!(
            *text,
            "node"
                | "op"
                | "executor"
                | "case"
                | "dtype"
                | "shape"
                | "cause"
                | "for example"
                | "finding"
                | "script"
        );
        let alignment = if numeric { CellAlignment::Right } else { CellAlignment::Left };
        Cell::new(text).set_alignment(alignment)
    });
    table.set_header(cells);
    table
}

pub(super) fn number(text: Option<String>) -> Cell {
    Cell::new(text.unwrap_or_else(|| "-".to_owned())).set_alignment(CellAlignment::Right)
}

fn ulp(distance: Option<&Distance>) -> Option<String> {
    distance.map(|d| short(d.max_ulp))
}

/// The parties that failed, each once, with the reason.
fn failed(verdict: &CaseVerdict) -> BTreeMap<&str, &str> {
    with_status(verdict, "failed")
        .map(|(executor, why)| (executor, why.unwrap_or("no reason given")))
        .collect()
}

/// The parties that cannot run here, with the reason.
pub(crate) fn unavailable(verdict: &CaseVerdict) -> BTreeMap<String, String> {
    with_status(verdict, "unavailable")
        .map(|(executor, why)| (executor.to_owned(), why.unwrap_or("no reason given").to_owned()))
        .collect()
}

fn with_status<'a>(
    verdict: &'a CaseVerdict,
    status: &'a str,
) -> impl Iterator<Item = (&'a str, Option<&'a str>)> {
    let at_nodes = verdict.nodes.iter().flat_map(|n| &n.executors);
    at_nodes.filter(move |e| e.status == status).map(|e| (e.executor.as_str(), e.reason.as_deref()))
}

/// Who could not be heard in any of the cases, and why.
pub(crate) fn not_heard(parties: &BTreeMap<String, String>) -> String {
    let mut text = String::new();
    for (executor, why) in parties {
        let _ = writeln!(text, "{}", format_args!("not heard: {executor}: {why}").dimmed());
    }
    text
}

fn sentence(verdict: &Verdict) -> String {
    format!(
        "{} ({}): {}",
        verdict.cause.name().style(colour(verdict.cause)),
        grade(verdict.grade),
        verdict.because
    )
}

fn colour(cause: Cause) -> Style {
    let style = Style::new().bold();
    match cause {
        Cause::Agree | Cause::Rounding | Cause::Conditioning => style.green(),
        Cause::Unspecified | Cause::Inconclusive => style.yellow(),
        Cause::Framework | Cause::Vendor | Cause::Hardware | Cause::Defect => style.red(),
    }
}

fn grade(grade: Grade) -> &'static str {
    match grade {
        Grade::Refuted => "refuted",
        Grade::Consistent => "consistent",
        Grade::ConfirmedByIntervention => "confirmed by intervention",
        Grade::ConfirmedBitwise => "confirmed bit for bit",
    }
}

/// Three significant digits, and no more room than needed.
pub(super) fn short(x: f64) -> String {
    let size = x.abs();
    if x == 0.0 {
        "0".to_owned()
    } else if !x.is_finite() {
        x.to_string()
    } else if !(1e-3..1e5).contains(&size) {
        format!("{x:.1e}")
    } else {
        let decimals = (2 - size.log10().floor() as i32).clamp(0, 5) as usize;
        let text = format!("{x:.decimals$}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    }
}

/// What many cases came to.
#[derive(Default)]
pub(crate) struct Summary {
    causes: BTreeMap<Cause, usize>,
    slowest: Option<(String, Duration)>,
    expected: usize,
    met: usize,
    judged: usize,
    not_judged: usize,
}

impl Summary {
    /// Counts a case that was judged.
    pub(crate) fn add(&mut self, verdict: &CaseVerdict, took: Duration) {
        self.judged += 1;
        *self.causes.entry(verdict.verdict.cause).or_default() += 1;
        if self.slowest.as_ref().is_none_or(|(_, t)| *t < took) {
            self.slowest = Some((verdict.case.clone(), took));
        }
        if let Some(expectation) = &verdict.expectation {
            self.expected += 1;
            self.met += usize::from(expectation.met);
        }
    }

    /// Counts a case that could not be judged.
    pub(crate) fn add_failure(&mut self) {
        self.not_judged += 1;
    }

    /// How many cases were met with.
    pub(crate) fn len(&self) -> usize {
        self.judged + self.not_judged
    }

    /// The counts as text.
    pub(crate) fn text(&self) -> String {
        let counts: Vec<String> = self
            .causes
            .iter()
            .map(|(cause, n)| format!("{n} {}", cause.name().style(colour(*cause))))
            .collect();
        let mut text = format!("{} judged", count(self.judged, "case"));
        if !counts.is_empty() {
            let _ = write!(text, ": {}", counts.join(", "));
        }
        text.push('\n');
        if self.not_judged > 0 {
            let _ = writeln!(text, "{} could not be judged", self.not_judged.red().bold());
        }
        if let Some((case, took)) = &self.slowest {
            let _ = writeln!(text, "slowest: {case}, {:.2} s", took.as_secs_f64());
        }
        if self.expected > 0 {
            let line = format!("expectation met: {} of {}", self.met, self.expected);
            let style = if self.met == self.expected { Style::new().green() } else { Style::new().red() };
            let _ = writeln!(text, "{}", line.style(style.bold()));
        }
        text
    }
}

/// `1 case`, `2 cases`.
pub(super) fn count(n: usize, word: &str) -> String {
    format!("{n} {}", plural(n, word))
}

fn plural(n: usize, word: &str) -> String {
    if n == 1 { word.to_owned() } else { format!("{word}s") }
}

/// The truths of a case, a row a node result.
pub(crate) fn truth(lines: &[TruthLine], written: &std::path::Path) -> String {
    let mut table = compact(&["node", "dtype", "shape", "elements", "undecided", "radius ulp"]);
    for line in lines {
        table.add_row(vec![
            Cell::new(&line.node),
            Cell::new(&line.dtype),
            Cell::new(format!("{:?}", line.shape)),
            number(Some(line.elements.to_string())),
            number(Some(line.undecided.to_string())),
            number(Some(short(line.max_radius_ulp))),
        ]);
    }
    let name = lines.first().map_or("", |l| l.case.as_str());
    format!("{}  {}\n{table}\n", name.bold(), written.display().dimmed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_keep_three_digits() {
        for (x, text) in [
            (0.0, "0"),
            (0.5, "0.5"),
            (0.499999, "0.5"),
            (31.02, "31"),
            (8123.4, "8123"),
            (0.0123, "0.0123"),
            (1.25e7, "1.2e7"),
            (3.9e-9, "3.9e-9"),
            (f64::INFINITY, "inf"),
            (f64::NAN, "NaN"),
            (100.0, "100"),
            (99_999.0, "99999"),
        ] {
            assert_eq!(short(x), text);
        }
    }
}
