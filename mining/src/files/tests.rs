use std::io::Write;

use ulpian_spec::trace::{Binding, BoundArgument, PatternEdge, Source};

use super::*;

fn node(id: usize, label: &str, from: &[usize]) -> GraphNode {
    GraphNode {
        id,
        label: label.to_owned(),
        api: format!("torch.{label}"),
        module: None,
        shape_only: false,
        inputs: from.iter().map(|&node| Source { argument: "input".to_owned(), node, result: 0 }).collect(),
    }
}

fn graph() -> ModelGraph {
    let header = GraphHeader {
        format: GRAPH_FORMAT.to_owned(),
        model: "net".to_owned(),
        framework: "torch".to_owned(),
        weights: "random, seed 0".to_owned(),
        data: "ones".to_owned(),
        nodes: 3,
        notes: Vec::new(),
    };
    ModelGraph { header, nodes: vec![node(0, "conv2d", &[]), node(1, "relu", &[0]), node(2, "add", &[0, 1])] }
}

fn pattern() -> Pattern {
    Pattern {
        format: PATTERN_FORMAT.to_owned(),
        id: 0,
        nodes: vec!["conv2d".to_owned(), "relu".to_owned()],
        edges: vec![PatternEdge::Plain(0, 1)],
        directed: true,
        support: 1,
        graphs: vec!["net".to_owned()],
        bindings: vec![Binding {
            edges: vec![vec![BoundArgument("input".to_owned(), 0)]],
            graphs: 1,
            graph: "net".to_owned(),
            nodes: vec![0, 1],
        }],
    }
}

/// The error of reading `text` as a graph file, without the folder's name.
fn graph_error(text: &[u8], limits: Limits) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("g.graph.jsonl");
    std::fs::write(&path, text).unwrap();
    let error = read_graph(&path, limits).unwrap_err().to_string();
    error.strip_prefix(&format!("{}/", dir.path().display())).unwrap().to_owned()
}

