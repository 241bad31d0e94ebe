//! The 49 models of OpenMMLab: the patterns are those that other miners find, each with the graphs that hold it.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use common::{Canonical, by_form, canonical};
use ulpian_mining::files::Lines;
use ulpian_mining::graph::{EdgeLabels, FromTrace};
use ulpian_mining::gspan::{Found, Options, mine};
use ulpian_mining::{GraphSet, Limits, ModelGraph, gspan_text};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn models() -> GraphSet {
    let mut set = GraphSet::default();
    let graphs = gspan_text::read(&data("openmmlab49a.gspan.zst"), Limits::default(), &mut set).unwrap();
    set.push_text("openmmlab49a", graphs);
    assert_eq!(set.graphs.len(), 49);
    set.sort_labels();
    set
}

fn mined(set: &GraphSet, support: usize, directed: bool) -> Vec<Found> {
    mine(set, &Options::new(support, 2..=7, directed).unwrap(), &|_| {})
}

fn by_nodes(found: &[Found]) -> Vec<usize> {
    (2..=7).map(|n| found.iter().filter(|p| p.nodes.len() == n).count()).collect()
}

/// The patterns of a file of others, by canonical form. The labels of `set` are kept.
fn expected(name: &str, set: &mut GraphSet, directed: bool) -> BTreeMap<Canonical, Vec<u32>> {
    let patterns = gspan_text::read(&data(name), Limits::default(), set).unwrap();
    let form = |p: &gspan_text::TextGraph| {
        let edges: Vec<_> = p.edges.iter().map(|e| (e.from, e.to, e.label)).collect();
        canonical(&p.nodes, &edges, directed)
    };
    let graphs = |p: &gspan_text::TextGraph| p.graphs.iter().flatten().map(|&g| g as u32).collect();
    patterns.iter().map(|p| (form(p), graphs(p))).collect()
}

#[test]
fn undirected_patterns_are_those_of_gspan_mining_and_gbolt() {
    let mut set = models();
    let found = mined(&set, 5, false);
    assert_eq!(by_nodes(&found), [23, 44, 82, 148, 268, 495]);
    let expected = expected("openmmlab49a.undirected.patterns.zst", &mut set, false);
    assert_eq!(expected.len(), 1060);
    assert!(by_form(&found, false) == expected);
}

#[test]
fn directed_patterns_are_those_of_a_gbolt_that_heeds_direction() {
    let mut set = models();
    let found = mined(&set, 5, true);
    assert_eq!(by_nodes(&found), [28, 53, 99, 186, 347, 680]);
    let expected = expected("openmmlab49a.directed.patterns.zst", &mut set, true);
    assert_eq!(expected.len(), 1393);
    assert!(by_form(&found, true) == expected);
}

#[test]
fn counts_at_other_supports_are_those_of_that_gbolt() {
    let set = models();
    assert_eq!(by_nodes(&mined(&set, 1, true)), [85, 223, 524, 1215, 2811, 6542]);
    assert_eq!(by_nodes(&mined(&set, 2, true)), [66, 125, 252, 558, 1246, 2801]);
    assert_eq!(by_nodes(&mined(&set, 10, true)), [16, 22, 34, 63, 124, 248]);
}

/// The models as traces.
fn traces() -> Vec<ModelGraph> {
    let mut lines = Lines::open(&data("openmmlab49a.traces.jsonl.zst"), Limits::default()).unwrap();
    let mut models: Vec<ModelGraph> = Vec::new();
    while let Some(line) = lines.next_line().unwrap() {
        match models.last_mut() {
            Some(model) if model.nodes.len() < model.header.nodes => {
                model.nodes.push(serde_json::from_str(line).unwrap());
            }
            _ => models.push(ModelGraph { header: serde_json::from_str(line).unwrap(), nodes: Vec::new() }),
        }
    }
    assert_eq!(models.len(), 49);
    models
}

/// The numbers of patterns, directed and not, at support 5.
fn counts(traces: &[ModelGraph], options: FromTrace) -> [Vec<usize>; 2] {
    let mut set = GraphSet::default();
    traces.iter().for_each(|model| set.push_trace(model, options).unwrap());
    set.sort_labels();
    [true, false].map(|directed| by_nodes(&mined(&set, 5, directed)))
}

#[test]
fn traces_give_the_counts_of_the_graphs_made_from_them() {
    let plain = FromTrace::default();
    let expected = [[28, 53, 99, 186, 347, 680], [23, 44, 82, 148, 268, 495]];
    assert_eq!(counts(&traces(), plain), expected);

    let bridged = FromTrace { bridge_shape_ops: true, ..plain };
    let expected = [[32, 60, 108, 209, 395, 795], [27, 49, 90, 161, 296, 556]];
    assert_eq!(counts(&traces(), bridged), expected);

    // The other miners' graphs tell the two operands of add and mul apart.
    let mut traces = traces();
    for source in traces.iter_mut().flat_map(|m| &mut m.nodes).flat_map(|n| &mut n.inputs) {
        source.argument.insert(0, '_');
    }
    let labelled = FromTrace { edge_labels: EdgeLabels::Argument, ..plain };
    let expected = [[33, 55, 96, 166, 289, 537], [28, 50, 87, 147, 261, 478]];
    assert_eq!(counts(&traces, labelled), expected);
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let set = models();
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| mined(&set, 3, true))
    };
    assert!(with(1) == with(7));
}

#[test]
fn written_patterns_are_read_back() {
    let mut set = models();
    let found = mined(&set, 20, true);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("patterns.txt");
    gspan_text::write_patterns(&path, &set, &found).unwrap();
    let read = gspan_text::read(&path, Limits::default(), &mut set).unwrap();
    assert_eq!(read.len(), found.len());
    for (pattern, text) in found.iter().zip(&read) {
        assert_eq!((&pattern.nodes, &pattern.edges), (&text.nodes, &text.edges));
        assert_eq!(text.support, Some(pattern.graphs.len()));
        assert!(
            text.graphs.iter().flatten().eq(pattern
                .graphs
                .iter()
                .map(|&g| u64::from(g))
                .collect::<Vec<_>>()
                .iter())
        );
    }
}
