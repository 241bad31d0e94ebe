//! gSpan's text format: `t # i`, then `v id label` and `e from to label`, a graph after the other.
//!
//! Labels are words, numbers among them. In a file of patterns the first line of each is `t # i * support`, and a line `x: 0 4 7`
//! may name the graphs that hold it, by their `i`. A last line `t # -1` means nothing and may stand.

use std::io;
use std::path::Path;

use crate::error::Error;
use crate::files::{Limits, Lines, write_text};
use crate::graph::{Edge, GraphSet};
use crate::gspan::Found;

/// How many graphs a file may hold.
const MOST_GRAPHS: usize = 5_000_000;

/// A graph, or a pattern, of such a file. Labels are numbers of the [`GraphSet`] it was read with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextGraph {
    /// Its number.
    pub id: u64,
    /// The labels of its nodes.
    pub nodes: Vec<u32>,
    /// Its edges, as they stand there.
    pub edges: Vec<Edge>,
    /// A pattern's support.
    pub support: Option<usize>,
    /// The numbers of the graphs that hold a pattern.
    pub graphs: Option<Vec<u64>>,
}

/// Reads a file, compressed with zstd or not. Its labels are added to those of `set`, its graphs are not.
pub fn read(path: &Path, limits: Limits, set: &mut GraphSet) -> Result<Vec<TextGraph>, Error> {
    parse(&mut Lines::open(path, limits)?, set)
}

/// Reads what `lines` give, as [`read`] does.
pub fn parse(lines: &mut Lines, set: &mut GraphSet) -> Result<Vec<TextGraph>, Error> {
    let mut graphs: Vec<TextGraph> = Vec::new();
    let mut numbers = std::collections::HashSet::new();
    let mut ended = false;
    while let Some(text) = lines.next_line()? {
        let result = match graphs.last_mut() {
            _ if ended => Err("there is more after the end, `t # -1`".to_owned()),
            _ if text.starts_with('t') => match start(text) {
                Ok(Some(_)) if graphs.len() == MOST_GRAPHS => {
                    Err(format!("there are more than {MOST_GRAPHS} graphs"))
                }
                Ok(Some(graph)) if !numbers.insert(graph.id) => {
                    Err(format!("there is a graph {} already", graph.id))
                }
                Ok(Some(graph)) => {
                    graphs.push(graph);
                    Ok(())
                }
                Ok(None) => {
                    ended = true;
                    Ok(())
                }
                Err(message) => Err(message),
            },
            None => Err("the first line is not `t # NUMBER`".to_owned()),
            Some(graph) => take(graph, text, set),
        };
        if let Err(message) = result {
            return Err(lines.error(message));
        }
    }
    Ok(graphs)
}

/// The graph that a `t` line opens; none if it is the end.
fn start(text: &str) -> Result<Option<TextGraph>, String> {
    let words: Vec<&str> = text.split_ascii_whitespace().take(6).collect();
    let number = |word: &str| word.parse::<u64>().ok();
    let graph =
        match words[..] {
            ["t", "#", "-1"] => return Ok(None),
            ["t", "#", id] => number(id).map(|id| TextGraph { id, ..TextGraph::default() }),
            ["t", "#", id, "*", support] => number(id)
                .zip(support.parse().ok())
                .map(|(id, support)| TextGraph { id, support: Some(support), ..TextGraph::default() }),
            _ => None,
        };
    graph
        .map(Some)
        .ok_or_else(|| format!("`{}` is not `t # NUMBER` or `t # NUMBER * SUPPORT`", shortened(text)))
}

