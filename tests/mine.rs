//! `ulpian mine` as scripts see it.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;

use common::{Said, file, run, text};
use ulpian::mining::{Limits, ModelGraph, files};
use ulpian::records::Mined;
use ulpian::spec::trace::{GRAPH_FORMAT, GraphHeader, GraphNode, Pattern, Source};

const MODELS: &str = "mining/tests/data/openmmlab49a.gspan.zst";

/// Mines with `--json` into `patterns.jsonl` of the folder.
fn mined(dir: &Path, args: &[&str]) -> (Said, Vec<Pattern>) {
    let out = dir.join("patterns.jsonl");
    let said = run(&[&["mine", "--json", "--out", text(&out)][..], args].concat());
    let patterns = files::read_patterns(&out, Limits::default()).unwrap_or_default();
    (said, patterns)
}

fn summary(said: &Said) -> Mined {
    let mut lines = said.out.lines();
    let mined = serde_json::from_str(lines.next().unwrap()).unwrap();
    assert_eq!(lines.next(), None, "nothing else on standard output");
    mined
}

/// A call: its label, whether it is shape-only, and the arguments that nodes feed.
type Call<'a> = (&'a str, bool, &'a [(&'a str, usize)]);

/// A graph file of a trace.
fn trace(dir: &Path, model: &str, nodes: &[Call<'_>]) {
    let header = GraphHeader {
        format: GRAPH_FORMAT.to_owned(),
        model: model.to_owned(),
        framework: "torch".to_owned(),
        weights: "none".to_owned(),
        data: "none".to_owned(),
        nodes: nodes.len(),
        notes: Vec::new(),
    };
    let node = |(id, (label, shape_only, inputs)): (usize, &Call<'_>)| GraphNode {
        id,
        label: (*label).to_owned(),
        api: format!("torch.{label}"),
        module: None,
        shape_only: *shape_only,
        inputs: inputs
            .iter()
            .map(|(a, node)| Source { argument: (*a).to_owned(), node: *node, result: 0 })
            .collect(),
    };
    let graph = ModelGraph { header, nodes: nodes.iter().enumerate().map(node).collect() };
    files::write_graph(&dir.join(format!("{model}.graph.jsonl.zst")), &graph).unwrap();
}

#[test]
fn the_49_models_give_the_known_counts_and_the_same_bytes_each_time() {
    let dir = tempfile::tempdir().unwrap();
    let (said, patterns) = mined(dir.path(), &[MODELS, "--support", "5"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let summary = summary(&said);
    assert_eq!((summary.patterns, summary.graphs, patterns.len()), (1393, 49, 1393));
    let counts: Vec<(usize, usize)> = summary.by_nodes.into_iter().collect();
    assert_eq!(counts, [(2, 28), (3, 53), (4, 99), (5, 186), (6, 347), (7, 680)]);
    assert!(summary.seconds > 0.0 && summary.peak_bytes < 1 << 30);
    assert!(patterns.iter().all(|p| p.directed && p.support >= 5 && p.bindings.is_empty()));
    assert!(patterns[0].graphs[0].starts_with("openmmlab49a#"));

    let first = std::fs::read(dir.path().join("patterns.jsonl")).unwrap();
    mined(dir.path(), &[MODELS, "--support", "5", "--threads", "1"]);
    assert_eq!(first, std::fs::read(dir.path().join("patterns.jsonl")).unwrap());

    let (said, patterns) = mined(dir.path(), &[MODELS, "--support", "5", "--undirected", "--nodes", "3..4"]);
    assert_eq!((said.code, patterns.len()), (0, 44 + 82));
}

#[test]
fn text_goes_in_and_out() {
    let dir = tempfile::tempdir().unwrap();
    let graphs = "t # 3\nv 0 mul\nv 1 add\nv 2 add\ne 0 1 a\ne 1 2 a\nt # 5\nv 0 add\nv 1 mul\ne 1 0 a\n";
    let input = file(dir.path(), "two.gspan", graphs);
    let out = dir.path().join("patterns.txt");
    let (said, patterns) = mined(dir.path(), &[text(&input), "--support", "2", "--text", text(&out)]);
    assert_eq!((said.code, patterns.len()), (0, 1), "{}", said.err);
    assert_eq!(patterns[0].graphs, ["two#3", "two#5"]);
    let expected = "t # 0 * 2\nv 0 add\nv 1 mul\ne 1 0 a\nx: 0 1\n\n";
    assert_eq!(std::fs::read_to_string(&out).unwrap(), expected);

    let said = run(&["mine", text(&input), "--support", "1", "--out", text(&dir.path().join("p.jsonl.zst"))]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    assert!(
        said.out.contains("mul > add > add") && said.out.contains("3 patterns in 2 graphs"),
        "{}",
        said.out
    );
}

#[test]
fn traces_are_mined_with_their_options_and_bindings() {
    let dir = tempfile::tempdir().unwrap();
    let bridged: &[Call<'_>] = &[
        ("linear", false, &[]),
        ("view", true, &[("input", 0)]),
        ("permute", true, &[("input", 1)]),
        ("matmul", false, &[("other", 2)]),
        ("exp", false, &[("input", 3)]),
    ];
    trace(dir.path(), "a", bridged);
    trace(dir.path(), "b", bridged);
    let folder = text(dir.path());
    let count = |args: &[&str]| {
        let (said, patterns) = mined(dir.path(), &[&[folder, "--support", "2"][..], args].concat());
        assert_eq!(said.code, 0, "{}", said.err);
        (patterns, said.err)
    };
    let (patterns, err) = count(&[]);
    assert_eq!(patterns.len(), 0, "the 15 ops alone are not joined");
    assert!(
        err.contains("chains end at calls that are none of Ulpian's ops") && err.contains(": exp (2)"),
        "{err}"
    );
    assert_eq!(count(&["--all-labels"]).0.len(), 4 + 3 + 2 + 1);
    assert_eq!(count(&["--all-labels", "--bridge-shape-ops"]).0.len(), 2 + 1);
    let (patterns, _) = count(&["--bridge-shape-ops", "--edge-labels", "argument"]);
    assert_eq!(patterns.len(), 1);
    assert_eq!(serde_json::to_value(&patterns[0].edges).unwrap(), serde_json::json!([[0, 1, "other"]]));
    let bindings = serde_json::to_value(&patterns[0].bindings).unwrap();
    let expected =
        serde_json::json!([{"edges": [[["other", 0]]], "graphs": 2, "graph": "a", "nodes": [0, 3]}]);
    assert_eq!(bindings, expected);
    let (patterns, err) = count(&["--deduplicate"]);
    assert_eq!(patterns.len(), 0);
    assert!(err.contains("b: left out, the same graph as a"), "{err}");
    assert!(err.contains("no pattern can have a support of 2"), "{err}");
    // A file that a folder holds already is read once.
    assert_eq!(count(&[text(&dir.path().join("a.graph.jsonl.zst")), "--bridge-shape-ops"]).0[0].support, 2);
}

#[test]
fn bad_inputs_end_with_2_and_do_not_stop_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let bad = file(dir.path(), "bad.gspan", "t # 0\nv 0 a\ne 0 7 0\n");
    let (said, patterns) = mined(dir.path(), &[text(&bad), MODELS, "absent.gspan", "--support", "5"]);
    assert_eq!((said.code, patterns.len()), (2, 1393));
    assert!(said.err.contains("bad.gspan:3: `7` is none of the 1 nodes"), "{}", said.err);
    assert!(said.err.contains("absent.gspan: No such file"), "{}", said.err);
    for (name, content) in
        [("empty.gspan", ""), ("words.gspan", "hello\n"), ("broken.jsonl", "{\"format\": 1}\n")]
    {
        let input = file(dir.path(), name, content);
        let (said, _) = mined(&dir.path().join("none"), &[text(&input), "--support", "1"]);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{name}");
        assert!(said.err.contains(name) && said.err.contains("no graph to mine"), "{}", said.err);
    }
    let folder = dir.path().join("folder");
    std::fs::create_dir(&folder).unwrap();
    let (said, _) = mined(dir.path(), &[text(&folder), "--support", "1"]);
    assert!(said.code == 2 && said.err.contains("no graph in this folder"), "{}", said.err);
    trace(&folder, "a", &[("relu", false, &[])]);
    trace(&folder.join("again"), "a", &[("relu", false, &[])]);
    let (said, _) = mined(dir.path(), &[text(&folder), "--support", "1"]);
    assert!(said.code == 2 && said.err.contains("two graphs are named `a`"), "{}", said.err);
}

#[test]
fn usage_errors_end_with_2() {
    for args in [
        &["mine", "--support", "5", "--out", "x"][..],
        &["mine", MODELS, "--out", "x"],
        &["mine", MODELS, "--support", "5"],
        &["mine", MODELS, "--support", "0", "--out", "x"],
        &["mine", MODELS, "--support", "5", "--out", "x", "--nodes", "1..7"],
        &["mine", MODELS, "--support", "5", "--out", "x", "--nodes", "7..2"],
        &["mine", MODELS, "--support", "5", "--out", "x", "--nodes", "2..99"],
        &["mine", MODELS, "--support", "5", "--out", "x", "--edge-labels", "all"],
    ] {
        let said = run(args);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{args:?}");
    }
    let out = "/proc/none/patterns.jsonl";
    let said = run(&["mine", MODELS, "--support", "40", "--out", out]);
    assert!(said.code == 3 && said.err.contains(out), "{}", said.err);
}
