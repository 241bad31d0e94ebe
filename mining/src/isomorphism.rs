//! Whether two labelled graphs are the same but for the order of their nodes.
//!
//! Method: colour refinement (1-dimensional Weisfeiler-Leman): a node's colour is its label, then, again and again, its colour
//! and the multiset of the colours of its neighbours, each with the edge's label and direction. Unequal multisets of colours
//! refute. Otherwise one node of the smallest class with several is paired with each of its counterparts in turn, both get a
//! colour of their own, and refinement goes on, until every class has one node; then the edges are compared one by one, so that
//! a collision of hashes cannot make two graphs equal.

use std::collections::HashMap;

use crate::graph::Graph;

/// How many nodes are coloured anew by pairings before two graphs count as different.
const MOST_EFFORT: usize = 20_000_000;
/// Rounds of refinement in a fingerprint.
const ROUNDS: usize = 16;

/// A number that isomorphic graphs share.
pub(crate) fn fingerprint(graph: &Graph, directed: bool) -> u64 {
    let mut colours = Colours::of(graph, directed);
    for _ in 0..ROUNDS {
        colours.round();
    }
    let mut all = colours.colour;
    all.sort_unstable();
    all.iter().fold(mix(0, all.len() as u64), |hash, &c| mix(hash, c))
}

/// Whether the graphs are isomorphic. `false` also where that cannot be found out with a reasonable effort, which happens among
/// highly regular graphs only.
pub(crate) fn isomorphic(a: &Graph, b: &Graph, directed: bool) -> bool {
    if a.nodes.len() != b.nodes.len() {
        return false;
    }
    pair(Colours::of(a, directed), Colours::of(b, directed), &mut 0, (a, b, directed))
}

/// Refines both, and pairs nodes until the colours say which is which.
fn pair(mut left: Colours, mut right: Colours, effort: &mut usize, graphs: (&Graph, &Graph, bool)) -> bool {
    loop {
        left.refine();
        right.refine();
        let (of_left, of_right) = (left.classes(), right.classes());
        let sizes = |classes: &HashMap<u64, Vec<usize>>| {
            let mut sizes: Vec<(u64, usize)> = classes.iter().map(|(&c, nodes)| (c, nodes.len())).collect();
            sizes.sort_unstable();
            sizes
        };
        if sizes(&of_left) != sizes(&of_right) {
            return false;
        }
        let open = of_left.iter().filter(|(_, nodes)| nodes.len() > 1);
        let Some((colour, nodes)) = open.min_by_key(|(c, nodes)| (nodes.len(), **c)) else {
            let to: HashMap<u64, u32> = of_right.iter().map(|(&c, nodes)| (c, nodes[0] as u32)).collect();
            let to: Vec<u32> = left.colour.iter().map(|c| to[c]).collect();
            return equal_under(graphs.0, graphs.1, graphs.2, &to);
        };
        let counterparts = &of_right[colour];
        *effort += left.colour.len();
        if *effort > MOST_EFFORT {
            return false;
        }
        left.single_out(nodes[0]);
        // Nodes with the very same neighbours can change places: one of them stands for all, and no way back is needed.
        if counterparts.iter().all(|&n| right.alike(n, counterparts[0])) {
            right.single_out(counterparts[0]);
            continue;
        }
        return counterparts.iter().any(|&n| {
            let mut right = right.clone();
            right.single_out(n);
            pair(left.clone(), right, effort, graphs)
        });
    }
}

fn equal_under(a: &Graph, b: &Graph, directed: bool, to: &[u32]) -> bool {
    if a.nodes.iter().zip(to).any(|(label, &n)| b.nodes[n as usize] != *label) {
        return false;
    }
    let ends = |from: u32, to: u32| if directed { (from, to) } else { (from.min(to), from.max(to)) };
    let triple = |from: u32, to: u32, label: u32| {
        let (from, to) = ends(from, to);
        (from, to, label)
    };
    let mut moved: Vec<_> =
        a.edges.iter().map(|e| triple(to[e.from as usize], to[e.to as usize], e.label)).collect();
    let mut there: Vec<_> = b.edges.iter().map(|e| triple(e.from, e.to, e.label)).collect();
    moved.sort_unstable();
    moved.dedup();
    there.sort_unstable();
    there.dedup();
    moved == there
}

/// A colour for each node, and who is beside it.
#[derive(Clone)]
struct Colours {
    colour: Vec<u64>,
    /// For each node its neighbours, each with the edge's label and direction, ascending.
    beside: std::sync::Arc<Vec<Vec<(u64, usize)>>>,
    singled: u64,
}