/// Adds a line to the graph it belongs to.
fn take(graph: &mut TextGraph, text: &str, set: &mut GraphSet) -> Result<(), String> {
    if graph.graphs.is_some() {
        return Err("the list `x:` ends a pattern".to_owned());
    }
    let mut words = text.split_ascii_whitespace();
    let (kind, a, b, c, more) = (words.next(), words.next(), words.next(), words.next(), words.next());
    match (kind, a, b, c, more) {
        (Some("v"), Some(id), Some(label), None, None) => {
            if !graph.edges.is_empty() {
                return Err("a node after the first edge".to_owned());
            }
            if id.parse() != Ok(graph.nodes.len()) {
                return Err(format!(
                    "node `{}` instead of {}: nodes count from 0",
                    shortened(id),
                    graph.nodes.len()
                ));
            }
            graph.nodes.push(set.node_labels.number(label));
            Ok(())
        }
        (Some("e"), Some(from), Some(to), Some(label), None) => {
            let end = |word: &str| match word.parse::<u32>() {
                Ok(node) if (node as usize) < graph.nodes.len() => Ok(node),
                _ => Err(format!("`{}` is none of the {} nodes", shortened(word), graph.nodes.len())),
            };
            let (from, to) = (end(from)?, end(to)?);
            graph.edges.push(Edge { from, to, label: set.edge_labels.number(label) });
            Ok(())
        }
        (Some("x:"), ..) => {
            let number = |word: &str| {
                word.parse::<u64>().map_err(|_| format!("`{}` is no graph's number", shortened(word)))
            };
            let holders = text.split_ascii_whitespace().skip(1).map(number).collect::<Result<Vec<_>, _>>()?;
            if graph.support.is_some_and(|support| support != holders.len()) {
                return Err(format!("{} graphs are named, which is not the support", holders.len()));
            }
            graph.graphs = Some(holders);
            Ok(())
        }
        _ => Err(format!("`{}` is not `v ID LABEL`, `e FROM TO LABEL` or `t # NUMBER`", shortened(text))),
    }
}

/// The start of a text, for a message.
fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

impl GraphSet {
    /// Adds graphs that were read from text with this set, each under the name `file#id`.
    pub fn push_text(&mut self, file: &str, graphs: Vec<TextGraph>) {
        for graph in graphs {
            self.push(format!("{file}#{}", graph.id), graph.nodes, graph.edges, None);
        }
    }
}

/// Writes a set of graphs as text, numbered from 0.
pub fn write_graphs(path: &Path, set: &GraphSet) -> Result<(), Error> {
    write_text(path, |out| {
        for (i, graph) in set.graphs.iter().enumerate() {
            writeln!(out, "t # {i}")?;
            for (id, &label) in graph.nodes.iter().enumerate() {
                writeln!(out, "v {id} {}", word(set.node_labels.text(label))?)?;
            }
            for e in &graph.edges {
                writeln!(out, "e {} {} {}", e.from, e.to, word(set.edge_labels.text(e.label))?)?;
            }
        }
        Ok(())
    })
}

/// Writes patterns of a set of graphs as text; the graphs that hold them by their position in the set.
pub fn write_patterns(path: &Path, set: &GraphSet, patterns: &[Found]) -> Result<(), Error> {
    write_text(path, |out| {
        for (i, pattern) in patterns.iter().enumerate() {
            writeln!(out, "t # {i} * {}", pattern.graphs.len())?;
            for (id, &label) in pattern.nodes.iter().enumerate() {
                writeln!(out, "v {id} {}", word(set.node_labels.text(label))?)?;
            }
            for e in &pattern.edges {
                writeln!(out, "e {} {} {}", e.from, e.to, word(set.edge_labels.text(e.label))?)?;
            }
            out.write_all(b"x:")?;
            for graph in &pattern.graphs {
                write!(out, " {graph}")?;
            }
            out.write_all(b"\n\n")?;
        }
        Ok(())
    })
}

