//! Nodes that are shared by dozens of consumers: a star has 48!/42! equal occurrences of six leaves.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Random, Small, set_of};
use ulpian_mining::gspan::{Options, mine};

const CONSUMERS: usize = 48;

/// How many multisets of branches have so many nodes in all, given for each size how many kinds of branch there are.
fn multisets(kinds: &[(usize, usize)], nodes: usize) -> usize {
    let mut ways = vec![0; nodes + 1];
    ways[0] = 1;
    for &(size, kinds) in kinds {
        for _ in 0..kinds {
            for total in size..=nodes {
                ways[total] += ways[total - size];
            }
        }
    }
    ways[nodes]
}

/// A node with 48 consumers of four labels in turn; where `tails`, another call behind each.
fn star(tails: bool) -> Small {
    let (mut nodes, mut edges) = (vec![0], Vec::new());
    for i in 0..CONSUMERS {
        nodes.push(1 + (i % 4) as u32);
        let consumer = nodes.len() as u32 - 1;
        edges.push((0, consumer, 0));
        if tails {
            nodes.push(5);
            edges.push((consumer, consumer + 1, 0));
        }
    }
    (nodes, edges)
}

#[test]
fn the_patterns_of_a_star_are_the_multisets_of_its_branches() {
    for directed in [true, false] {
        for tails in [true, false] {
            let set = set_of(&vec![star(tails); 6]);
            let found = mine(&set, &Options::new(5, 2..=7, directed).unwrap(), &|_| {});
            let branches: &[(usize, usize)] = if tails { &[(1, 4), (2, 4)] } else { &[(1, 4)] };
            for nodes in 2..=7 {
                let of_size = found.iter().filter(|p| p.nodes.len() == nodes);
                let (with_centre, without): (Vec<_>, Vec<_>) = of_size.partition(|p| p.nodes.contains(&0));
                assert_eq!(with_centre.len(), multisets(branches, nodes - 1), "{nodes} nodes, {tails}");
                assert_eq!(without.len(), if tails && nodes == 2 { 4 } else { 0 });
            }
            assert!(found.iter().all(|p| p.graphs == [0, 1, 2, 3, 4, 5]));
        }
    }
}

/// A graph with two nodes that are consumed by 48 others each: leaves alone, and layers of a chain of four calls, each fed by the
/// layer before.
fn shared(random: &mut Random) -> Small {
    let mut nodes = vec![0, 1];
    let mut edges = Vec::new();
    let mut add = |label: usize, from: &[u32], edges: &mut Vec<(u32, u32, u32)>| {
        nodes.push(label as u32);
        let node = nodes.len() as u32 - 1;
        edges.extend(from.iter().map(|&f| (f, node, 0)));
        node
    };
    for _ in 0..CONSUMERS {
        add(2 + random.below(4), &[0], &mut edges);
    }
    let mut before = 0;
    for _ in 0..CONSUMERS {
        let mut node = add(2, &[1, before], &mut edges);
        for _ in 0..3 {
            node = add(2 + random.below(4), &[node], &mut edges);
        }
        before = node;
    }
    (nodes, edges)
}

#[test]
fn two_thousand_graphs_with_shared_nodes_need_little_memory() {
    let mut random = Random(3);
    let graphs: Vec<Small> = (0..2000).map(|_| shared(&mut random)).collect();
    let found = mine(&set_of(&graphs), &Options::new(5, 2..=5, true).unwrap(), &|_| {});
    assert!(found.len() > 1_500, "{}", found.len());
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap();
        let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
        assert!(kibibytes < 1 << 20, "{kibibytes} KiB");
    }
}

#[test]
fn how_many_occurrences_are_kept_changes_nothing_among_shared_nodes() {
    let mut random = Random(4);
    let graphs: Vec<Small> = (0..8).map(|_| shared(&mut random)).collect();
    let set = set_of(&graphs);
    let options = Options::new(7, 2..=5, true).unwrap();
    let found = mine(&set, &options.clone(), &|_| {});
    assert!(found.len() > 300, "{}", found.len());
    for kept in [0, 200, 2000] {
        assert!(mine(&set, &options.clone().most_kept(kept), &|_| {}) == found, "{kept}");
    }
}
