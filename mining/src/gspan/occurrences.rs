//! Occurrences of patterns that were found.

use super::code::{Pattern, Step};
use super::host::Host;
use super::matching::each;
use super::types::{Sight, Types};
use super::{Found, Options};
use crate::graph::GraphSet;

/// Graphs made ready to be searched for patterns that were found in them.
#[derive(Debug)]
pub(crate) struct Occurrences {
    types: Types,
    hosts: Vec<Host>,
    directed: bool,
}

impl Occurrences {
    /// Makes the graphs ready.
    pub(crate) fn new(set: &GraphSet, options: &Options) -> Occurrences {
        let types = Types::frequent(&set.graphs, options.directed, options.support);
        let hosts = set.graphs.iter().map(|graph| Host::new(graph, &types, options.directed)).collect();
        Occurrences { types, hosts, directed: options.directed }
    }

    /// Calls `visit` with the images of the pattern's nodes in a graph, for each image of the first at most `most_each` times.
    /// The pattern is one that was found with these options.
    pub(crate) fn visit(&self, found: &Found, graph: u32, most_each: usize, visit: &mut dyn FnMut(&[u32])) {
        if let Some(pattern) = self.pattern(found) {
            each(&self.hosts[graph as usize], &pattern, most_each, visit);
        }
    }

    /// The pattern with its code, in which the nodes come in the order they are met.
    fn pattern(&self, found: &Found) -> Option<Pattern> {
        let mut pattern = Pattern::new(*found.nodes.first()?);
        for edge in &found.edges {
            // The end that was met later is where a backward step starts and a forward step ends.
            let later = edge.from.max(edge.to);
            let forward = later as usize == pattern.len();
            let (from, to) =
                if forward { (edge.from.min(edge.to), later) } else { (later, edge.from.min(edge.to)) };
            let enters = self.directed && from != edge.from;
            let label = |node: u32| found.nodes.get(node as usize).copied();
            let t = self.types.number(Sight::new(label(from)?, edge.label, enters, label(to)?))?;
            pattern.push(Step { from: u8::try_from(from).ok()?, to: u8::try_from(to).ok()?, t }, &self.types);
        }
        Some(pattern)
    }
}
