//! An order of summation, for people.

use std::fmt::Write;

use owo_colors::OwoColorize;
use ulpian::order::Measured;
use ulpian::records::OrderLine;

/// Letters of a tree that are printed.
const MOST_LETTERS: usize = 600;

/// What was found, line by line.
pub(crate) fn found(line: &OrderLine, measured: &Measured) -> String {
    let mut text = String::new();
    let shapes: Vec<String> = line.shapes.iter().map(|(name, s)| format!("{name} {s:?}")).collect();
    let _ = writeln!(
        text,
        "{} of {}, {} ({}): {} terms",
        line.op.bold(),
        line.executor,
        line.dtype,
        shapes.join(", "),
        line.k
    );
    let mut row = |name: &str, value: &dyn std::fmt::Display| {
        let _ = writeln!(text, "  {name:<9} {value}");
    };
    if line.tree.is_some() {
        row("order", &line.name.as_deref().unwrap_or("none of the known ones").bold());
        row("tree", &tree(line));
        let depth = line.depth.unwrap_or(0);
        row("depth", &format!("a term passes through at most {depth} additions"));
    }
    if let Some(why) = &line.inconclusive {
        row("order", &format!("{} {why}", "inconclusive:".yellow().bold()));
    }
    match &line.coverage {
        Some(c) if c.complete => row("coverage", &"every term arrives"),
        Some(c) => row("coverage", &format!("{} {:?}", "terms that are lost:".red().bold(), c.missing)),
        None => {}
    }
    if line.tree.is_some() {
        match line.deviating.as_slice() {
            [] => row("pairs", &format!("{} agree", line.pairs)),
            others => {
                let some: Vec<String> = others.iter().take(8).map(ToString::to_string).collect();
                let more = if others.len() > 8 { ", …" } else { "" };
                let words =
                    "columns of the result are added in another order and left out here, those of elements";
                row("except", &format!("{} {words} {}{more}", others.len().yellow(), some.join(", ")));
            }
        }
    }
    let best = measured.trials.iter().max_by_key(|t| t.same);
    match (measured.same_bits(), best) {
        (Some(t), _) => row(
            "verified",
            &format!(
                "{} with {}, {} elements of random data",
                "same bits".green().bold(),
                t.name,
                t.elements
            ),
        ),
        (None, Some(t)) if line.tree.is_some() && measured.replays.is_empty() => {
            let reason = if measured.tree.as_ref().is_some_and(|tree| tree.widest() > 2) {
                "some node adds more than two numbers at once"
            } else {
                "no arithmetic tried has the bits of every element"
            };
            row("verified", &format!("{reason}; nearest: {}, {} of {}", t.name, t.same, t.elements));
        }
        (None, None) if line.tree.is_some() && measured.replays.is_empty() => {
            row("verified", &"not compared: this order has no arithmetic to try");
        }
        _ => {}
    }
    for replay in &measured.replays {
        row("replay", &format!("{} as replay:{}, {}", "same bits".green().bold(), replay.name, replay.what));
    }
    text
}

fn tree(line: &OrderLine) -> String {
    let text = line.text.as_deref().unwrap_or_default();
    match text.char_indices().nth(MOST_LETTERS) {
        Some((end, _)) => format!("{} … (--json has all of it)", &text[..end]),
        None => text.to_owned(),
    }
}
