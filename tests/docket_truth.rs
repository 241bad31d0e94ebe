//! Every truth of the docket by the reference alone, against values computed apart from it (tests/docket/generate.py).

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ulpian_reference::{Settings, evaluate_chain};
use ulpian_spec::{Case, tensors_file};

fn docket() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/docket")
}

fn cases() -> Vec<PathBuf> {
    let mut list: Vec<PathBuf> = std::fs::read_dir(docket())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .collect();
    list.sort();
    list
}

/// What is wrong with the truths of a case, a sentence each.
fn faults(path: &Path) -> Vec<String> {
    let case = Case::read(path, Default::default()).unwrap();
    let truth = evaluate_chain(&case, &BTreeMap::new(), &Settings::default()).unwrap();
    let enclosure = |name: &str| {
        let at = case.results().find(|at| case.result_name(*at) == name).unwrap();
        &truth.real[&at]
    };
    let mut faults = Vec::new();
    for (at, enclosure) in &truth.real {
        if !enclosure.undecided.is_empty() {
            faults.push(format!(
                "{}: {} elements are undecided",
                case.result_name(*at),
                enclosure.undecided.len()
            ));
        }
    }
    let mut compared = 0;
    for (name, expected) in &case.expect.as_ref().unwrap().truth {
        compared += 1;
        if let Err(why) = expected.check(enclosure(name)) {
            faults.push(format!("{name}: {why}"));
        }
    }
    let long = docket().join("truth").join(path.file_stem().unwrap()).with_extension("safetensors");
    if long.exists() {
        for (name, expected) in tensors_file::read(&long).unwrap() {
            compared += 1;
            let value = &enclosure(&name).value;
            let wrong = (0..expected.len()).filter(|&i| value.get_f64(i) != expected.get_f64(i)).count();
            if value.tensor_type() != expected.tensor_type() || wrong > 0 {
                faults.push(format!("{name}: {wrong} of {} elements differ from truth/", expected.len()));
            }
        }
    }
    if compared == 0 {
        faults.push("no truth is stated".to_owned());
    }
    faults
}

#[test]
fn all_thirty_truths_are_right() {
    let cases = cases();
    assert_eq!(cases.len(), 30);
    let report: Vec<String> = cases
        .iter()
        .flat_map(|path| {
            faults(path)
                .into_iter()
                .map(|fault| format!("{}: {fault}", path.file_stem().unwrap().to_string_lossy()))
        })
        .collect();
    assert!(report.is_empty(), "{}", report.join("\n"));
}
