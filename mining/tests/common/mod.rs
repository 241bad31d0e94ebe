//! What several tests need: canonical forms by trying all orders, independent of the miner's.

#![allow(dead_code)]

use std::collections::BTreeMap;

use ulpian_mining::GraphSet;
use ulpian_mining::graph::Edge;
use ulpian_mining::gspan::Found;

/// Labels in order of position, and edges as (from, to, label), sorted.
pub(crate) type Canonical = (Vec<u32>, Vec<(u32, u32, u32)>);

/// A small graph: the labels of its nodes, and edges as (from, to, label).
pub(crate) type Small = (Vec<u32>, Vec<(u32, u32, u32)>);

/// The least form over all orders of the nodes in which labels ascend, and among equal labels what surrounds a node.
pub(crate) fn canonical(nodes: &[u32], edges: &[(u32, u32, u32)], directed: bool) -> Canonical {
    let around = |node: u32| {
        let mut around = Vec::new();
        for &(from, to, label) in edges {
            if from == node {
                around.push((0, label, nodes[to as usize], from == to));
            }
            if to == node {
                around.push((u32::from(directed), label, nodes[from as usize], from == to));
            }
        }
        around.sort_unstable();
        (nodes[node as usize], around)
    };
    let keys: Vec<_> = (0..nodes.len() as u32).map(around).collect();
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    order.sort_by(|&a, &b| keys[a].cmp(&keys[b]));
    let mut best: Option<Canonical> = None;
    permute(&mut order, 0, &keys, &mut |order| {
        let mut place = vec![0u32; order.len()];
        order.iter().zip(0u32..).for_each(|(&node, i)| place[node] = i);
        let moved = |&(from, to, label): &(u32, u32, u32)| {
            let (from, to) = (place[from as usize], place[to as usize]);
            if directed || from <= to { (from, to, label) } else { (to, from, label) }
        };
        let mut edges: Vec<_> = edges.iter().map(moved).collect();
        edges.sort_unstable();
        edges.dedup();
        let form = (order.iter().map(|&n| nodes[n]).collect(), edges);
        if best.as_ref().is_none_or(|b| form < *b) {
            best = Some(form);
        }
    });
    best.expect("there is at least one order")
}

/// Every order that permutes nodes of equal keys among themselves.
fn permute<K: PartialEq>(order: &mut Vec<usize>, at: usize, keys: &[K], visit: &mut dyn FnMut(&[usize])) {
    if at == order.len() {
        return visit(order);
    }
    for other in at..order.len() {
        if keys[order[other]] == keys[order[at]] {
            order.swap(at, other);
            permute(order, at + 1, keys, visit);
            order.swap(at, other);
        }
    }
}

/// The canonical form of a pattern that was found.
pub(crate) fn form(found: &Found, directed: bool) -> Canonical {
    let edges: Vec<_> = found.edges.iter().map(|e| (e.from, e.to, e.label)).collect();
    canonical(&found.nodes, &edges, directed)
}

/// Patterns by canonical form; each must be there once.
pub(crate) fn by_form(found: &[Found], directed: bool) -> BTreeMap<Canonical, Vec<u32>> {
    let mut forms = BTreeMap::new();
    for pattern in found {
        let before = forms.insert(form(pattern, directed), pattern.graphs.clone());
        assert!(before.is_none(), "a pattern was found twice: {pattern:?}");
    }
    forms
}

/// A set of graphs from labels and edges. Labels are those numbers as texts.
pub(crate) fn set_of(graphs: &[Small]) -> GraphSet {
    let mut set = GraphSet::default();
    let most = |labels: &mut dyn Iterator<Item = u32>| labels.max().map_or(0, |m| m + 1);
    for label in 0..most(&mut graphs.iter().flat_map(|(nodes, _)| nodes.iter().copied())) {
        set.node_labels.number(&label.to_string());
    }
    for label in 0..most(&mut graphs.iter().flat_map(|(_, edges)| edges.iter().map(|e| e.2))) {
        set.edge_labels.number(&label.to_string());
    }
    for (i, (nodes, edges)) in graphs.iter().enumerate() {
        let edges = edges.iter().map(|&(from, to, label)| Edge { from, to, label }).collect();
        set.push(i.to_string(), nodes.clone(), edges, None);
    }
    set
}

/// Random numbers: SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// From 0 to `below` - 1.
    pub(crate) fn below(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % below as u64) as usize
    }
}
