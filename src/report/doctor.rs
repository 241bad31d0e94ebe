//! What a machine has, for people.

use std::fmt::Write;

use owo_colors::OwoColorize;
use ulpian::records::Finding;

/// One component a line; what is missing says how to get it.
pub(crate) fn table(findings: &[Finding], ready: bool) -> String {
    let width = findings.iter().map(|f| f.component.len()).max().unwrap_or(0);
    let mut text = String::new();
    for f in findings {
        let name = format!("{:width$}", f.component);
        let known: Vec<&str> =
            [&f.version, &f.place, &f.detail].into_iter().filter_map(|part| part.as_deref()).collect();
        let rest = known.join("  ");
        let _ = if f.found {
            writeln!(text, "{} {name}  {rest}", "found  ".green())
        } else {
            writeln!(text, "{} {name}  {rest}", "missing".yellow())
        };
        if let Some(remedy) = &f.remedy {
            let _ = writeln!(text, "        {:width$}  {}", "", format_args!("to get it: {remedy}").dimmed());
        }
    }
    text.push_str(if ready {
        "\nPyTorch can be heard: torch:cpu runs here.\n"
    } else {
        "\nPyTorch cannot be heard yet; recorded parties and replays can be judged without it.\n"
    });
    text
}
