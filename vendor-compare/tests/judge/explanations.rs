//! Replays, conditioning, contraction and what the documentation leaves open.

use std::collections::BTreeMap;
use std::sync::Arc;

use ulpian_reference::replay;
use ulpian_spec::verdict::{Cause, Grade};
use ulpian_spec::{HostTensor, OpKind, Outcome, Run, Storage, ValueRef};

use crate::parties::{case, f32s, first, hear, ideal, numbers, of, one_of_each, returns, tensor};

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
fn after_an_exact_result_there_is_no_precision_to_keep() {
    // 84.5 * 2 is exact, so that 13.000001 for 169 / 13 is the rounded reciprocal's doing and no contraction.
    let case = case(&format!(
        r#"[{{"id": "mul", "op": "mul", "args": {{"input": {}, "other": 2}}}},
            {{"id": "div", "op": "div", "args": {{"input": "%mul", "other": 13}}}}]"#,
        tensor("float32", &[2], &[84.5, 24.75])
    ));
    let f32s = |data: [f32; 2]| Arc::new(HostTensor::f32(&[2], &data));
    let div = ValueRef::Node { node: 1, output: 0 };
    let run = Run {
        results: BTreeMap::from([
            (first(), f32s([169.0, 49.5])),
            (div, f32s([169.0, 49.5].map(|x: f32| x * (1.0 / 13.0)))),
        ]),
        ..Run::default()
    };
    let verdict = hear(&case, vec![("recorded:gpu", Outcome::Ok(run))]);
    let found = of(&verdict, "recorded:gpu");
    assert_eq!((found.cause, found.grade), (Cause::Framework, Grade::ConfirmedBitwise), "{found:?}");
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
fn an_infinite_weight_over_padding_and_an_overflow_against_infinity_are_nobodys_fault() {
    let inf = f64::INFINITY;
    let padded = case(&format!(
        r#"[{{"id": "n", "op": "conv2d", "args": {{"input": {}, "weight": {}, "padding": [0, 1]}}}}]"#,
        f32s(&[1, 1, 1, 2], &[2.0, 3.0]),
        f32s(&[1, 1, 1, 3], &[inf, 10.0, 1.0])
    ));
    let sum = case(&format!(
        r#"[{{"id": "n", "op": "linear", "args": {{"input": {}, "weight": {}, "bias": {}}}}}]"#,
        f32s(&[1, 2], &[2e38, 2e38]),
        f32s(&[1, 2], &[-1.0, -1.0]),
        f32s(&[1], &[inf])
    ));
    let (i, nan) = (f32::INFINITY, f32::NAN);
    for (case, shape, got, open) in [
        (&padded, &[1, 1, 1, 2][..], &[23.0, i][..], true),
        (&padded, &[1, 1, 1, 2], &[24.0, i], false),
        (&padded, &[1, 1, 1, 2], &[23.0, nan], false),
        (&sum, &[1, 1], &[nan], true),
        (&sum, &[1, 1], &[-i], false),
    ] {
        let verdict = hear(case, vec![("torch:cpu", Outcome::Ok(returns(shape, got)))]).verdict;
        assert_eq!(verdict.cause == Cause::Unspecified, open, "{got:?}: {}", verdict.because);
        assert_eq!(verdict.cause.is_fault(), !open, "{got:?}: {}", verdict.because);
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

#[test]
fn an_overflow_that_can_be_shown_is_named() {
    let case = case(&format!(
        r#"[{{"id": "n", "op": "layer_norm", "args": {{"input": {}, "normalized_shape": [4]}}}}]"#,
        f32s(&[1, 4], &[1e19, -1e19, 1e19, -1e19])
    ));
    let verdict = hear(&case, vec![("recorded:cuda", Outcome::Ok(returns(&[1, 4], &[f32::NAN; 4])))]);
    assert_eq!(verdict.verdict.cause, Cause::Framework);
    assert!(verdict.verdict.because.contains("squares of x - mean overflow"), "{}", verdict.verdict.because);
}

#[test]
fn subnormals_returned_as_zero_are_the_hardwares() {
    let case = case(&format!(
        r#"[{{"id": "n", "op": "gelu", "args": {{"input": {}}}}}]"#,
        f32s(&[2], &[1e-39, 2.0])
    ));
    let right = ideal(&case).results[&first()].get_f64(1) as f32;
    let verdict = hear(&case, vec![("recorded:x", Outcome::Ok(returns(&[2], &[0.0, right])))]);
    assert_eq!(verdict.verdict.cause, Cause::Hardware, "{}", verdict.verdict.because);
}

#[test]
fn beyond_the_bound_by_what_16_bits_may_lose_is_inconclusive() {
    let (_, linear) = one_of_each().into_iter().find(|(k, _)| *k == OpKind::Linear).expect("it is an op");
    let value = ideal(&linear).results[&first()].clone();
    let off: Vec<f32> = value.to_f64_vec().iter().map(|&x| x as f32 + 1e-3).collect();
    let verdict = hear(&linear, vec![("recorded:x", Outcome::Ok(returns(value.shape(), &off)))]);
    assert_eq!(verdict.verdict.cause, Cause::Inconclusive, "{}", verdict.verdict.because);
    assert!(verdict.verdict.because.contains("is missing"));
}