#[test]
fn what_is_written_is_read_compressed_or_not() {
    let dir = tempfile::tempdir().unwrap();
    for end in ["", ".zst"] {
        let path = dir.path().join(format!("deep/{end}/net{GRAPH_SUFFIX}{end}"));
        write_graph(&path, &graph()).unwrap();
        assert_eq!(read_graph(&path, Limits::default()).unwrap(), graph());
        let compressed = std::fs::read(&path).unwrap().starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
        assert_eq!(compressed, end == ".zst");

        let path = dir.path().join(format!("net{FEATURES_SUFFIX}{end}"));
        let tensor = r#"{"dtype": "float32", "shape": [2], "min": 0, "zeros": 0.5, "nonfinite": 0}"#;
        let args = serde_json::from_str(&format!(r#"{{"input": {tensor}}}"#)).unwrap();
        let features = Features {
            header: FeaturesHeader { format: FEATURES_FORMAT.to_owned(), model: "net".to_owned(), calls: 1 },
            calls: vec![Call { node: 1, op: "relu".to_owned(), args, unsupported: None }],
        };
        write_features(&path, &features).unwrap();
        assert_eq!(read_features(&path, Limits::default()).unwrap(), features);

        let path = dir.path().join(format!("patterns.jsonl{end}"));
        write_patterns(&path, &[pattern()]).unwrap();
        assert_eq!(read_patterns(&path, Limits::default()).unwrap(), [pattern()]);
    }
    assert_eq!(find(dir.path(), GRAPH_SUFFIX).unwrap().len(), 2);
    assert_eq!(find(dir.path(), FEATURES_SUFFIX).unwrap().len(), 2);
}

#[test]
fn errors_name_the_line() {
    let lines: Vec<String> = {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("g.graph.jsonl");
        write_graph(&path, &graph()).unwrap();
        std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
    };
    let with = |i: usize, line: &str| {
        let mut lines = lines.clone();
        lines[i] = line.to_owned();
        graph_error(lines.join("\n").as_bytes(), Limits::default())
    };
    assert_eq!(
        graph_error(b"", Limits::default()),
        "g.graph.jsonl: the file is empty; a first line of `ulpian-graph/1` is missing"
    );
    assert!(with(0, "{").starts_with("g.graph.jsonl:1: no header of `ulpian-graph/1`: EOF"));
    assert_eq!(
        with(0, r#"{"format": "ulpian-case/1"}"#),
        "g.graph.jsonl:1: `format` is `ulpian-case/1`, not `ulpian-graph/1`"
    );
    assert!(with(2, "[]").starts_with("g.graph.jsonl:3: "));
    assert!(with(2, &lines[2].replace(r#""node":0"#, r#""node":1"#)).contains("no earlier one"));
    assert!(with(2, &lines[2].replace(r#""id":1"#, r#""id":7"#)).contains("id is 7, its position 1"));
    assert!(with(2, &lines[2].replace("relu", "")).contains(":3: "));
    assert!(with(3, "").contains("announces 3 nodes, but there are 2"));
    assert!(graph_error(b"\xff\xfe", Limits::default()).contains(":1: the line is not UTF-8"));
}

#[test]
fn hostile_sizes_are_refused() {
    let limits = Limits { line: 1000, text: 5000 };
    let long = format!("{}\n", "x".repeat(1001));
    assert!(graph_error(long.as_bytes(), limits).contains("longer than 1000 bytes"));
    assert!(graph_error("\n".repeat(6000).as_bytes(), limits).contains("longer than 5000 bytes"));
    // 1 GiB of zeros in 32 kB: read up to the limit only.
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
    for _ in 0..1024 {
        encoder.write_all(&vec![0; 1 << 20]).unwrap();
    }
    let bomb = encoder.finish().unwrap();
    assert!(bomb.len() < 100_000);
    assert!(graph_error(&bomb, Limits::default()).contains(":1: the line is longer than 16777216 bytes"));
    // A frame that is cut short, and one whose content is damaged.
    let whole = zstd::encode_all(&b"{}\n".repeat(1000)[..], 3).unwrap();
    assert!(graph_error(&whole[..whole.len() - 3], Limits::default()).starts_with("g.graph.jsonl"));
    assert!(
        graph_error(&[&whole[..4], &[0xff; 40]].concat(), Limits::default()).starts_with("g.graph.jsonl")
    );
}

#[test]
fn calls_and_patterns_are_checked() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    let features_error = |call: &str| {
        let header = r#"{"format": "ulpian-features/1", "model": "m", "calls": 1}"#;
        std::fs::write(&path, format!("{header}\n{call}\n")).unwrap();
        read_features(&path, Limits::default()).unwrap_err().to_string()
    };
    assert!(features_error(r#"{"node": 0, "op": "permute", "args": {}}"#).contains("none of Ulpian's ops"));
    assert!(
        features_error(r#"{"node": 0, "op": "relu", "args": {"input": {}}}"#).contains("argument `input`")
    );
    let deep = format!(r#"{{"node": 0, "op": "relu", "args": {{"input": {}"#, "[".repeat(100_000));
    assert!(features_error(&deep).contains("recursion limit"));
    assert!(features_error("").contains("announces 1 calls, but there are 0"));

    let pattern_error = |change: &dyn Fn(&mut Pattern)| {
        let mut pattern = pattern();
        change(&mut pattern);
        write_patterns(&path, &[pattern]).unwrap();
        read_patterns(&path, Limits::default()).unwrap_err().to_string()
    };
    assert!(pattern_error(&|p| p.edges[0] = PatternEdge::Plain(0, 2)).contains(":1: an edge leads to none"));
    assert!(pattern_error(&|p| p.support = 2).contains("support is 2"));
    assert!(pattern_error(&|p| p.id = 3).contains("id is 3"));
    assert!(pattern_error(&|p| p.format = "x".to_owned()).contains("`format` is `x`"));
    assert!(pattern_error(&|p| p.bindings[0].nodes.push(2)).contains("a binding does not fit"));
}
