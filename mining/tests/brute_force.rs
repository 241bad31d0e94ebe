//! Brute force: every connected set of edges of small random graphs, by canonical form.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{Canonical, Random, Small, by_form, canonical, set_of};
use ulpian_mining::gspan::{Options, mine};

/// The forms of all connected subgraphs with at least one edge and 2 to `most` nodes.
fn subgraphs(graph: &Small, most: usize, directed: bool) -> BTreeSet<Canonical> {
    let (nodes, edges) = graph;
    let mut forms = BTreeSet::new();
    let mut done: BTreeSet<u32> = BTreeSet::new();
    let mut open: Vec<u32> = (0..edges.len()).map(|e| 1 << e).collect();
    let ends = |set: u32| {
        let chosen = edges.iter().enumerate().filter(move |(e, _)| set >> e & 1 == 1);
        chosen.flat_map(|(_, &(from, to, _))| [from, to]).collect::<BTreeSet<u32>>()
    };
    while let Some(set) = open.pop() {
        let within = ends(set);
        if within.len() > most || !done.insert(set) {
            continue;
        }
        if within.len() >= 2 {
            let place: BTreeMap<u32, u32> = within.iter().copied().zip(0..).collect();
            let labels: Vec<u32> = within.iter().map(|&n| nodes[n as usize]).collect();
            let chosen = edges.iter().enumerate().filter(|(e, _)| set >> e & 1 == 1);
            let moved: Vec<_> =
                chosen.map(|(_, &(from, to, label))| (place[&from], place[&to], label)).collect();
            forms.insert(canonical(&labels, &moved, directed));
        }
        for (e, (from, to, _)) in edges.iter().enumerate() {
            if within.contains(from) || within.contains(to) {
                open.push(set | 1 << e);
            }
        }
    }
    forms
}

/// Random graphs with few labels, so that much is alike; loops, antiparallel and parallel edges among them.
fn random_set(random: &mut Random, directed: bool) -> Vec<Small> {
    let (node_labels, edge_labels) = (1 + random.below(3), 1 + random.below(2));
    let loops = random.below(2) == 0;
    (0..4 + random.below(3))
        .map(|_| {
            let nodes: Vec<u32> =
                (0..2 + random.below(7)).map(|_| random.below(node_labels) as u32).collect();
            let mut edges = BTreeSet::new();
            for _ in 0..(nodes.len() + random.below(5)).min(12) {
                let (from, to) = (random.below(nodes.len()) as u32, random.below(nodes.len()) as u32);
                let (from, to) = if directed { (from, to) } else { (from.min(to), from.max(to)) };
                if from != to || loops {
                    edges.insert((from, to, random.below(edge_labels) as u32));
                }
            }
            (nodes, edges.into_iter().collect())
        })
        .collect()
}

fn agree(directed: bool, seed: u64) -> usize {
    let mut random = Random(seed);
    let mut patterns = 0;
    for round in 0..200 {
        let graphs = random_set(&mut random, directed);
        let most = 3 + random.below(4);
        let support = 1 + random.below(3);
        let mut expected: BTreeMap<Canonical, Vec<u32>> = BTreeMap::new();
        for (graph, i) in graphs.iter().zip(0..) {
            for form in subgraphs(graph, most, directed) {
                expected.entry(form).or_default().push(i);
            }
        }
        expected.retain(|_, holders| holders.len() >= support);
        let options = Options::new(support, 2..=most, directed).unwrap();
        let set = set_of(&graphs);
        // With all occurrences kept, and with one a graph, so that most graphs are searched again and again.
        for options in [options.clone(), options.most_kept(0)] {
            let found = by_form(&mine(&set, &options, &|_| {}), directed);
            assert!(found == expected, "round {round}: {graphs:?}, {options:?}");
        }
        patterns += expected.len();
    }
    patterns
}

#[test]
fn directed_patterns_of_200_random_sets() {
    assert!(agree(true, 1) > 15_000);
}

#[test]
fn undirected_patterns_of_200_random_sets() {
    assert!(agree(false, 2) > 10_000);
}

#[test]
fn duplicates_are_those_with_one_canonical_form() {
    let mut random = Random(5);
    for round in 0..200 {
        let directed = round % 2 == 0;
        let mut graphs: Vec<Small> = (0..3).flat_map(|_| random_set(&mut random, directed)).collect();
        for (nodes, edges) in graphs.clone() {
            // The same with its nodes turned around.
            let last = nodes.len() as u32 - 1;
            let turned = edges.iter().map(|&(from, to, label)| (last - from, last - to, label)).collect();
            graphs.push((nodes.into_iter().rev().collect(), turned));
        }
        let mut set = set_of(&graphs);
        let dropped = set.deduplicate(directed);
        let forms: BTreeSet<Canonical> =
            graphs.iter().map(|(nodes, edges)| canonical(nodes, edges, directed)).collect();
        assert_eq!(set.graphs.len(), forms.len(), "round {round}: {graphs:?}");
        assert_eq!(set.graphs.len() + dropped.len(), graphs.len());
    }
}
