//! Cases and parties made up, and a hearing of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use ulpian_reference::{Settings, evaluate_chain};
use ulpian_spec::case::Limits;
use ulpian_spec::verdict::CaseVerdict;
use ulpian_spec::{Case, ExecutorId, HostTensor, OpKind, Outcome, Run, ValueRef};
use ulpian_vendor_compare::judge::Hearing;

pub(crate) fn case(nodes: &str) -> Case {
    let text = format!(r#"{{"format": "ulpian-case/1", "name": "made-up", "nodes": {nodes}}}"#);
    Case::from_json(&text, "made-up.json", Limits::default()).expect("a valid case")
}

/// A float32 tensor in JSON.
pub(crate) fn f32s(shape: &[usize], data: &[f64]) -> String {
    tensor("float32", shape, data)
}

pub(crate) fn tensor(dtype: &str, shape: &[usize], data: &[f64]) -> String {
    let data: Vec<String> = data
        .iter()
        .map(|x| match x {
            x if x.is_nan() => "\"nan\"".into(),
            x if x.is_infinite() => format!("\"{}inf\"", if *x < 0.0 { "-" } else { "" }),
            x => format!("{x:?}"),
        })
        .collect();
    let data = data.join(", ");
    // What has no dimension is a bare number.
    let data = if shape.is_empty() { data } else { format!("[{data}]") };
    format!(r#"{{"dtype": "{dtype}", "shape": {shape:?}, "data": {data}}}"#)
}

/// Numbers in [-1, 1) with few bits, the same on every run.
pub(crate) fn numbers(n: usize, seed: u64) -> Vec<f64> {
    let mut s = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..n)
        .map(|_| {
            s ^= s << 13;
            s ^= s >> 7;
            s ^= s << 17;
            f64::from((s >> 40) as u32) / f64::from(1u32 << 23) - 1.0
        })
        .collect()
}

/// One case for every op.
pub(crate) fn one_of_each() -> Vec<(OpKind, Case)> {
    let x = f32s(&[2, 3, 4, 4], &numbers(96, 1));
    let rows = f32s(&[4, 16], &numbers(64, 2));
    let other = f32s(&[16, 4], &numbers(64, 3));
    let node =
        |op: &str, args: String| case(&format!(r#"[{{"id": "n", "op": "{op}", "args": {{{args}}}}}]"#));
    OpKind::ALL
        .iter()
        .map(|&kind| {
            let args = match kind {
                OpKind::Flatten | OpKind::Relu => format!(r#""input": {x}"#),
                OpKind::Gelu => format!(r#""input": {rows}"#),
                OpKind::Mul | OpKind::Div | OpKind::Add => format!(r#""input": {rows}, "other": {rows}"#)
                    .replacen(&numbers(64, 2)[0].to_string(), "0.3", 1),
                OpKind::Softmax => format!(r#""input": {rows}, "dim": 1"#),
                OpKind::AdaptiveAvgPool2d => format!(r#""input": {x}, "output_size": [3, 2]"#),
                OpKind::Matmul => format!(r#""input": {rows}, "other": {other}"#),
                OpKind::MaxPool2d => format!(r#""input": {x}, "kernel_size": 2"#),
                OpKind::BatchNorm => {
                    format!(r#""input": {x}, "running_mean": null, "running_var": null, "training": true"#)
                }
                OpKind::Dropout => {
                    let mask: Vec<f64> = (0..64).map(|i| f64::from(i % 3 != 0)).collect();
                    format!(r#""input": {rows}, "p": 0.3, "mask": {}"#, f32s(&[4, 16], &mask))
                }
                OpKind::Conv2d => {
                    format!(
                        r#""input": {x}, "weight": {}, "padding": 1"#,
                        f32s(&[2, 3, 3, 3], &numbers(54, 4))
                    )
                }
                OpKind::Linear => {
                    let w = f32s(&[4, 16], &numbers(64, 5));
                    format!(r#""input": {rows}, "weight": {w}, "bias": {}"#, f32s(&[4], &numbers(4, 6)))
                }
                OpKind::LayerNorm => format!(r#""input": {rows}, "normalized_shape": [16]"#),
            };
            (kind, node(kind.name(), args))
        })
        .collect()
}

/// What an ideal eager framework returns.
pub(crate) fn ideal(case: &Case) -> Run {
    let truth = evaluate_chain(case, &BTreeMap::new(), &Settings::default()).expect("it has a truth");
    Run { results: truth.per_op, ..Run::default() }
}

pub(crate) fn first() -> ValueRef {
    ValueRef::Node { node: 0, output: 0 }
}

/// A run with one float32 result.
pub(crate) fn returns(shape: &[usize], data: &[f32]) -> Run {
    Run { results: BTreeMap::from([(first(), Arc::new(HostTensor::f32(shape, data)))]), ..Run::default() }
}

pub(crate) fn hear(case: &Case, parties: Vec<(&str, Outcome)>) -> CaseVerdict {
    hear_with(case, parties, |id, _| Outcome::Unavailable {
        reason: format!("{id} is not here"),
        remedy: String::new(),
    })
}

pub(crate) fn hear_with(
    case: &Case,
    parties: Vec<(&str, Outcome)>,
    mut run: impl FnMut(&ExecutorId, &Case) -> Outcome,
) -> CaseVerdict {
    let mut hearing = Hearing::new(case, &Settings::default()).expect("it has a truth");
    for (name, outcome) in parties {
        hearing.hear(name.parse().expect("a name"), outcome);
    }
    let mut asked = 0;
    while let Some(request) = hearing.wants() {
        asked += 1;
        assert!(asked < 100, "it never stops asking");
        let outcome = run(&request.executor, &request.case);
        hearing.answer(&request, outcome);
    }
    let verdict = hearing.verdict(serde_json::Map::new());
    let text = serde_json::to_string(&verdict).expect("a verdict is JSON");
    let back: CaseVerdict = serde_json::from_str(&text).expect("the JSON is a verdict");
    assert_eq!(serde_json::to_string(&back).expect("JSON"), text);
    verdict
}

pub(crate) fn of<'a>(verdict: &'a CaseVerdict, executor: &str) -> &'a ulpian_spec::verdict::Verdict {
    &verdict.executors.iter().find(|e| e.executor == executor).expect("it was heard").verdict
}
