//! The judge over parties made up here: each rule, and what no rule may let through. No Python is needed.

use std::collections::BTreeMap;
use std::sync::Arc;

use ulpian_reference::{Settings, evaluate_chain, replay};
use ulpian_spec::case::Limits;
use ulpian_spec::verdict::{CaseVerdict, Cause, Grade};
use ulpian_spec::{Case, ExecutorId, HostTensor, OpKind, Outcome, Run, Storage, ValueRef};
use ulpian_vendor_compare::judge::Hearing;

fn case(nodes: &str) -> Case {
    let text = format!(r#"{{"format": "ulpian-case/1", "name": "made-up", "nodes": {nodes}}}"#);
    Case::from_json(&text, "made-up.json", Limits::default()).expect("a valid case")
}

/// A float32 tensor in JSON.
fn f32s(shape: &[usize], data: &[f64]) -> String {
    tensor("float32", shape, data)
}

fn tensor(dtype: &str, shape: &[usize], data: &[f64]) -> String {
    let data: Vec<String> = data
        .iter()
        .map(|x| match x {
            x if x.is_nan() => "\"nan\"".into(),
            x if x.is_infinite() => format!("\"{}inf\"", if *x < 0.0 { "-" } else { "" }),
            x => format!("{x:?}"),
        })
        .collect();
    format!(r#"{{"dtype": "{dtype}", "shape": {shape:?}, "data": [{}]}}"#, data.join(", "))
}

/// Numbers in [-1, 1) with few bits, the same on every run.
fn numbers(n: usize, seed: u64) -> Vec<f64> {
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
fn one_of_each() -> Vec<(OpKind, Case)> {
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
fn ideal(case: &Case) -> Run {
    let truth = evaluate_chain(case, &BTreeMap::new(), &Settings::default()).expect("it has a truth");
    Run { results: truth.per_op, ..Run::default() }
}

fn first() -> ValueRef {
    ValueRef::Node { node: 0, output: 0 }
}

/// A run with one float32 result.
fn returns(shape: &[usize], data: &[f32]) -> Run {
    Run { results: BTreeMap::from([(first(), Arc::new(HostTensor::f32(shape, data)))]), ..Run::default() }
}

fn hear(case: &Case, parties: Vec<(&str, Outcome)>) -> CaseVerdict {
    hear_with(case, parties, |id, _| Outcome::Unavailable {
        reason: format!("{id} is not here"),
        remedy: String::new(),
    })
}

fn hear_with(
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

fn of<'a>(verdict: &'a CaseVerdict, executor: &str) -> &'a ulpian_spec::verdict::Verdict {
    &verdict.executors.iter().find(|e| e.executor == executor).expect("it was heard").verdict
}

#[test]
fn the_correctly_rounded_value_is_never_blamed() {
    for (kind, case) in one_of_each() {
        for name in ["torch:cpu", "recorded:x", "ort:cpu", "gpu:cudnn"] {
            let verdict = hear(&case, vec![(name, Outcome::Ok(ideal(&case)))]);
            assert_eq!(verdict.verdict.cause, Cause::Agree, "{kind}: {}", verdict.verdict.because);
            for node in &verdict.nodes {
                let local = node.executors[0].local.as_ref().expect("it was observed");
                assert!(local.max_ulp <= 0.5 && local.bound_ratio <= 1.0, "{kind}: {local:?}");
            }
        }
    }
}

#[test]
fn acquitted_is_within_the_bound_and_beyond_it_is_not_acquitted() {
    let acquittals = [Cause::Agree, Cause::Rounding, Cause::Conditioning];
    for (kind, case) in one_of_each() {
        let ideal = ideal(&case);
        let value = &ideal.results[&first()];
        let mut seen = [false; 2];
        for exponent in 0..24 {
            let Storage::F32(mut data) = value.storage().clone() else { panic!("{kind} is float32 here") };
            let i = (exponent as usize * 7) % data.len();
            data[i] = f32::from_bits(data[i].to_bits() ^ (1 << exponent));
            for name in ["torch:cpu", "recorded:x"] {
                let verdict = hear(&case, vec![(name, Outcome::Ok(returns(value.shape(), &data)))]);
                let local = verdict.nodes[0].executors[0].local.clone().expect("it was observed");
                let acquitted = acquittals.contains(&verdict.verdict.cause);
                assert_eq!(acquitted, local.bound_ratio <= 1.0, "{kind}: {:?} {local:?}", verdict.verdict);
                seen[usize::from(acquitted)] = true;
            }
        }
        assert!(seen[0], "{kind}: no perturbation was beyond the bound");
    }
}

#[test]
fn nan_everywhere_is_a_fault_of_every_op() {
    for (kind, case) in one_of_each() {
        let value = &ideal(&case).results[&first()];
        let nan = returns(value.shape(), &vec![f32::NAN; value.len()]);
        let verdict = hear(&case, vec![("recorded:x", Outcome::Ok(nan))]);
        assert!(verdict.verdict.cause.is_fault(), "{kind}: {:?}", verdict.verdict);
        assert_eq!(verdict.nodes[0].executors[0].class_mismatches, Some(value.len()));
    }
}

#[test]
fn another_shape_or_dtype_is_a_defect() {
    for (kind, case) in one_of_each() {
        let value = &ideal(&case).results[&first()];
        for wrong in [
            HostTensor::f32(
                &[value.len()],
                &value.to_f64_vec().iter().map(|&x| x as f32).collect::<Vec<_>>(),
            )
            .reshape(vec![1, value.len()])
            .expect("the same size"),
            HostTensor::f64(value.shape(), &value.to_f64_vec()),
        ] {
            let run = Run { results: BTreeMap::from([(first(), Arc::new(wrong))]), ..Run::default() };
            let verdict = hear(&case, vec![("torch:cpu", Outcome::Ok(run))]);
            assert_eq!(verdict.verdict.cause, Cause::Defect, "{kind}");
            assert_eq!(verdict.nodes[0].executors[0].class_mismatches, Some(value.len()));
        }
    }
}

#[test]
fn no_elements_agree() {
    let case =
        case(&format!(r#"[{{"id": "n", "op": "relu", "args": {{"input": {}}}}}]"#, f32s(&[0, 3], &[])));
    let verdict = hear(&case, vec![("torch:cpu", Outcome::Ok(returns(&[0, 3], &[])))]);
    assert_eq!(verdict.verdict.cause, Cause::Agree);
}

#[test]
fn integers_that_differ_are_a_defect() {
    let case = case(&format!(
        r#"[{{"id": "n", "op": "mul", "args": {{"input": {}, "other": 3}}}}]"#,
        tensor("int64", &[2], &[2.0, 3.0]).replace(".0", "")
    ));
    let seen = HostTensor::new([2], Storage::I64(vec![6, 10])).expect("two elements");
    let run = Run { results: BTreeMap::from([(first(), Arc::new(seen))]), ..Run::default() };
    let verdict = hear(&case, vec![("recorded:x", Outcome::Ok(run))]);
    assert_eq!(verdict.verdict.cause, Cause::Defect);
    assert_eq!(verdict.verdict.at.expect("a place").index, [1]);
}

#[test]
fn nobody_heard_is_inconclusive() {
    let (_, case) = one_of_each().remove(0);
    let gone = |reason: &str| Outcome::Unavailable { reason: reason.into(), remedy: "install it".into() };
    let verdict = hear(
        &case,
        vec![("torch:cpu", gone("no torch")), ("ort:cpu", Outcome::Failed { reason: "crash".into() })],
    );
    assert_eq!(verdict.verdict.cause, Cause::Inconclusive);
    assert!(verdict.verdict.because.contains("no torch"));
    assert!(verdict.executors.is_empty());
    assert_eq!(verdict.nodes[0].executors[1].status, "failed");
}

/// gelu where 0.5 x (1 + erf) cancels, and what it returns there.
fn gelu_tail() -> (Case, Run, Run) {
    let case = case(&format!(
        r#"[{{"id": "n", "op": "gelu", "args": {{"input": {}}}}}]"#,
        f32s(&[1, 2], &[-5.0, -6.0])
    ));
    // Not the bits of any replay.
    let weak = returns(&[1, 2], &[-1.3e-6, 0.0]);
    let right = ideal(&case);
    (case, weak, right)
}

#[test]
fn a_switch_that_mends_it_names_the_culprit() {
    let (case, weak, right) = gelu_tail();
    for (mending, cause) in
        [("mkldnn", Cause::Vendor), ("isa", Cause::Framework), ("compile", Cause::Framework)]
    {
        let mut asked = Vec::new();
        let verdict = hear_with(&case, vec![("torch:cpu", Outcome::Ok(weak.clone()))], |id, single| {
            asked.push(id.to_string());
            assert_eq!(single.nodes.len(), 1);
            Outcome::Ok(if id.key(mending).is_some() { right.clone() } else { weak.clone() })
        });
        assert_eq!(
            (verdict.verdict.cause, verdict.verdict.grade),
            (cause, Grade::ConfirmedByIntervention),
            "{mending}"
        );
        assert!(verdict.verdict.because.contains(mending), "{}", verdict.verdict.because);
        assert!(
            asked.last().is_some_and(|a| a.contains(mending)),
            "it stops at the switch that explains: {asked:?}"
        );
        assert_eq!(asked[0], "torch:cpu?mkldnn=off");
    }
}

#[test]
fn other_bits_without_onednn_mean_that_onednn_computed_it() {
    let (case, weak, _) = gelu_tail();
    let other = returns(&[1, 2], &[-1.4901161e-6, -0.0]);
    let verdict = hear_with(&case, vec![("torch:cpu", Outcome::Ok(weak.clone()))], |id, _| {
        Outcome::Ok(if id.key("mkldnn").is_some() { other.clone() } else { weak.clone() })
    });
    assert_eq!((verdict.verdict.cause, verdict.verdict.grade), (Cause::Vendor, Grade::Consistent));
}

#[test]
fn what_no_switch_changes_is_the_frameworks_or_the_blas() {
    let (case, weak, _) = gelu_tail();
    let verdict =
        hear_with(&case, vec![("torch:cpu", Outcome::Ok(weak.clone()))], |_, _| Outcome::Ok(weak.clone()));
    assert_eq!((verdict.verdict.cause, verdict.verdict.grade), (Cause::Framework, Grade::Consistent));

    let (_, linear) = one_of_each().into_iter().find(|(k, _)| *k == OpKind::Linear).expect("it is an op");
    let value = ideal(&linear).results[&first()].clone();
    let mut data: Vec<f32> = value.to_f64_vec().iter().map(|&x| x as f32).collect();
    data[0] += 0.01;
    let off = returns(value.shape(), &data);
    let verdict =
        hear_with(&linear, vec![("torch:cpu", Outcome::Ok(off.clone()))], |_, _| Outcome::Ok(off.clone()));
    assert_eq!(verdict.verdict.cause, Cause::Vendor);
}

#[test]
fn a_recorded_party_with_pytorchs_bits_is_pytorch() {
    let (case, weak, _) = gelu_tail();
    let verdict = hear_with(&case, vec![("recorded:report", Outcome::Ok(weak.clone()))], |id, _| {
        match id.family.as_str() {
            "torch" => Outcome::Ok(weak.clone()),
            _ => Outcome::Unavailable { reason: "not here".into(), remedy: String::new() },
        }
    });
    assert_eq!((verdict.verdict.cause, verdict.verdict.grade), (Cause::Framework, Grade::ConfirmedBitwise));
    assert!(verdict.verdict.because.contains("torch:cpu"), "{}", verdict.verdict.because);
}

/// 300 values around 300: a folded scale and shift stays within the worst case and loses hundreds of ulp.
#[test]
fn a_weak_formulas_bits_convict_within_the_bound() {
    let case = case(&format!(
        r#"[{{"id": "n", "op": "batch_norm", "args": {{"input": {}, "running_mean": null, "running_var": null, "training": true}}}}]"#,
        f32s(
            &[4, 1],
            &[299.899_993_896_484_4, 300.100_006_103_515_6, 300.049_987_792_968_75, 299.950_012_207_031_25]
        )
    ));
    let op = case.nodes[0].op.clone().map(|_, at| match at {
        ValueRef::Input(i) => case.tensors[i].value.as_ref(),
        ValueRef::Node { .. } => unreachable!("one node"),
    });
    let weak = replay::hypothesis("fold-scale-shift-fma").expect("it is in the table");
    let run = |h: &replay::Hypothesis| {
        let results = (h.run)(&op).expect("it applies");
        Run { results: BTreeMap::from([(first(), Arc::new(results[0].clone()))]), ..Run::default() }
    };
    let verdict = hear(&case, vec![("recorded:cpu", Outcome::Ok(run(weak)))]);
    assert!(verdict.nodes[0].executors[0].local.as_ref().is_some_and(|d| d.bound_ratio < 1.0));
    assert_eq!((verdict.verdict.cause, verdict.verdict.grade), (Cause::Framework, Grade::ConfirmedBitwise));

    let sound = replay::hypothesis("subtract-then-scale").expect("it is in the table");
    let verdict = hear(&case, vec![("recorded:cpu", Outcome::Ok(run(sound)))]);
    assert!(!verdict.verdict.cause.is_fault(), "{:?}", verdict.verdict);
}

#[test]
fn one_side_worse_within_the_bound_is_rounding_and_says_how_much() {
    let (_, matmul) = one_of_each().into_iter().find(|(k, _)| *k == OpKind::Matmul).expect("it is an op");
    let value = ideal(&matmul).results[&first()].clone();
    let moved = |ulps: i32| {
        let mut data: Vec<f32> = value.to_f64_vec().iter().map(|&x| x as f32).collect();
        let i = (0..data.len()).max_by(|&a, &b| data[a].abs().total_cmp(&data[b].abs())).expect("not empty");
        data[i] = f32::from_bits((data[i].to_bits() as i32 + ulps) as u32);
        Outcome::Ok(returns(value.shape(), &data))
    };
    let verdict = hear(&matmul, vec![("recorded:a", moved(6)), ("recorded:b", moved(1))]);
    assert_eq!(verdict.verdict.cause, Cause::Rounding);
    assert!(
        verdict.verdict.because.contains("times as far from the truth as recorded:b"),
        "{}",
        verdict.verdict.because
    );
}

#[test]
fn cancellation_is_conditioning_and_its_condition_number_is_named() {
    let case = case(&format!(
        r#"[{{"id": "n", "op": "matmul", "args": {{"input": {}, "other": {}}}}}]"#,
        f32s(&[1, 3], &[0.838_99, 0.544_14, 331_420.0].map(|x: f32| f64::from(x))),
        f32s(&[3, 1], &[2_274_500.0, -4_116_000.0, 1.0])
    ));
    let verdict = hear(&case, vec![("recorded:cpu", Outcome::Ok(returns(&[1, 1], &[22.5])))]);
    assert_eq!(verdict.verdict.cause, Cause::Conditioning, "{:?}", verdict.verdict);
    assert!(verdict.verdict.because.contains("condition number"));
    assert!(verdict.nodes[0].executors[0].condition.is_some_and(|c| c > 1e5));
}

#[test]
fn dropout_without_a_mask_is_judged_by_what_it_kept() {
    let n = 4096;
    let case = case(&format!(
        r#"[{{"id": "n", "op": "dropout", "args": {{"input": {}, "p": 0.5}}}}]"#,
        f32s(&[n], &numbers(n, 9))
    ));
    let keep = numbers(n, 10);
    let result = |f: &dyn Fn(usize, f32) -> f32| {
        let data: Vec<f32> = numbers(n, 9).iter().enumerate().map(|(i, &x)| f(i, x as f32)).collect();
        Outcome::Ok(returns(&[n], &data))
    };
    let verdict = hear(&case, vec![("torch:cpu", result(&|i, x| if keep[i] < 0.0 { 2.0 * x } else { 0.0 }))]);
    assert_eq!(verdict.verdict.cause, Cause::Agree, "{:?}", verdict.verdict);
    let verdict = hear(&case, vec![("torch:cpu", result(&|_, x| 2.0 * x))]);
    assert_eq!(verdict.verdict.cause, Cause::Defect, "{:?}", verdict.verdict);
    assert!(verdict.verdict.because.contains("4096"));
    let verdict = hear(&case, vec![("recorded:x", result(&|i, x| if keep[i] < 0.0 { x } else { 0.0 }))]);
    assert!(verdict.verdict.cause.is_fault(), "kept and not scaled: {:?}", verdict.verdict);
}

#[test]
fn an_intermediate_kept_wide_is_contraction_and_weighs_as_rounding() {
    let b = |x: f64| tensor("bfloat16", &[1], &[x]);
    let case = case(&format!(
        r#"[{{"id": "mul", "op": "mul", "args": {{"input": {0}, "other": {0}}}}},
            {{"id": "add", "op": "add", "args": {{"input": "%mul", "other": {1}}}}}]"#,
        b(1.007_812_5),
        b(-1.015_625)
    ));
    let bf16 = |x: f32| {
        Arc::new(HostTensor::new([1], Storage::BF16(vec![half::bf16::from_f32(x)])).expect("one element"))
    };
    let run = |sum: f32| {
        let add = ValueRef::Node { node: 1, output: 0 };
        Outcome::Ok(Run {
            results: BTreeMap::from([(first(), bf16(1.015_625)), (add, bf16(sum))]),
            ..Run::default()
        })
    };
    let verdict = hear(&case, vec![("torch:cpu", run(0.0)), ("torch:cpu?compile=on", run(6.103_515_6e-5))]);
    assert_eq!(verdict.verdict.cause, Cause::Rounding, "{:?}", verdict.verdict);
    assert_eq!(of(&verdict, "torch:cpu").cause, Cause::Rounding);
    let compiled = of(&verdict, "torch:cpu?compile=on");
    assert_eq!((compiled.cause, compiled.grade), (Cause::Hardware, Grade::ConfirmedBitwise));
    // Anything else is not excused by the chain.
    let verdict = hear(&case, vec![("torch:cpu?compile=on", run(9.0e-5))]);
    assert!(verdict.verdict.cause.is_fault(), "{:?}", verdict.verdict);
}

#[test]
fn what_the_documentation_leaves_open_is_unspecified() {
    let inf = f64::INFINITY;
    let case = case(&format!(
        r#"[{{"id": "n", "op": "div", "args": {{"input": {}, "other": {}, "rounding_mode": "floor"}}}}]"#,
        f32s(&[2], &[-2.3, inf]),
        f32s(&[2], &[inf, 1.0])
    ));
    for (got, cause) in [
        ([-1.0, f32::NAN], Cause::Unspecified),
        ([-0.0, f32::INFINITY], Cause::Unspecified),
        ([7.0, f32::NAN], Cause::Defect),
    ] {
        let verdict = hear(&case, vec![("recorded:x", Outcome::Ok(returns(&[2], &got)))]);
        assert_eq!(verdict.verdict.cause, cause, "{got:?}: {}", verdict.verdict.because);
    }
}

#[test]
fn a_zeros_sign_is_open_where_something_is_computed_and_not_in_a_copy() {
    let one = |op: &str, more: &str| {
        let input = f32s(&[2], &[0.0, 1.0]);
        case(&format!(r#"[{{"id": "n", "op": "{op}", "args": {{"input": {input}{more}}}}}]"#))
    };
    for (op, more, cause) in
        [("mul", r#", "other": 1.0"#, Cause::Unspecified), ("flatten", "", Cause::Defect)]
    {
        let verdict = hear(&one(op, more), vec![("recorded:x", Outcome::Ok(returns(&[2], &[-0.0, 1.0])))]);
        assert_eq!(verdict.verdict.cause, cause, "{op}: {}", verdict.verdict.because);
    }
}
