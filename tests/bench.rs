//! `ulpian bench` as scripts see it: figures by depth and op, from verdicts that can be checked by hand.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::{Path, PathBuf};

use common::{Said, file, run, run_with_python, text};
use ulpian::records::{BenchLine, BenchSummary};

fn parse(said: &Said) -> (Vec<BenchLine>, BenchSummary) {
    let mut lines: Vec<&str> = said.out.lines().collect();
    let summary = serde_json::from_str(lines.pop().unwrap()).unwrap();
    (lines.into_iter().map(|line| serde_json::from_str(line).unwrap()).collect(), summary)
}

/// A quotient that is seen one ulp off, its relu, and the square of that.
fn quotient(folder: &Path) -> PathBuf {
    let json = r#"{"format": "ulpian-case/1", "name": "quotient", "nodes": [
        {"id": "q", "op": "div", "args": {"input": {"dtype": "float32", "shape": [1], "data": [169]}, "other": 13}},
        {"id": "r", "op": "relu", "args": {"input": "%q"}},
        {"id": "y", "op": "mul", "args": {"input": "%r", "other": "%r"}}],
        "observed": [
            {"executor": "seen", "node": "q", "tensor": {"dtype": "float32", "shape": [1], "data": ["0x1.a00002p+3"]}},
            {"executor": "seen", "node": "r", "tensor": {"dtype": "float32", "shape": [1], "data": ["0x1.a00002p+3"]}},
            {"executor": "seen", "node": "y", "tensor": {"dtype": "float32", "shape": [1], "data": ["0x1.520004p+7"]}}]}"#;
    file(folder, "quotient.json", json)
}

#[test]
fn each_depth_has_the_error_made_and_the_error_carried() {
    let dir = tempfile::tempdir().unwrap();
    let case = quotient(dir.path());
    let csv = dir.path().join("tables/growth.csv");
    let said = run(&["bench", "--json", text(&case), "--executor", "recorded:seen", "--csv", text(&csv)]);
    assert_eq!(said.code, 0, "{}", said.err);
    let (lines, summary) = parse(&said);
    assert_eq!((summary.cases, summary.failed, summary.results, summary.deepest), (1, 0, 3, 3));
    let [q, r, y] = &lines[..] else { panic!("{lines:?}") };
    for (line, depth, op) in [(q, 1, "div"), (r, 2, "relu"), (y, 3, "mul")] {
        assert_eq!((line.executor.as_str(), line.depth, line.op.as_str()), ("recorded:seen", depth, op));
        assert_eq!((line.results, line.class_mismatches), (1, 0));
    }
    let worst = |s: Option<ulpian::records::Spread>| s.unwrap().worst;
    // 169 / 13 = 13: an ulp is 2^-20 there. The relu makes no error and carries this one.
    assert_eq!((worst(q.local_ulp), worst(q.accumulated_ulp), q.growth), (1.0, 1.0, None));
    assert_eq!((worst(r.local_ulp), worst(r.accumulated_ulp), worst(r.growth)), (0.0, 1.0, 1.0));
    // (13 + 2^-20)^2 = 169 + 26 * 2^-20 + 2^-40, where an ulp is 2^-16: 2 were seen.
    assert_eq!((worst(y.accumulated_ulp), worst(y.growth)), (2.0, 2.0));
    assert_eq!(worst(y.local_ulp), 2.0 - (26.0 + f64::exp2(-20.0)) / 16.0);
    assert_eq!(worst(y.accumulated_rel), 2.0 * f64::exp2(-16.0) / 169.0);

    let mut reader = csv::Reader::from_path(&csv).unwrap();
    let header = reader.headers().unwrap().clone();
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let at = |row: usize, name: &str| rows[row].get(header.iter().position(|h| h == name).unwrap()).unwrap();
    assert_eq!(rows.len(), 3);
    assert_eq!((at(2, "op"), at(2, "accumulated_ulp_worst"), at(0, "growth_median")), ("mul", "2", ""));

    let people = run(&["bench", text(&case), "--executor", "recorded:seen"]);
    assert!(people.out.contains("1 case measured, 3 results"), "{}", people.out);
}

/// Four terms of which two nearly cancel, so that a repeated product makes errors.
fn block(folder: &Path) -> PathBuf {
    let json = r#"{"format": "ulpian-case/1", "name": "block", "nodes": [
        {"id": "fc", "op": "linear", "args": {
            "input": {"dtype": "float32", "shape": [1, 3], "data": [0.1, 0.7, -0.3]},
            "weight": {"dtype": "float32", "shape": [3, 3], "data": [0.9, -0.7, 0.3, 0.4, 1.1, -0.2, -0.6, 0.5, 0.8]}}},
        {"id": "act", "op": "relu", "args": {"input": "%fc"}}]}"#;
    file(folder, "block.json", json)
}

