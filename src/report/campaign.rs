//! How far a campaign is and what it has found, for people.

use std::fmt::Write;

use comfy_table::Cell;
use owo_colors::OwoColorize;
use ulpian::records::{CampaignFinding, CampaignSummary};

use super::table::{compact, count, number};

/// The counts of a ledger.
pub(crate) fn summary(summary: &CampaignSummary) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{} of {} done{}",
        summary.done.bold(),
        count(summary.cases, "case"),
        match summary.seconds_left {
            Some(seconds) if summary.left > 0 => format!(
                ", {} left: about {} at {} s a case",
                summary.left,
                duration(seconds),
                significant(summary.seconds / summary.done.max(1) as f64)
            ),
            _ if summary.left > 0 => format!(", {} left", summary.left),
            _ => format!(" in {}", duration(summary.seconds)),
        }
    );
    for (cases, what) in [
        (summary.invalid, "invalid: PyTorch's rules reject them, or they cannot be read"),
        (summary.failed, "whose truth cannot be computed"),
    ] {
        if cases > 0 {
            let _ = writeln!(text, "{} {what}", count(cases, "case").yellow());
        }
    }
    if summary.executions > 0 {
        let mut table = compact(&["executor", "cause", "executions"]);
        for (executor, causes) in &summary.causes {
            for (i, (cause, &executions)) in causes.iter().enumerate() {
                table.add_row(vec![
                    Cell::new(if i == 0 { executor } else { "" }),
                    Cell::new(cause),
                    number(Some(executions.to_string())),
                ]);
            }
        }
        let found = &summary.found;
        let _ = writeln!(text, "{table}");
        let _ = writeln!(
            text,
            "of {}: {} beyond the bound at some element, {} with a fault named; against the first executor {} differ by more \
             than 1e-3 (SORT), {} are not close (assert_close)",
            count(summary.executions, "execution"),
            found.bound,
            found.fault,
            found.sort,
            found.assert_close
        );
    }
    text
}

/// What the findings became, a row each.
pub(crate) fn findings(lines: &[CampaignFinding], groups: usize) -> String {
    let mut text = String::new();
    let mut table = compact(&["finding", "executor", "cause", "executions", "elements", "left", "script"]);
    for line in lines {
        table.add_row(vec![
            Cell::new(&line.finding),
            Cell::new(&line.executor),
            Cell::new(&line.cause),
            number(Some(line.executions.to_string())),
            number(line.elements_left.map(|_| line.elements.to_string())),
            number(line.elements_left.map(|n| n.to_string())),
            Cell::new(match line.reproduced {
                Some(true) => format!("shows it: {}", line.repro.as_deref().unwrap_or_default()),
                Some(false) => format!("does not show it: {}", line.repro.as_deref().unwrap_or_default()),
                None => line.repro.clone().unwrap_or_else(|| "-".to_owned()),
            }),
        ]);
    }
    if !lines.is_empty() {
        let _ = writeln!(text, "{table}");
    }
    let missed = lines.iter().filter(|l| l.elements_left.is_none()).count();
    let _ = writeln!(
        text,
        "{} of {}, {} with a script",
        lines.len() - missed,
        count(groups, "finding"),
        lines.iter().filter(|l| l.repro.is_some()).count()
    );
    if lines.iter().any(|l| l.reproduced.is_some()) {
        let shown = lines.iter().filter(|l| l.reproduced == Some(true)).count();
        let _ = writeln!(text, "{} shown by running it", count(shown, "finding"));
    }
    if missed > 0 {
        let _ = writeln!(text, "{} not met again when judged anew", count(missed, "finding").yellow());
    }
    text
}

/// Seconds as hours and minutes, or minutes and seconds.
fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..60 => format!("{} s", significant(seconds)),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

fn significant(seconds: f64) -> String {
    if seconds < 10.0 { format!("{seconds:.2}") } else { format!("{seconds:.0}") }
}

#[cfg(test)]
mod tests {
    #[test]
    fn durations_are_short() {
        for (seconds, text) in
            [(0.123, "0.12 s"), (59.0, "59 s"), (61.4, "1 min 1 s"), (7_300.0, "2 h 1 min")]
        {
            assert_eq!(super::duration(seconds), text);
        }
    }
}
