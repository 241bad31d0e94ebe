//! A campaign to report on, over recorded and replayed parties, which need no Python: several ops, causes and executors.

#![allow(dead_code)]

use std::path::{Path, PathBuf};

use serde_json::Map;
use ulpian::campaign::findings::{self, Finding};
use ulpian::campaign::rows::{CaseRow, CaseRows, ExecutionRow, FindingRow, NodeRow};
use ulpian::campaign::{Ledger, Plan, Source, Writer};
use ulpian::generation::Recipe;
use ulpian::mining::Values;
use ulpian::mining::generate::baseline::Baseline;
use ulpian::pipeline::Interventions;

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

/// The plan of a campaign over generated inputs, which nobody runs.
pub(crate) fn plan(cases: usize, single_op: bool, baseline: Option<Baseline>) -> Plan {
    let recipe = Recipe {
        patterns: None,
        features: Vec::new(),
        count: cases,
        seed: 0,
        values: Values::Range,
        baseline,
        single_op,
        max_elements: 1,
    };
    Plan {
        source: Source::Generated(recipe),
        cases,
        executors: (0..6).map(|n| format!("recorded:{n}")).collect(),
        timeout: 1.0,
        interventions: Interventions::None,
        seed: 0,
        ulpian: "0".to_owned(),
        files: Vec::new(),
    }
}

/// A case that was not judged.
pub(crate) fn invalid(number: usize, op: &str) -> CaseRows {
    let case = CaseRow {
        number,
        name: format!("case-{number}"),
        pattern: Some(0),
        labels: op.to_owned(),
        edges: "[]".to_owned(),
        status: "invalid".to_owned(),
        reason: Some("a wrong shape".to_owned()),
        cause: None,
    };
    CaseRows { case, executions: Vec::new(), nodes: Vec::new(), verdict: None, seconds: 0.0 }
}

/// A chain of these ops, judged over the plan's executors, each at fault at the last op; the others differ from the first by 1/4.
pub(crate) fn faulty(number: usize, ops: &[&str]) -> CaseRows {
    let id = |place: usize| format!("{}_{place}", ops[place]);
    let last = ops.len() - 1;
    let edges: Vec<[String; 3]> = (0..last).map(|n| [id(n), id(n + 1), "input".to_owned()]).collect();
    let mut rows = invalid(number, &ops.join(" "));
    rows.case = CaseRow {
        pattern: Some(number),
        edges: serde_json::to_string(&edges).expect("text"),
        status: "judged".to_owned(),
        reason: None,
        cause: Some("framework".to_owned()),
        ..rows.case
    };
    for place in 0..6 {
        let apart = (place > 0).then_some(0.25);
        let share = 2.0 + (number + place) as f64;
        rows.executions.push(ExecutionRow {
            case: number,
            place,
            executor: format!("recorded:{place}"),
            status: "ok".to_owned(),
            reason: None,
            cause: Some("framework".to_owned()),
            grade: Some("consistent".to_owned()),
            node: Some(id(last)),
            op: Some(ops[last].to_owned()),
            because: Some(format!("recorded:{place} returns 1 where 2 is right, at worst {share} times what a correct implementation may lose: it is computed by nobody's own kernel, and none of 4 switches mends it")),
            class_mismatches: Some(0),
            local_ulp: Some(2.0 * share),
            bound_ratio: Some(share),
            accumulated_ulp: Some(3.0 * share),
            difference: apart,
            close_ratio: apart,
            sort: apart.map(|_| true),
            assert_close: apart.map(|_| false),
            bound: Some(true),
        });
        rows.nodes.extend((0..ops.len()).map(|at| NodeRow {
            case: number,
            place: at,
            node: id(at),
            executor: format!("recorded:{place}"),
            op: ops[at].to_owned(),
            dtype: "float32".to_owned(),
            class_mismatches: Some(0),
            local_ulp: Some(if at == last { 2.0 * share } else { 0.5 }),
            local_abs: Some(1e-7),
            bound_ratio: Some(if at == last { share } else { 0.5 }),
            accumulated_ulp: Some(share * (at + 1) as f64),
            accumulated_abs: Some(1e-7 * (at + 1) as f64),
            condition: Some(1.0),
            difference: apart.filter(|_| at == last),
            mean_difference: apart.map(|d| d * at as f64),
        }));
    }
    rows
}

/// Writes a ledger.
pub(crate) fn write(file: &Path, plan: &Plan, rows: impl Iterator<Item = CaseRows>) {
    let mut writer = Writer::begin(file, plan).expect("a new ledger");
    let rows: Vec<_> = rows.map(|rows| (rows, Map::new())).collect();
    writer.record(&rows).expect("it is written");
}

/// A ledger of 5,004 executions, each with a fault, in chains of four ops; no two are alike.
pub(crate) fn thousands(folder: &Path) -> PathBuf {
    let file = folder.join("thousands.ledger");
    let chains = [["add", "relu", "conv2d", "batch_norm"], ["mul", "conv2d", "batch_norm", "gelu"]];
    write(&file, &plan(834, false, None), (0..834).map(|n| faulty(n, &chains[n % 2])));
    file
}