#[test]
fn a_chain_is_applied_to_its_own_output() {
    let dir = tempfile::tempdir().unwrap();
    let case = block(dir.path());
    let args = ["bench", "--json", text(&case), "--executor", "replay:sequential-fma"];
    let (once, _) = parse(&run(&args));
    let said = run(&[&args[..], &["--repeat", "20"]].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    let (lines, summary) = parse(&said);
    assert_eq!((summary.cases, summary.deepest, lines.len()), (1, 40, 40));
    assert_eq!(lines[..2], once[..], "the first time is the case itself");
    for (i, line) in lines.iter().enumerate() {
        assert_eq!((line.depth, line.op.as_str()), (i + 1, ["linear", "relu"][i % 2]));
    }
    let accumulated: Vec<f64> = lines.iter().map(|l| l.accumulated_ulp.unwrap().worst).collect();
    assert!(accumulated[39] > accumulated[1], "an error is carried along: {accumulated:?}");
    let bounds = lines.iter().map(|l| l.bound_ratio.unwrap().worst);
    assert!(bounds.into_iter().all(|b| b <= 1.0), "each op keeps to its bound");
}

#[test]
fn bad_requests_name_the_file_and_the_place() {
    let dir = tempfile::tempdir().unwrap();
    let broken = file(dir.path(), "broken.json", r#"{"format": "ulpian-case/1", "nodes": 3}"#);
    let narrower = file(
        dir.path(),
        "narrower.json",
        r#"{"format": "ulpian-case/1", "name": "narrower", "nodes": [{"id": "y", "op": "flatten", "args":
            {"input": {"dtype": "float32", "shape": [2, 1], "data": [1, 2]}}}]}"#,
    );
    let good = quotient(dir.path());
    for (args, words) in [
        (&[text(&broken)][..], "broken.json"),
        (&["absent.json"], "absent.json"),
        (&[text(&narrower), "--repeat", "2"], "narrower.json: case narrower: its output is float32[2]"),
        (&[text(&good), "--repeat", "0"], "--repeat"),
        (&[text(&good), "--executor", "torch"], "no colon"),
        (&["--patterns", "p.jsonl"], "--features"),
        (&["--patterns", "p.jsonl", "--features", "nowhere", "--count", "3"], "nowhere"),
        (&[], "required"),
    ] {
        let said = run(&[&["bench", "--executor", "recorded:seen"], args].concat());
        assert_eq!(said.code, 2, "{args:?}: {}{}", said.out, said.err);
        assert!(said.err.contains(words), "{args:?}: {}", said.err);
    }
    // A bad case does not stop the others.
    let said = run(&["bench", "--json", text(&broken), text(&good), "--executor", "recorded:seen"]);
    let (lines, summary) = parse(&said);
    assert_eq!((said.code, summary.cases, summary.failed, lines.len()), (2, 1, 1, 3));
}

#[test]
fn who_cannot_be_heard_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let case = quotient(dir.path());
    let args = ["bench", "--json", text(&case), "--executor", "gpu:native", "--executor", "recorded:seen"];
    let said = run(&args);
    let (lines, summary) = parse(&said);
    assert_eq!((said.code, lines.len(), summary.cases), (3, 3, 1));
    assert!(summary.not_heard["gpu:native"].contains("no GPU executors"), "{:?}", summary.not_heard);
}

/// The chains of patterns, as PyTorch computes them on generated inputs.
#[test]
fn patterns_are_measured_on_generated_inputs() {
    let dir = tempfile::tempdir().unwrap();
    let tensor = |shape: &str| {
        format!(
            r#"{{"dtype": "float32", "shape": {shape}, "min": -1, "max": 1, "mean": 0, "std": 1, "zeros": 0.0,
                "nonfinite": 0.0, "quantiles": [-1, 1]}}"#
        )
        .replace('\n', " ")
    };
    let features = [
        r#"{"format": "ulpian-features/1", "model": "small", "calls": 2}"#.to_owned(),
        format!(
            r#"{{"node": 0, "op": "linear", "args": {{"input": {}, "weight": {}}}}}"#,
            tensor("[3, 40]"),
            tensor("[8, 40]")
        ),
        format!(r#"{{"node": 1, "op": "gelu", "args": {{"input": {}}}}}"#, tensor("[3, 8]")),
    ];
    file(dir.path(), "small.features.jsonl", features.join("\n") + "\n");
    let pattern = r#"{"format": "ulpian-patterns/1", "id": 0, "nodes": ["linear", "gelu"], "edges": [[0, 1]],
        "directed": true, "support": 1, "graphs": ["small"]}"#;
    let patterns = file(dir.path(), "patterns.jsonl", pattern.replace('\n', " ") + "\n");
    let said = run_with_python(&[
        "bench",
        "--json",
        "--patterns",
        text(&patterns),
        "--features",
        text(dir.path()),
        "--count",
        "4",
        "--seed",
        "1",
    ]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    let (lines, summary) = parse(&said);
    assert_eq!((summary.cases, summary.results, summary.deepest), (4, 8, 2));
    let [linear, gelu] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!((linear.op.as_str(), linear.depth, linear.results), ("linear", 1, 4));
    assert_eq!((gelu.op.as_str(), gelu.depth, gelu.results), ("gelu", 2, 4));
    let local = linear.local_ulp.unwrap();
    assert!(local.median <= local.worst && local.worst > 0.0);
    assert!(linear.bound_ratio.unwrap().worst <= 1.0);
}
