//! `ulpian judge` without Python: recorded parties and replays.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::{Path, PathBuf};

use common::{file, run, text};
use ulpian::reference::replay::hypotheses;
use ulpian::spec::verdict::{CaseVerdict, Cause, Grade};

fn verdicts(out: &str) -> Vec<CaseVerdict> {
    out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

/// 169 / 13, and what somebody returned for it.
fn division(folder: &Path, name: &str, seen: &str, extra: &str) -> PathBuf {
    let case = format!(
        r#"{{"format": "ulpian-case/1", "name": "{name}", "source": "a test",
            "nodes": [{{"id": "y", "op": "div",
                "args": {{"input": {{"dtype": "float32", "shape": [1], "data": [169]}}, "other": 13}}}}],
            "outputs": ["y"],
            "observed": [{{"executor": "gpu", "node": "y",
                "tensor": {{"dtype": "float32", "shape": [1], "data": [{seen}]}}}}]{extra}}}"#
    );
    file(folder, &format!("{name}.json"), case)
}

/// 13 * (1 + 2^-23 * 8/13): the float32 after 13, which a multiplication by the rounded 1/13 gives.
const BY_RECIPROCAL: &str = "\"0x1.a00002p+3\"";

#[test]
fn a_fault_ends_with_1_and_agreement_with_0() {
    let dir = tempfile::tempdir().unwrap();
    let wrong = division(dir.path(), "wrong", BY_RECIPROCAL, "");
    let right = division(dir.path(), "right", "13", "");
    let said = run(&["judge", text(&wrong), "--executor", "recorded:gpu", "--json"]);
    assert_eq!(said.code, 1, "{}", said.err);
    let verdict = &verdicts(&said.out)[0];
    assert_eq!((verdict.format.as_str(), verdict.case.as_str()), ("ulpian-verdict/1", "wrong"));
    assert_eq!((verdict.verdict.cause, verdict.verdict.grade), (Cause::Framework, Grade::ConfirmedBitwise));
    assert_eq!(verdict.file.as_deref(), Some(text(&wrong)));
    assert!(verdict.environment.contains_key("ulpian"));
    let said = run(&["judge", text(&right), "--executor", "recorded:gpu", "--json"]);
    assert_eq!((said.code, verdicts(&said.out)[0].verdict.cause), (0, Cause::Agree));
}

#[test]
fn the_highest_code_wins_and_a_bad_case_stops_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let wrong = division(dir.path(), "wrong", BY_RECIPROCAL, "");
    let right = division(dir.path(), "right", "13", "");
    let bad = file(dir.path(), "bad.json", "{}");
    let party = ["--executor", "recorded:gpu", "--json"];
    let said = run(&[&["judge", text(&wrong), text(&right)], &party[..]].concat());
    assert_eq!((said.code, verdicts(&said.out).len()), (1, 2));
    let said = run(&[&["judge", text(&bad), text(&wrong)], &party[..]].concat());
    assert_eq!((said.code, verdicts(&said.out).len()), (2, 1));
    assert!(said.err.contains("bad.json"), "{}", said.err);
}

#[test]
fn people_get_a_table_a_sentence_and_a_summary() {
    let dir = tempfile::tempdir().unwrap();
    division(dir.path(), "wrong", BY_RECIPROCAL, "");
    division(dir.path(), "right", "13", "");
    let said = run(&["judge", text(dir.path()), "--executor", "recorded:gpu"]);
    assert_eq!(said.code, 1);
    for words in
        ["recorded:gpu", "local ulp", "framework", "confirmed bit for bit", "2 cases judged", "1 agree"]
    {
        assert!(said.out.contains(words), "no `{words}` in:\n{}", said.out);
    }
    assert!(!said.out.contains('\x1b'));
}

#[test]
fn without_python_the_default_parties_are_listed_and_the_others_judged() {
    let dir = tempfile::tempdir().unwrap();
    let wrong = division(dir.path(), "wrong", BY_RECIPROCAL, "");
    let said = run(&["judge", text(&wrong), "--json"]);
    assert_eq!(said.code, 1, "{}", said.err);
    let verdict = &verdicts(&said.out)[0];
    let status = |name: &str| {
        verdict.nodes[0].executors.iter().find(|e| e.executor == name).map(|e| e.status.as_str())
    };
    assert_eq!(status("recorded:gpu"), Some("ok"));
    assert_eq!(status("torch:cpu"), Some("unavailable"));
    let people = run(&["judge", text(&wrong)]);
    assert!(people.out.contains("not heard: torch:cpu"), "{}", people.out);
}

