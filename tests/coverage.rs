//! One list of ops. Whatever must exist once per op is looked for here, and what an op lacks is named.

use std::path::{Path, PathBuf};

use ulpian::pipeline;
use ulpian::spec::case::Limits;
use ulpian::spec::{Case, OpKind, ValueRef};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn cases_of(op: OpKind) -> Vec<PathBuf> {
    let folder = root().join("tests/cases").join(op.name());
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path());
    let mut cases: Vec<PathBuf> = entries.filter(|p| p.extension().is_some_and(|e| e == "json")).collect();
    cases.sort();
    cases
}

#[test]
fn every_op_has_all_its_files() {
    let torch =
        std::fs::read_to_string(root().join("vendor-compare/py/ulpian/torch_ops.py")).expect("torch's ops");
    let ort = std::fs::read_to_string(root().join("vendor-compare/py/ulpian/ort_ops.py"))
        .expect("ONNX Runtime's ops");
    let tracing = |file: &str| {
        let path = root().join("vendor-compare/py/ulpian/tracing").join(file);
        std::fs::read_to_string(path).expect("the tracer's tables")
    };
    let (names, arguments) = (tracing("names.py"), tracing("arguments.py"));
    let mut lacks = Vec::new();
    for &op in OpKind::ALL {
        for (what, file) in [
            ("arguments and inference", format!("spec/src/ops/{op}.rs")),
            ("an exact definition", format!("reference/src/exact/{op}.rs")),
            ("a ball evaluation for chains", format!("reference/src/balls/{op}.rs")),
            ("an a-priori bound", format!("vendor-compare/src/judge/bounds/{op}.rs")),
        ] {
            if !root().join(&file).is_file() {
                lacks.push(format!("{op}: {what} ({file})"));
            }
        }
        for (who, table) in [("PyTorch", &torch), ("ONNX Runtime", &ort)] {
            if !table.contains(&format!("def {op}(")) {
                lacks.push(format!("{op}: a mapping to {who} (def {op} in its table of ops)"));
            }
        }
        if !names.contains(&format!("\n    \"{op}\": \"{op}\",\n")) {
            lacks.push(format!("{op}: its name in the tracer's table OPS (tracing/names.py)"));
        }
        if !arguments.contains(&format!("\n    \"{op}\": ")) {
            lacks.push(format!("{op}: the order of its arguments for the tracer (tracing/arguments.py)"));
        }
        if cases_of(op).is_empty() {
            lacks.push(format!("{op}: a case (tests/cases/{op}/*.json)"));
        }
    }
    assert!(lacks.is_empty(), "missing:\n{}", lacks.join("\n"));
}

#[test]
fn no_folder_of_cases_is_for_an_op_that_does_not_exist() {
    for entry in std::fs::read_dir(root().join("tests/cases")).expect("tests/cases").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        assert_eq!(OpKind::from_name(&name).map(OpKind::name), Some(name.as_str()), "tests/cases/{name}");
    }
}

#[test]
fn the_truth_of_every_example_is_the_known_one() {
    for &op in OpKind::ALL {
        for file in cases_of(op) {
            let at = file.display();
            let case = Case::read(&file, Limits::default()).unwrap_or_else(|e| panic!("{e}"));
            assert!(case.nodes.iter().any(|n| n.op.kind() == op), "{at}: no node is {op}");
            let truth = pipeline::truth(&case).unwrap_or_else(|e| panic!("{at}: {e}"));
            let expected = &case.expect.as_ref().unwrap_or_else(|| panic!("{at}: no `expect`")).truth;
            assert!(!expected.is_empty(), "{at}: no expected truth");
            for (name, values) in expected {
                let result: ValueRef = case
                    .results()
                    .find(|&r| case.result_name(r) == *name)
                    .unwrap_or_else(|| panic!("{at}: no result {name}"));
                let enclosure = &truth.real[&result];
                assert!(enclosure.undecided.is_empty(), "{at}: {name}: undecided elements");
                values.check(enclosure).unwrap_or_else(|why| panic!("{at}: {name}: {why}"));
            }
        }
    }
}