/// A label, which must be one word.
fn word(label: &str) -> io::Result<&str> {
    if label.is_empty() || label.contains(|c: char| c.is_whitespace() || c.is_control()) {
        let message =
            format!("the label `{}` is not one word, which gSpan's text format needs", label.escape_debug());
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    Ok(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str, set: &mut GraphSet) -> Result<Vec<TextGraph>, String> {
        let reader = Box::new(io::Cursor::new(text.as_bytes().to_vec()));
        let mut lines = Lines::new(Path::new("g"), reader, Limits { line: 200, text: 10_000 });
        parse(&mut lines, set).map_err(|e| e.to_string())
    }

    #[test]
    fn graphs_and_patterns_are_read() {
        let text = "t # 7\r\nv 0 relu\n\nv 1 10\ne 0 1 a\ne 1 1 0\nt # 0 * 2\nv 0 10\nx: 5 6 \nt # -1\n";
        let mut set = GraphSet::default();
        let graphs = parsed(text, &mut set).unwrap();
        assert_eq!(graphs.len(), 2);
        assert_eq!((graphs[0].id, &graphs[0].nodes[..]), (7, &[0, 1][..]));
        assert_eq!((set.node_labels.text(0), set.node_labels.text(1)), ("relu", "10"));
        let edges = [Edge { from: 0, to: 1, label: 0 }, Edge { from: 1, to: 1, label: 1 }];
        assert_eq!(graphs[0].edges, edges);
        assert_eq!((graphs[1].support, &graphs[1].graphs), (Some(2), &Some(vec![5, 6])));
        assert_eq!(parsed("", &mut set).unwrap(), []);
    }

    #[test]
    fn hostile_text_is_refused_with_its_line() {
        let cases = [
            ("v 0 1", "g:1: the first line is not `t # NUMBER`"),
            ("t", "g:1: `t` is not `t # NUMBER` or"),
            ("t # x", "g:1: `t # x` is not"),
            ("t # 1 * many", "g:1: "),
            ("t # 99999999999999999999", "g:1: "),
            ("t # 1\nt # 1", "g:2: there is a graph 1 already"),
            ("t # 1\nv 1 5", "g:2: node `1` instead of 0"),
            ("t # 1\nv -1 5", "g:2: node `-1` instead of 0"),
            ("t # 1\nv 0", "g:2: `v 0` is not"),
            ("t # 1\nv 0 5 6", "g:2: `v 0 5 6` is not"),
            ("t # 1\nv 0 5\ne 0 1 0", "g:3: `1` is none of the 1 nodes"),
            ("t # 1\nv 0 5\ne 0 0", "g:3: `e 0 0` is not"),
            ("t # 1\nv 0 5\ne 0 4294967296 0", "g:3: `4294967296` is none"),
            ("t # 1\nv 0 5\ne 0 0 0\nv 1 5", "g:4: a node after the first edge"),
            ("t # 1 * 3\nv 0 5\nx: 1 2", "g:3: 2 graphs are named"),
            ("t # 1 * 1\nv 0 5\nx: 1\nv 1 5", "g:4: the list `x:` ends a pattern"),
            ("t # -1\nt # 0", "g:2: there is more after the end"),
            ("hello", "g:1: the first line is not"),
            ("t # 0\n\u{0}", "g:2: "),
            ("t # 0\nvv 0 1", "g:2: `vv 0 1` is not"),
        ];
        for (text, start) in cases {
            let error = parsed(text, &mut GraphSet::default()).unwrap_err();
            assert!(error.starts_with(start), "{text:?}: {error}");
        }
        let long = format!("t # 0\nv 0 {}", "x".repeat(300));
        assert!(parsed(&long, &mut GraphSet::default()).unwrap_err().contains("longer than 200 bytes"));
        let many: String = (0..5000).map(|i| format!("t # {i}\n")).collect();
        assert!(parsed(&many, &mut GraphSet::default()).unwrap_err().contains("longer than 10000 bytes"));
    }

    #[test]
    fn what_is_written_is_read_and_a_label_of_two_words_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("g.gspan");
        let mut set = GraphSet::default();
        let text = "t # 0\nv 0 relu\nv 1 10\ne 0 1 a\ne 1 1 0\nt # 1\nv 0 relu\n";
        let graphs = parsed(text, &mut set).unwrap();
        set.push_text("g", graphs.clone());
        write_graphs(&path, &set).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        assert_eq!(read(&path, Limits::default(), &mut set).unwrap(), graphs);
        set.node_labels.number("two words");
        set.push("more".to_owned(), vec![2], Vec::new(), None);
        assert!(write_graphs(&path, &set).unwrap_err().to_string().contains("`two words` is not one word"));
    }
}
