//! ONNX's backend tests of the matching operators, converted to cases and judged against the reference.

mod python;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Map;
use ulpian_reference::Settings;
use ulpian_spec::case::Limits;
use ulpian_spec::verdict::Cause;
use ulpian_spec::{Case, Executor};
use ulpian_vendor_compare::judge::Hearing;
use ulpian_vendor_compare::recorded::Recorded;

/// Tests whose expected output is not what a correct computation in its dtype gives, with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[];

/// Fewer than this means that the `onnx` package generates or ships its tests in another way.
const AT_LEAST: usize = 150;

#[test]
fn expected_outputs_are_the_truth_within_the_bound() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().to_str().expect("a path that is text");
    println!("{}", python::run("onnx_backend/convert.py", &[out]).trim());
    let mut causes = BTreeMap::<&str, usize>::new();
    let mut wrong = Vec::new();
    let mut excepted = Vec::new();
    for file in cases(folder.path()) {
        let case = Case::read(&file, Limits::default()).unwrap_or_else(|e| panic!("{e}"));
        let mut hearing = Hearing::new(&case, &Settings::default()).unwrap_or_else(|e| panic!("{e}"));
        let mut party = Recorded::new("onnx");
        hearing.hear(party.id().clone(), party.run(&case));
        let verdict = hearing.verdict(Map::new()).verdict;
        *causes.entry(verdict.cause.name()).or_default() += 1;
        let fine = matches!(verdict.cause, Cause::Agree | Cause::Rounding | Cause::Conditioning);
        match (fine, EXCEPTIONS.iter().any(|(name, _)| *name == case.name)) {
            (true, false) => {}
            (false, true) => excepted.push(case.name.clone()),
            (true, true) => wrong.push(format!("{} needs no exception any more; remove it", case.name)),
            (false, false) => wrong.push(format!("{}: {}", case.name, verdict.because)),
        }
    }
    let left_out = left_out(folder.path());
    println!("{causes:?}; left out: {left_out:#?}");
    for (name, reason) in EXCEPTIONS {
        println!("excepted: {name}: {reason}");
        assert!(excepted.iter().any(|n| n == name), "there is no test {name} any more");
    }
    assert!(wrong.is_empty(), "{} of the tests differ:\n{}", wrong.len(), wrong.join("\n"));
    let judged: usize = causes.values().sum();
    assert!(judged >= AT_LEAST, "only {judged} tests were judged");
}

fn cases(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("the converter made the folder")
        .map(|entry| entry.expect("the folder is readable").path())
        .filter(|p| {
            p.extension().is_some_and(|e| e == "json") && p.file_stem().is_some_and(|s| s != "left_out")
        })
        .collect();
    files.sort();
    files
}

/// Tests by the reason why they cannot be said in Ulpian's ops.
fn left_out(folder: &Path) -> BTreeMap<String, Vec<String>> {
    let text = std::fs::read_to_string(folder.join("left_out.json")).expect("the converter wrote it");
    let by_test: BTreeMap<String, String> = serde_json::from_str(&text).expect("names and reasons");
    let mut by_reason = BTreeMap::<String, Vec<String>>::new();
    for (test, reason) in by_test {
        by_reason.entry(reason).or_default().push(test);
    }
    by_reason
}
