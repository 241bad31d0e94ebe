//! Kinds of edge, numbered.
//!
//! A type is an edge as seen from one of its ends: that end's label, the edge's code, the other end's label. A code is twice the
//! edge's label, plus one where the edge enters the end it is seen from. Without direction it is twice the label from both ends.
//! Types are numbered in the order of (label, code, label), so that comparing the numbers of two edges at one node compares code,
//! then label: all that the order of DFS codes asks for.

use std::collections::HashMap;

use crate::graph::{Edge, Graph};

/// The number of a type.
pub(super) type TypeId = u32;

/// An edge as seen from one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Sight {
    pub(super) label: u32,
    code: u32,
    pub(super) other: u32,
}

impl Sight {
    /// An edge with this label, as seen from a node it leaves or enters.
    pub(super) fn new(label: u32, edge_label: u32, enters: bool, other: u32) -> Sight {
        Sight { label, code: edge_label * 2 + u32::from(enters), other }
    }

    /// The edge's label.
    pub(super) fn edge_label(self) -> u32 {
        self.code / 2
    }

    /// Whether the edge enters the end it is seen from.
    pub(super) fn enters(self) -> bool {
        self.code % 2 == 1
    }
}

/// An edge as seen from where it starts and from where it ends.
pub(super) fn sights(graph: &Graph, edge: Edge, directed: bool) -> (Sight, Sight) {
    let (from, to) = (graph.nodes[edge.from as usize], graph.nodes[edge.to as usize]);
    (Sight::new(from, edge.label, false, to), Sight::new(to, edge.label, directed, from))
}

/// The frequent types.
#[derive(Debug)]
pub(super) struct Types {
    /// Ascending.
    sights: Vec<Sight>,
    /// For each the type of the same edge from its other end.
    reverse: Vec<TypeId>,
    /// For each the graphs that have such an edge, ascending.
    graphs: Vec<Vec<u32>>,
    numbers: HashMap<Sight, TypeId>,
}

impl Types {
    /// The types of edges that at least `support` graphs have.
    pub(super) fn frequent(graphs: &[Graph], directed: bool, support: usize) -> Types {
        let mut seen: HashMap<Sight, (u32, usize)> = HashMap::new();
        for (i, graph) in (0u32..).zip(graphs) {
            for &edge in &graph.edges {
                let (a, b) = sights(graph, edge, directed);
                for sight in [a, b] {
                    let (last, count) = seen.entry(sight).or_insert((u32::MAX, 0));
                    if *last != i {
                        (*last, *count) = (i, *count + 1);
                    }
                }
            }
        }
        let mut kept: Vec<Sight> =
            seen.into_iter().filter(|(_, (_, n))| *n >= support).map(|(s, _)| s).collect();
        kept.sort_unstable();
        let numbers: HashMap<Sight, TypeId> = kept.iter().copied().zip(0..).collect();
        let turned = |s: &Sight| Sight { label: s.other, code: s.code ^ u32::from(directed), other: s.label };
        let reverse = kept.iter().map(|s| numbers[&turned(s)]).collect();
        let mut holders: Vec<Vec<u32>> = vec![Vec::new(); kept.len()];
        for (i, graph) in (0u32..).zip(graphs) {
            for &edge in &graph.edges {
                let (a, b) = sights(graph, edge, directed);
                for t in [a, b].iter().filter_map(|s| numbers.get(s)) {
                    let holders = &mut holders[*t as usize];
                    if holders.last() != Some(&i) {
                        holders.push(i);
                    }
                }
            }
        }
        Types { sights: kept, reverse, graphs: holders, numbers }
    }

    pub(super) fn len(&self) -> usize {
        self.sights.len()
    }

    pub(super) fn number(&self, sight: Sight) -> Option<TypeId> {
        self.numbers.get(&sight).copied()
    }

    pub(super) fn sight(&self, t: TypeId) -> Sight {
        self.sights[t as usize]
    }

    pub(super) fn reverse(&self, t: TypeId) -> TypeId {
        self.reverse[t as usize]
    }

    /// The graphs that have such an edge, ascending.
    pub(super) fn graphs(&self, t: TypeId) -> &[u32] {
        &self.graphs[t as usize]
    }

    pub(super) fn has(&self, graph: u32, t: TypeId) -> bool {
        self.graphs(t).binary_search(&graph).is_ok()
    }

    /// The types of edges seen from a node of this label.
    pub(super) fn seen_from(&self, label: u32) -> std::ops::Range<TypeId> {
        let start = self.sights.partition_point(|s| s.label < label);
        let end = self.sights.partition_point(|s| s.label <= label);
        start as TypeId..end as TypeId
    }

    /// The types of edges from a node of one label to a node of the other.
    pub(super) fn between(&self, label: u32, other: u32) -> impl Iterator<Item = TypeId> + '_ {
        self.seen_from(label).filter(move |&t| self.sights[t as usize].other == other)
    }
}