impl Colours {
    fn of(graph: &Graph, directed: bool) -> Colours {
        let mut beside = vec![Vec::new(); graph.nodes.len()];
        for e in &graph.edges {
            let (from, to, label) = (e.from as usize, e.to as usize, u64::from(e.label) * 2);
            beside[from].push((label, to));
            beside[to].push((label + u64::from(directed), from));
        }
        beside.iter_mut().for_each(|b| {
            b.sort_unstable();
            b.dedup();
        });
        let colour = graph.nodes.iter().map(|&label| mix(1, u64::from(label))).collect();
        Colours { colour, beside: std::sync::Arc::new(beside), singled: 0 }
    }

    fn refine(&mut self) {
        let mut classes = self.count();
        loop {
            self.round();
            let now = self.count();
            if now == classes {
                return;
            }
            classes = now;
        }
    }

    fn round(&mut self) {
        let next = |node: usize| {
            let mut around: Vec<u64> =
                self.beside[node].iter().map(|&(label, n)| mix(label, self.colour[n])).collect();
            around.sort_unstable();
            around.iter().fold(mix(2, self.colour[node]), |hash, &c| mix(hash, c))
        };
        self.colour = (0..self.colour.len()).map(next).collect();
    }

    fn count(&self) -> usize {
        let mut colours = self.colour.clone();
        colours.sort_unstable();
        colours.dedup();
        colours.len()
    }

    fn classes(&self) -> HashMap<u64, Vec<usize>> {
        let mut classes: HashMap<u64, Vec<usize>> = HashMap::new();
        for (node, &colour) in self.colour.iter().enumerate() {
            classes.entry(colour).or_default().push(node);
        }
        classes
    }

    fn single_out(&mut self, node: usize) {
        self.singled += 1;
        self.colour[node] = mix(self.colour[node], mix(3, self.singled));
    }

    fn alike(&self, a: usize, b: usize) -> bool {
        self.beside[a] == self.beside[b]
    }
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood 2014) over both.
fn mix(hash: u64, value: u64) -> u64 {
    let mut z = hash.rotate_left(23) ^ value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Edge;

    fn graph(nodes: &[u32], edges: &[(u32, u32)]) -> Graph {
        let mut set = crate::GraphSet::default();
        let edges = edges.iter().map(|&(from, to)| Edge { from, to, label: 0 }).collect();
        set.push("g".to_owned(), nodes.to_vec(), edges, None);
        set.graphs.remove(0)
    }

    fn same(a: &Graph, b: &Graph, directed: bool) -> bool {
        let prints = fingerprint(a, directed) == fingerprint(b, directed);
        assert!(prints || !isomorphic(a, b, directed), "isomorphic graphs share a fingerprint");
        isomorphic(a, b, directed)
    }

    #[test]
    fn order_of_nodes_means_nothing_but_labels_and_direction_do() {
        let a = graph(&[1, 2, 3], &[(0, 1), (1, 2)]);
        assert!(same(&a, &graph(&[3, 1, 2], &[(1, 2), (2, 0)]), true));
        assert!(!same(&a, &graph(&[3, 1, 2], &[(2, 1), (2, 0)]), true));
        assert!(same(&a, &graph(&[3, 1, 2], &[(2, 1), (2, 0)]), false));
        assert!(!same(&a, &graph(&[3, 1, 1], &[(1, 2), (2, 0)]), true));
        let both = graph(&[1, 2, 3], &[(0, 1), (1, 0), (1, 2)]);
        assert!(same(&a, &both, false) && !same(&a, &both, true));
    }

    #[test]
    fn what_refinement_cannot_tell_apart_is_compared_exactly() {
        let ring = |n: u32, from: u32| (0..n).map(move |i| (from + i, from + (i + 1) % n));
        let six = graph(&[0; 6], &ring(6, 0).collect::<Vec<_>>());
        let threes = graph(&[0; 6], &ring(3, 0).chain(ring(3, 3)).collect::<Vec<_>>());
        for directed in [true, false] {
            assert_eq!(fingerprint(&six, directed), fingerprint(&threes, directed));
            assert!(!same(&six, &threes, directed));
            let turned = graph(&[0; 6], &[(0, 2), (2, 4), (4, 1), (1, 3), (3, 5), (5, 0)]);
            assert!(same(&six, &turned, directed));
        }
    }

    #[test]
    fn stars_and_many_equal_parts_are_no_trap() {
        let star: Vec<(u32, u32)> = (1..=400).map(|i| (0, i)).collect();
        let other: Vec<(u32, u32)> = (0..400).map(|i| (400, i)).collect();
        assert!(same(&graph(&[0; 401], &star), &graph(&[0; 401], &other), true));
        let pairs: Vec<(u32, u32)> = (0..200).map(|i| (2 * i, 2 * i + 1)).collect();
        let others: Vec<(u32, u32)> = (0..200).map(|i| (i, i + 200)).collect();
        assert!(same(&graph(&[0; 400], &pairs), &graph(&[0; 400], &others), true));
    }
}
