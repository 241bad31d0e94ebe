//! Exact gSpan: every connected subgraph that at least so many graphs hold, each once.
//!
//! Source: Yan and Han, "gSpan: graph-based substructure pattern mining", ICDM 2002, with these differences.
//!
//! - Edges have a direction, and several edges with different labels may join two nodes (see `types`). A self loop is a backward
//!   edge of a node to itself.
//! - An occurrence is a map of nodes, injective, under which every edge of the pattern is an edge of the graph. Support is the
//!   number of graphs with an occurrence.
//! - Occurrences are not all kept. Only nodes on the right-most path can grow, so occurrences that agree there count as one, and
//!   one of them stands for all (see `projection`): the 48!/42! ways to lay six leaves onto 48 equal consumers become 48. Where
//!   even these are too many, the graph is searched anew for an occurrence when those at hand do not grow (see `matching`).
//!
//! The result does not depend on the number of threads.

mod candidates;
mod code;
mod grow;
mod host;
mod matching;
mod minimality;
mod occurrences;
mod projection;
mod types;

use std::ops::RangeInclusive;

use crate::Error;
use crate::graph::{Edge, GraphSet};
use grow::Miner;

pub(crate) use occurrences::Occurrences;

/// The most nodes a pattern may have.
pub const MOST_NODES: usize = 16;

/// What is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    support: usize,
    nodes: RangeInclusive<usize>,
    directed: bool,
    most_kept: usize,
}

/// How many occurrences of a pattern are kept, in all graphs together, unless [`Options::most_kept`] says otherwise.
const MOST_KEPT: usize = 2_000_000;

impl Options {
    /// Patterns that at least `support` graphs hold, with so many nodes. Refuses a support of 0 and nodes outside 2 to
    /// [`MOST_NODES`].
    pub fn new(support: usize, nodes: RangeInclusive<usize>, directed: bool) -> Result<Options, Error> {
        if support == 0 {
            return Err(Error::Options {
                message: "a support of 0 would hold for every graph there is; give 1 or more".to_owned(),
            });
        }
        if *nodes.start() < 2 || nodes.end() < nodes.start() || *nodes.end() > MOST_NODES {
            return Err(Error::Options {
                message: format!(
                    "{}..{} is no range of nodes within 2..{MOST_NODES}",
                    nodes.start(),
                    nodes.end()
                ),
            });
        }
        Ok(Options { support, nodes, directed, most_kept: MOST_KEPT })
    }

    /// How many occurrences of a pattern are kept, in all graphs together, before single graphs are searched instead. This changes
    /// memory and time, not what is found.
    #[must_use]
    pub fn most_kept(self, occurrences: usize) -> Options {
        Options { most_kept: occurrences, ..self }
    }

    /// Whether edges have a direction.
    pub fn directed(&self) -> bool {
        self.directed
    }
}

/// A pattern that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The labels of its nodes, as numbers of the [`GraphSet`].
    pub nodes: Vec<u32>,
    /// Its edges, along the data flow.
    pub edges: Vec<Edge>,
    /// The graphs that hold it: positions in the [`GraphSet`], ascending.
    pub graphs: Vec<u32>,
}

/// How far mining is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Kinds of edge from which patterns have been grown.
    pub done: usize,
    /// Kinds of edge in all.
    pub total: usize,
    /// Patterns found so far.
    pub patterns: usize,
}

/// Mines. Patterns come by number of nodes, then of edges, then by the numbers of their labels. `report` is called from several
/// threads.
pub fn mine(set: &GraphSet, options: &Options, report: &(dyn Fn(Progress) + Sync)) -> Vec<Found> {
    let mut found = Miner::new(set, options).search(report);
    let size = |p: &Found| (p.nodes.len(), p.edges.len());
    found.sort_unstable_by(|a, b| {
        size(a).cmp(&size(b)).then_with(|| (&a.nodes, &a.edges).cmp(&(&b.nodes, &b.edges)))
    });
    found
}
