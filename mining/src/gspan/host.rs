//! A graph made ready for mining: frequent edges only, sorted by type at each node.

use std::ops::Range;

use super::types::{TypeId, Types, sights};
use crate::graph::Graph;

/// A set of (type, how many) pairs, hashed to 64 bits. Whatever a pattern's node has, its image has: so bits of the one that are
/// missing in the other tell the two apart, and nothing follows from equal bits.
pub(super) type Signature = u64;

/// The bit for a node's `count`-th edge of a type.
pub(super) fn signature_bit(t: TypeId, count: usize) -> Signature {
    let hash = (u64::from(t) * 8 + count as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    1 << (hash >> 58)
}

/// Counts beyond this have no bit of their own.
pub(super) const MOST_COUNTED: usize = 6;

/// A graph made ready for mining.
#[derive(Debug)]
pub(super) struct Host {
    /// For each node where its runs start, and an end.
    runs_at: Vec<u32>,
    /// For each run its type, ascending within a node.
    run_types: Vec<TypeId>,
    /// For each run where its neighbours start, and an end.
    run_starts: Vec<u32>,
    /// The neighbours, ascending within a run.
    neighbours: Vec<u32>,
    signatures: Vec<Signature>,
    /// Nodes with edges, sorted by label, then number.
    by_label: Vec<(u32, u32)>,
}

impl Host {
    pub(super) fn new(graph: &Graph, types: &Types, directed: bool) -> Host {
        let mut seen: Vec<(u32, TypeId, u32)> = Vec::with_capacity(2 * graph.edges.len());
        for &edge in &graph.edges {
            let (a, b) = sights(graph, edge, directed);
            if let (Some(a), Some(b)) = (types.number(a), types.number(b)) {
                seen.push((edge.from, a, edge.to));
                seen.push((edge.to, b, edge.from));
            }
        }
        seen.sort_unstable();
        // Without direction a loop, and the two of an antiparallel pair, come twice. A loop in a directed graph has both types.
        seen.dedup();
        let mut host = Host {
            runs_at: Vec::with_capacity(graph.nodes.len() + 1),
            run_types: Vec::new(),
            run_starts: Vec::new(),
            neighbours: Vec::with_capacity(seen.len()),
            signatures: vec![0; graph.nodes.len()],
            by_label: Vec::new(),
        };
        let mut last = None;
        for (node, t, neighbour) in seen {
            while host.runs_at.len() <= node as usize {
                host.runs_at.push(host.run_types.len() as u32);
            }
            if last != Some((node, t)) {
                last = Some((node, t));
                host.run_types.push(t);
                host.run_starts.push(host.neighbours.len() as u32);
            }
            host.neighbours.push(neighbour);
        }
        while host.runs_at.len() <= graph.nodes.len() {
            host.runs_at.push(host.run_types.len() as u32);
        }
        host.run_starts.push(host.neighbours.len() as u32);
        for node in 0..graph.nodes.len() as u32 {
            for run in host.runs(node) {
                let count = host.members(run).len().min(MOST_COUNTED);
                let t = host.run_types[run];
                host.signatures[node as usize] |= (1..=count).fold(0, |bits, c| bits | signature_bit(t, c));
            }
            if !host.runs(node).is_empty() {
                host.by_label.push((graph.nodes[node as usize], node));
            }
        }
        host.by_label.sort_unstable();
        host
    }

    /// The runs of a node: its neighbours by type.
    pub(super) fn runs(&self, node: u32) -> Range<usize> {
        self.runs_at[node as usize] as usize..self.runs_at[node as usize + 1] as usize
    }

    pub(super) fn run_type(&self, run: usize) -> TypeId {
        self.run_types[run]
    }

    pub(super) fn members(&self, run: usize) -> &[u32] {
        &self.neighbours[self.run_starts[run] as usize..self.run_starts[run + 1] as usize]
    }

    /// The neighbours of a node along edges of this type, ascending.
    pub(super) fn along(&self, node: u32, t: TypeId) -> &[u32] {
        let runs = self.runs(node);
        match self.run_types[runs.clone()].binary_search(&t) {
            Ok(i) => self.members(runs.start + i),
            Err(_) => &[],
        }
    }

    pub(super) fn has_edge(&self, node: u32, t: TypeId, other: u32) -> bool {
        self.along(node, t).binary_search(&other).is_ok()
    }

    /// Whether a node has all that a pattern's node with this signature has, as far as signatures tell.
    pub(super) fn may_be(&self, node: u32, signature: Signature) -> bool {
        signature & !self.signatures[node as usize] == 0
    }

    /// The nodes of this label that have edges, ascending.
    pub(super) fn with_label(&self, label: u32) -> impl Iterator<Item = u32> + '_ {
        let start = self.by_label.partition_point(|&(l, _)| l < label);
        self.by_label[start..].iter().take_while(move |&&(l, _)| l == label).map(|&(_, node)| node)
    }
}
