//! The growth of errors, for people.

use std::fmt::Write;

use comfy_table::Cell;
use owo_colors::OwoColorize;
use ulpian::records::{BenchLine, BenchSummary, Spread};

use super::table::{compact, count, number, short};

/// A row for each executor, depth and op, and what it is over. Of a pair of figures the first is the worst, the second the median.
pub(crate) fn table(lines: &[BenchLine], summary: &BenchSummary) -> String {
    let mut text = String::new();
    if !lines.is_empty() {
        let mut table = compact(&[
            "executor",
            "depth",
            "op",
            "results",
            "local ulp",
            "median",
            "accumulated",
            "median",
            "relative",
            "median",
            "growth",
            "condition",
            "of bound",
        ]);
        let mut shown = "";
        for line in lines {
            let executor = if shown == line.executor { "" } else { line.executor.as_str() };
            shown = &line.executor;
            let worst = |s: Option<Spread>| number(s.map(|s| short(s.worst)));
            let median = |s: Option<Spread>| number(s.map(|s| short(s.median)));
            table.add_row(vec![
                Cell::new(executor),
                number(Some(line.depth.to_string())),
                Cell::new(&line.op),
                number(Some(line.results.to_string())),
                worst(line.local_ulp),
                median(line.local_ulp),
                worst(line.accumulated_ulp),
                median(line.accumulated_ulp),
                worst(line.accumulated_rel),
                median(line.accumulated_rel),
                median(line.growth),
                median(line.condition),
                worst(line.bound_ratio),
            ]);
        }
        let _ = writeln!(text, "{table}");
    }
    for (executor, why) in &summary.not_heard {
        let _ =
            writeln!(text, "{}", format_args!("not heard, or not to the end: {executor}: {why}").dimmed());
    }
    let failed = match summary.failed {
        0 => String::new(),
        n => format!(", {} not", n.red()),
    };
    let _ = writeln!(
        text,
        "{} measured{failed}, {}; each figure is the worst element's of a result, growth and condition are medians",
        count(summary.cases, "case"),
        count(summary.results, "result")
    );
    text
}