#[test]
fn who_is_named_and_cannot_be_heard_ends_with_3() {
    let dir = tempfile::tempdir().unwrap();
    let right = division(dir.path(), "right", "13", "");
    for executor in ["gpu:native", "gpu:cublas?algo=1", "torch:cpu", "ort:cpu", "recorded:nobody"] {
        let said = run(&["judge", text(&right), "--executor", executor, "--json"]);
        assert_eq!(said.code, 3, "{executor}: {}", said.err);
        let at = &verdicts(&said.out)[0].nodes[0].executors[0];
        assert!(at.status == "unavailable" && at.reason.is_some(), "{executor}: {at:?}");
    }
}

#[test]
fn executors_that_do_not_exist_are_bad_usage() {
    for (executor, words) in [
        ("torch", "no colon"),
        ("tensorflow:cpu", "no family"),
        ("torch:tpu", "cpu and cuda"),
        ("torch:cpu?mkldnn=perhaps", "mkldnn"),
        ("torch:cpu?speed=high", "speed"),
        ("gpu:metal", "cublas"),
        ("replay:magic", hypotheses()[0].name),
    ] {
        let said = run(&["judge", "tests/cases/relu", "--executor", executor]);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{executor}");
        assert!(said.err.contains(words), "{executor}: {}", said.err);
    }
}

#[test]
fn a_replay_is_a_party_like_any_other() {
    let dir = tempfile::tempdir().unwrap();
    let right = division(dir.path(), "right", "13", "");
    let mut applies = 0;
    for hypothesis in hypotheses() {
        let executor = format!("replay:{}", hypothesis.name);
        let said = run(&["judge", text(&right), "--executor", &executor, "--json"]);
        let verdict = &verdicts(&said.out)[0];
        let at = &verdict.nodes[0].executors[0];
        match at.status.as_str() {
            "ok" => applies += 1,
            "unavailable" => assert_eq!(said.code, 3),
            other => panic!("{executor}: {other}: {:?}", at.reason),
        }
    }
    assert!(applies > 0, "no hypothesis is about div");
}

#[test]
fn expectations_decide_where_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let met = r#", "expect": {"cause": ["framework"], "grade": "confirmed-bitwise", "truth": {"y": {"values": [13]}}}"#;
    let unmet = r#", "expect": {"cause": ["agree"], "truth": {"y": {"values": [14]}}}"#;
    let met = division(dir.path(), "met", BY_RECIPROCAL, met);
    let unmet = division(dir.path(), "unmet", BY_RECIPROCAL, unmet);
    let judge = |case: &Path, flags: &[&str]| {
        run(&[&["judge", text(case), "--executor", "recorded:gpu"], flags].concat())
    };
    assert_eq!(judge(&met, &[]).code, 1);
    assert_eq!(judge(&met, &["--expect"]).code, 0);
    let said = judge(&unmet, &["--expect"]);
    assert_eq!(said.code, 1);
    assert!(said.out.contains("expectation unmet"), "{}", said.out);
    let said = judge(&unmet, &["--json"]);
    let expectation = verdicts(&said.out)[0].expectation.clone().unwrap();
    assert!(!expectation.met && expectation.unmet.len() == 2, "{expectation:?}");
}

#[test]
fn junit_counts_faults_and_bad_input() {
    let dir = tempfile::tempdir().unwrap();
    let wrong = division(dir.path(), "wrong", BY_RECIPROCAL, "");
    let right = division(dir.path(), "right", "13", "");
    let bad = file(dir.path(), "bad <&>.json", "{}");
    let junit = dir.path().join("report/junit.xml");
    let said = run(&[
        "judge",
        text(&wrong),
        text(&right),
        text(&bad),
        "--executor",
        "recorded:gpu",
        "--junit",
        text(&junit),
        "--json",
    ]);
    assert_eq!(said.code, 2);
    let xml = std::fs::read_to_string(&junit).unwrap();
    assert!(xml.contains(r#"tests="3" skipped="0" failures="1" errors="1""#), "{xml}");
    assert!(xml.contains("bad &lt;&amp;&gt;.json") && !xml.contains('\x1b'), "{xml}");
}
