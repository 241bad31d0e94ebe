//! Mined patterns for people.

use std::fmt::Write;
use std::path::Path;

use comfy_table::Cell;
use ulpian::records::Mined;
use ulpian::spec::trace::{Pattern, PatternEdge};

use super::table::{compact, count, number};

/// How long an example may be, in characters.
const LONGEST: usize = 90;

/// How many patterns there are of each size, with the one that most graphs hold.
pub(crate) fn table(patterns: &[Pattern], mined: &Mined, written: &Path) -> String {
    let mut table = compact(&["nodes", "patterns", "most support", "for example"]);
    for (&nodes, count) in &mined.by_nodes {
        let of_size = patterns.iter().filter(|p| p.nodes.len() == nodes);
        // The first of those with the most support.
        let Some(best) = of_size.reduce(|best, p| if p.support > best.support { p } else { best }) else {
            continue;
        };
        table.add_row(vec![
            number(Some(nodes.to_string())),
            number(Some(count.to_string())),
            number(Some(best.support.to_string())),
            Cell::new(drawn(best)),
        ]);
    }
    let mut text = String::new();
    if !patterns.is_empty() {
        let _ = writeln!(text, "{table}");
    }
    let (patterns, graphs) = (count(mined.patterns, "pattern"), count(mined.graphs, "graph"));
    let _ =
        writeln!(text, "{patterns} in {graphs}, {:.3} s, written to {}", mined.seconds, written.display());
    text
}

/// A pattern in a line: a chain as `a > b > c`, anything else edge by edge, nodes numbered where a label comes again.
fn drawn(pattern: &Pattern) -> String {
    let name = |node: usize| {
        let label = &pattern.nodes[node];
        let again = pattern.nodes.iter().filter(|l| *l == label).count() > 1;
        if again { format!("{label}.{node}") } else { label.clone() }
    };
    let arrow = if pattern.directed { " > " } else { " - " };
    let text = match chain(pattern) {
        Some(order) => order.iter().map(|&n| pattern.nodes[n].as_str()).collect::<Vec<_>>().join(arrow),
        None => {
            let edge = |e: &PatternEdge| format!("{}{arrow}{}", name(e.ends().0), name(e.ends().1));
            pattern.edges.iter().map(edge).collect::<Vec<_>>().join(", ")
        }
    };
    match text.char_indices().nth(LONGEST) {
        None => text,
        Some((cut, _)) => format!("{}…", &text[..cut]),
    }
}

/// The nodes of a pattern that is a chain along its edges, in order.
fn chain(pattern: &Pattern) -> Option<Vec<usize>> {
    let ends: Vec<(usize, usize)> = pattern.edges.iter().map(PatternEdge::ends).collect();
    if !pattern.directed || ends.len() + 1 != pattern.nodes.len() {
        return None;
    }
    let start = (0..pattern.nodes.len()).find(|&n| ends.iter().all(|&(_, to)| to != n))?;
    let mut order = vec![start];
    while order.len() < pattern.nodes.len() {
        let last = order[order.len() - 1];
        let mut next = ends.iter().filter(|&&(from, _)| from == last);
        let (Some(&(_, to)), None) = (next.next(), next.next()) else { return None };
        order.push(to);
    }
    Some(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(nodes: &[&str], edges: &[(usize, usize)]) -> Pattern {
        Pattern {
            format: String::new(),
            id: 0,
            nodes: nodes.iter().map(|&n| n.to_owned()).collect(),
            edges: edges.iter().map(|&(from, to)| PatternEdge::Plain(from, to)).collect(),
            directed: true,
            support: 1,
            graphs: vec!["g".to_owned()],
            bindings: Vec::new(),
        }
    }

    #[test]
    fn chains_are_drawn_as_chains() {
        assert_eq!(drawn(&pattern(&["relu", "conv2d", "relu"], &[(1, 0), (2, 1)])), "relu > conv2d > relu");
        let fork = pattern(&["relu", "conv2d", "relu"], &[(1, 0), (1, 2)]);
        assert_eq!(drawn(&fork), "conv2d > relu.0, conv2d > relu.2");
        assert_eq!(drawn(&pattern(&["mul"], &[(0, 0)])), "mul > mul");
    }
}
