//! A campaign to report on, over recorded and replayed parties, which need no Python: several ops, causes and executors.

#![allow(dead_code)]

use std::path::{Path, PathBuf};

use ulpian::campaign::findings::{self, Finding};
use ulpian::campaign::rows::FindingRow;
use ulpian::campaign::{Ledger, Writer};

use crate::common::{file, run, text};

/// The executors, the first of which the others are compared with.
pub(crate) const EXECUTORS: [&str; 3] = ["recorded:right", "replay:reciprocal-multiply", "recorded:seen"];

/// Chains that end in a division by 13, which the second executor replaces by a product with the rounded reciprocal. The third
/// returns a sum that is NaN, and a `relu` that is 0.25 off.
pub(crate) fn campaign(folder: &Path) -> PathBuf {
    for (name, op, seen) in [
        ("right", "relu", 169.0),
        ("again", "relu", 169.0),
        ("off", "relu", 169.25),
        ("nan", "add", f32::NAN),
    ] {
        let observed = |executor: &str, first: f32| {
            let number = |x: f32| if x.is_nan() { "\"nan\"".to_owned() } else { format!("{x:?}") };
            let of = |node: &str, data: [f32; 2]| {
                format!(
                    r#"{{"executor": "{executor}", "node": "{node}", "tensor":
                        {{"dtype": "float32", "shape": [2], "data": [{}, {}]}}}}"#,
                    number(data[0]),
                    number(data[1])
                )
            };
            format!("{}, {}", of("y", [first, 49.5]), of("q", [first / 13.0, 49.5 / 13.0]))
        };
        let other = if op == "add" { r#", "other": 0"# } else { "" };
        // Markup in a source must stay text.
        let json = format!(
            r#"{{"format": "ulpian-case/1", "name": "{name}", "source": "a test <b>&</b>", "nodes": [
                {{"id": "y", "op": "{op}", "args": {{"input": {{"dtype": "float32", "shape": [2], "data": [169, 49.5]}}{other}}}}},
                {{"id": "q", "op": "div", "args": {{"input": "%y", "other": 13}}}}], "outputs": ["q"],
                "observed": [{}, {}]}}"#,
            observed("right", 169.0),
            observed("seen", seen)
        );
        file(folder, &format!("cases/{name}.json"), json);
    }
    let (ledger, cases) = (folder.join("divisions.ledger"), folder.join("cases"));
    let mut args = vec!["campaign", "run", "--cases", text(&cases), "--ledger", text(&ledger), "--quiet"];
    args.extend(EXECUTORS.iter().flat_map(|executor| ["--executor", executor]));
    let said = run(&args);
    assert_eq!(said.code, 1, "{}", said.err);
    ledger
}

/// The findings that the ledger has.
pub(crate) fn found(ledger: &Path) -> Vec<Finding> {
    findings::group(&Ledger::open(ledger).expect("a ledger")).expect("its findings")
}

/// Gives the worst finding a small case and a script, as `campaign findings` does where PyTorch can be asked.
pub(crate) fn reproduce(ledger: &Path) -> String {
    let finding = found(ledger).swap_remove(0);
    let row = FindingRow {
        case: finding.case.number,
        place: finding.worst.place,
        executions: finding.executions,
        name: finding.name(),
        elements: 6,
        elements_left: 1,
        because: "a test".to_owned(),
        minimised: "{}".to_owned(),
        repro: Some("print('the fault shows')\n".to_owned()),
    };
    Writer::resume(ledger).expect("a ledger").record_finding(&row).expect("it is written");
    row.name
}
