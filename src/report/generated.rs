//! What `generate` made, for people.

use std::fmt::Write;
use std::path::Path;

use comfy_table::Cell;
use owo_colors::OwoColorize;
use ulpian::records::GenerateSummary;

use super::table::{compact, count, number};

/// Unfit patterns and reasons for leaving calls out that are named; the rest is counted.
const MOST_NAMED: usize = 5;

/// The counts by op or by size, and what was left out.
pub(crate) fn summary(summary: &GenerateSummary, out: Option<&Path>) -> String {
    let mut text = String::new();
    let checked = summary.accepted.is_some();
    let good = if checked { "accepted" } else { "valid" };
    let mut table = compact(&["", good, "inputs", "share"]);
    for (key, &(accepted, all)) in &summary.by_op {
        table.add_row(vec![
            Cell::new(key),
            number(Some(accepted.to_string())),
            number(Some(all.to_string())),
            number(Some(share(accepted, all))),
        ]);
    }
    let _ = writeln!(text, "{table}");
    let total = summary.accepted.unwrap_or(summary.valid);
    let _ = writeln!(
        text,
        "{} for {} from {}: {} {good} ({})",
        count(summary.inputs, "input"),
        count(summary.patterns, "pattern"),
        count(summary.calls, "recorded call"),
        total.bold(),
        share(total, summary.inputs)
    );
    if let Some(out) = out {
        let _ = writeln!(text, "wrote them to {}", out.display());
    }
    for unfit in summary.unfit.iter().take(MOST_NAMED) {
        let nodes = unfit.nodes.join(", ");
        let _ =
            writeln!(text, "{} {} ({nodes}): {}", "no input for pattern".yellow(), unfit.pattern, unfit.why);
    }
    if summary.unfit.len() > MOST_NAMED {
        let _ = writeln!(
            text,
            "no input for {}; --json names them",
            count(summary.unfit.len() - MOST_NAMED, "more pattern")
        );
    }
    let left_out: usize = summary.left_out.values().sum();
    if left_out > 0 {
        let _ = writeln!(text, "{} left out:", count(left_out, "recorded call"));
        let mut reasons: Vec<_> = summary.left_out.iter().collect();
        reasons.sort_by_key(|(reason, n)| (std::cmp::Reverse(**n), *reason));
        for (reason, n) in reasons.iter().take(MOST_NAMED) {
            let _ = writeln!(text, "  {n} {reason}");
        }
        if reasons.len() > MOST_NAMED {
            let _ = writeln!(text, "  and {}", count(reasons.len() - MOST_NAMED, "further reason"));
        }
    }
    text
}

fn share(part: usize, all: usize) -> String {
    if all == 0 { "-".to_owned() } else { format!("{:.2}%", 100.0 * part as f64 / all as f64) }
}
