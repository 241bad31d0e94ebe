//! DFS codes: a pattern as the steps in which a depth-first search meets its edges.
//!
//! Nodes are numbered in the order they are met. A forward step (from < to) meets a new node, a backward step (from >= to) closes a
//! cycle from the newest node to one on the right-most path, or to itself. Among the steps that may follow the same code, backward
//! comes before forward; backward steps go by (to, type), forward steps from the deepest node first, then by type. A first step
//! that is a loop comes before all others. The least code of a pattern is its canonical form, and every start of a least code is
//! itself least: a search that always takes the least next step never gets stuck, since it leaves a node of the right-most path
//! only when that has no new neighbour left, and takes the edges back from a new node before it goes on.

use super::host::{MOST_COUNTED, Signature, signature_bit};
use super::types::{TypeId, Types};
use super::{Found, MOST_NODES};
use crate::graph::Edge;

/// A step of a DFS code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) from: u8,
    pub(super) to: u8,
    /// The edge as seen from `from`.
    pub(super) t: TypeId,
}

impl Step {
    pub(super) fn is_forward(self) -> bool {
        self.from < self.to
    }

    pub(super) fn is_loop(self) -> bool {
        self.from == self.to
    }
}

/// A pattern in the making, with its code.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    pub(super) steps: Vec<Step>,
    pub(super) labels: Vec<u32>,
    /// For each node its neighbours, each with the edge as seen from the node. A loop is there once.
    pub(super) beside: Vec<Vec<(u8, TypeId)>>,
    pub(super) signatures: Vec<Signature>,
    /// For each node the one it was met from, and the type of that step; of the first node nothing that is read.
    tree: Vec<(u8, TypeId)>,
    /// The right-most path, from the first node to the newest.
    pub(super) path: Vec<u8>,
}

impl Pattern {
    /// One node.
    pub(super) fn new(label: u32) -> Pattern {
        Pattern {
            steps: Vec::new(),
            labels: vec![label],
            beside: vec![Vec::new()],
            signatures: vec![0],
            tree: vec![(0, 0)],
            path: vec![0],
        }
    }

    /// How many nodes it has.
    pub(super) fn len(&self) -> usize {
        self.labels.len()
    }

    /// The newest node.
    pub(super) fn newest(&self) -> u8 {
        debug_assert!(self.len() <= MOST_NODES, "a node's number fits");
        (self.len() - 1) as u8
    }

    /// The node that `node` was met from, and the type of that step. Not for the first node.
    pub(super) fn met_from(&self, node: u8) -> (u8, TypeId) {
        self.tree[usize::from(node)]
    }

    /// Adds a step.
    pub(super) fn push(&mut self, step: Step, types: &Types) {
        if step.is_forward() {
            self.labels.push(types.sight(step.t).other);
            self.beside.push(Vec::new());
            self.signatures.push(0);
            self.tree.push((step.from, step.t));
        }
        self.steps.push(step);
        self.beside[usize::from(step.from)].push((step.to, step.t));
        self.sign(step.from);
        if !step.is_loop() {
            self.beside[usize::from(step.to)].push((step.from, types.reverse(step.t)));
            self.sign(step.to);
        }
        self.find_path();
    }

    /// Takes the last step back.
    pub(super) fn pop(&mut self) {
        let Some(step) = self.steps.pop() else { return };
        self.beside[usize::from(step.from)].pop();
        self.sign(step.from);
        if step.is_forward() {
            self.labels.pop();
            self.beside.pop();
            self.signatures.pop();
            self.tree.pop();
        } else if !step.is_loop() {
            self.beside[usize::from(step.to)].pop();
            self.sign(step.to);
        }
        self.find_path();
    }

    fn sign(&mut self, node: u8) {
        let beside = &self.beside[usize::from(node)];
        let nth = |i: usize| beside[..=i].iter().filter(|(_, t)| *t == beside[i].1).count();
        let bit = |i: usize| signature_bit(beside[i].1, nth(i).min(MOST_COUNTED));
        self.signatures[usize::from(node)] = (0..beside.len()).fold(0, |bits, i| bits | bit(i));
    }

    fn find_path(&mut self) {
        let mut node = self.newest();
        self.path.clear();
        self.path.push(node);
        while node != 0 {
            node = self.tree[usize::from(node)].0;
            self.path.push(node);
        }
        self.path.reverse();
    }

    /// The pattern as it is handed out, held by these graphs.
    pub(super) fn found(&self, types: &Types, graphs: Vec<u32>) -> Found {
        let edge = |step: &Step| {
            let sight = types.sight(step.t);
            let (from, to) = if sight.enters() { (step.to, step.from) } else { (step.from, step.to) };
            Edge { from: u32::from(from), to: u32::from(to), label: sight.edge_label() }
        };
        Found { nodes: self.labels.clone(), edges: self.steps.iter().map(edge).collect(), graphs }
    }
}
