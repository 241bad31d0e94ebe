//! `ulpian generate` as scripts see it, from feature and pattern files to cases that PyTorch takes.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::{Path, PathBuf};

use common::{Said, run, run_with_python, text};
use serde_json::{Value, json};
use ulpian::records::{GenerateSummary, GeneratedInput};
use ulpian::spec::{Case, case::Limits};

fn tensor(shape: &[usize], min: f64, max: f64) -> Value {
    json!({"dtype": "float32", "shape": shape, "min": min, "max": max, "mean": 0, "std": 1, "zeros": 0.0, "nonfinite": 0.0,
           "quantiles": [min, max]})
}

fn write_lines(path: &Path, lines: &[Value]) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(path, text).unwrap();
}

/// A convolution, the batch_norm and the relu after it, and a linear that takes none of their results.
fn features(folder: &Path) {
    let (image, seen) = (tensor(&[2, 3, 6, 6], -2.0, 2.0), tensor(&[2, 4, 4, 4], -9.0, 9.0));
    let channel = tensor(&[4], 0.25, 0.75);
    write_lines(
        &folder.join("small.features.jsonl"),
        &[
            json!({"format": "ulpian-features/1", "model": "small", "calls": 4}),
            json!({"node": 0, "op": "conv2d", "args": {"input": image, "weight": tensor(&[4, 3, 3, 3], -0.5, 0.5)}}),
            json!({"node": 1, "op": "batch_norm", "args": {
                "input": seen, "running_mean": channel, "running_var": channel, "training": false}}),
            json!({"node": 2, "op": "relu", "args": {"input": seen}}),
            json!({"node": 3, "op": "linear", "args": {"input": tensor(&[2, 9], -1.0, 1.0), "weight": tensor(&[5, 9], -1.0, 1.0)}}),
        ],
    );
}

fn pattern(id: usize, nodes: &[&str], edges: &[[usize; 2]]) -> Value {
    json!({"format": "ulpian-patterns/1", "id": id, "nodes": nodes, "edges": edges, "directed": true, "support": 1, "graphs": ["small"]})
}

fn setup() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    features(dir.path());
    let patterns = dir.path().join("patterns.jsonl");
    write_lines(
        &patterns,
        &[
            pattern(0, &["conv2d", "batch_norm", "relu"], &[[0, 1], [1, 2]]),
            pattern(1, &["batch_norm", "relu"], &[[0, 1]]),
            pattern(2, &["relu", "linear"], &[[0, 1]]),
        ],
    );
    let out = dir.path().join("out");
    (dir, patterns, out)
}

fn parse(said: &Said) -> (Vec<GeneratedInput>, GenerateSummary) {
    let mut lines: Vec<&str> = said.out.lines().collect();
    let summary = serde_json::from_str(lines.pop().unwrap()).unwrap();
    (lines.into_iter().map(|line| serde_json::from_str(line).unwrap()).collect(), summary)
}

#[test]
fn cases_are_written_that_pytorch_takes_and_what_does_not_fit_is_named() {
    let (dir, patterns, out) = setup();
    let args =
        ["generate", "--json", "--features", text(dir.path()), "--patterns", text(&patterns), "--count", "9"];
    let said =
        run_with_python(&[&args[..], &["--seed", "4", "--out", text(&out), "--check", "torch:cpu"]].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    let (inputs, summary) = parse(&said);
    assert_eq!((inputs.len(), summary.valid, summary.accepted), (9, 9, Some(9)));
    assert_eq!((summary.patterns, summary.calls), (2, 4));
    assert_eq!(summary.unfit[0].pattern, 2);
    assert!(
        summary.unfit[0].why.contains("no recorded call of linear takes as `input`"),
        "{}",
        summary.unfit[0].why
    );
    assert_eq!(summary.by_op["3 nodes"], (5, 5));
    for input in &inputs {
        let case = Case::read(Path::new(input.file.as_ref().unwrap()), Limits::default()).unwrap();
        assert_eq!(case.name, input.case);
        assert!(case.source.contains("of small"), "{}", case.source);
        let image = case.tensors.iter().find(|t| t.name == "conv2d_0.input");
        assert_eq!(image.is_some(), input.pattern == 0);
    }
    // The same seed gives the same bytes, another one others.
    let bytes = |folder: &Path| std::fs::read(folder.join("p00000-00001.safetensors")).unwrap();
    let (again, other) = (dir.path().join("again"), dir.path().join("other"));
    assert_eq!(run(&[&args[..], &["--seed", "4", "--out", text(&again)]].concat()).code, 0);
    assert_eq!(run(&[&args[..], &["--seed", "5", "--out", text(&other)]].concat()).code, 0);
    assert_eq!(bytes(&out), bytes(&again));
    assert_ne!(bytes(&out), bytes(&other));
    // They can be judged; what the verdict is depends on this machine's PyTorch.
    let judged = run_with_python(&["judge", "--quiet", "--executor", "torch:cpu", text(&out)]);
    assert!(judged.code <= 1, "{}", judged.err);
}

#[test]
fn baselines_and_single_ops_are_counted_by_op() {
    let (dir, _, _) = setup();
    let args = [
        "generate",
        "--json",
        "--features",
        text(dir.path()),
        "--single-op",
        "--count",
        "80",
        "--check",
        "torch:cpu",
    ];
    let (_, summary) = parse(&run_with_python(&args));
    assert_eq!((summary.valid, summary.accepted, summary.by_op.len()), (80, Some(80), 4));
    for baseline in ["uniform", "mutate"] {
        let said = run_with_python(&[&args[..], &["--baseline", baseline]].concat());
        assert_eq!(said.code, 0, "{}", said.err);
        let (inputs, summary) = parse(&said);
        assert!((1..80).contains(&summary.valid), "{baseline}: {}", summary.valid);
        // PyTorch takes what Ulpian's rules take.
        assert_eq!(summary.accepted, Some(summary.valid), "{baseline}");
        assert!(inputs.iter().filter(|i| !i.valid).all(|i| i.why.is_some()));
    }
}

#[test]
fn bad_files_are_named() {
    let (dir, patterns, out) = setup();
    let broken = dir.path().join("broken.jsonl");
    std::fs::write(&broken, "{\"format\": \"ulpian-patterns/1\"\n").unwrap();
    let unfit = dir.path().join("unfit.jsonl");
    write_lines(&unfit, &[pattern(0, &["relu", "linear"], &[[0, 1]])]);
    let empty = tempfile::tempdir().unwrap();
    let features = text(dir.path());
    for (patterns, features, message) in [
        (&broken, features, "broken.jsonl:1"),
        (&unfit, features, "no pattern can be generated for: no recorded call of linear"),
        (&patterns, text(empty.path()), "no feature file here"),
        (&dir.path().join("absent.jsonl"), features, "absent.jsonl"),
    ] {
        let said = run(&[
            "generate",
            "--patterns",
            text(patterns),
            "--features",
            features,
            "--count",
            "1",
            "--out",
            text(&out),
        ]);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{message}");
        assert!(said.err.contains(message), "{message}: {}", said.err);
    }
    let said = run(&["generate", "--features", features, "--count", "1", "--out", text(&out)]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("--patterns"), "{}", said.err);
}
