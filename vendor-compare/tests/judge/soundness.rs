//! What holds for every op: the right value is never blamed, and nothing beyond the bound is acquitted.

use std::collections::BTreeMap;
use std::sync::Arc;

use ulpian_spec::verdict::Cause;
use ulpian_spec::{HostTensor, Outcome, Run, Storage, ValueRef};

use crate::parties::{case, f32s, first, hear, ideal, of, one_of_each, returns, tensor};

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
    let verdict = hear(&case, vec![("torch:cpu", gone("no torch")), ("ort:cpu", Outcome::failed("crash"))]);
    assert_eq!(verdict.verdict.cause, Cause::Inconclusive);
    assert!(verdict.verdict.because.contains("no torch"));
    assert!(verdict.executors.is_empty());
    assert_eq!(verdict.nodes[0].executors[1].status, "failed");
}

#[test]
fn what_came_before_a_failure_is_judged() {
    let case = case(&format!(
        r#"[{{"id": "a", "op": "relu", "args": {{"input": {}}}}},
            {{"id": "b", "op": "mul", "args": {{"input": "%a", "other": 3}}}},
            {{"id": "c", "op": "softmax", "args": {{"input": "%b", "dim": 0}}}}]"#,
        f32s(&[2], &[-1.0, 2.0])
    ));
    let whole = ideal(&case);
    let until = |first: &[f32], nodes: usize| {
        let mut before = whole.clone();
        before.results.retain(|at, _| matches!(at, ValueRef::Node { node, .. } if *node < nodes));
        before.results.extend(returns(&[2], first).results);
        Outcome::Failed { reason: "node b: RuntimeError: no kernel".into(), before }
    };
    let verdict =
        hear(&case, vec![("torch:cpu", until(&[0.0, 2.0], 1)), ("ort:cpu", Outcome::Ok(whole.clone()))]);
    let rows: Vec<Vec<&str>> =
        verdict.nodes.iter().map(|n| n.executors.iter().map(|e| e.status.as_str()).collect()).collect();
    assert_eq!(rows, [["ok", "ok"], ["failed", "ok"], ["failed", "ok"]]);
    assert_eq!(verdict.nodes[0].executors[0].local.as_ref().expect("it is measured").max_ulp, 0.0);
    assert!(verdict.nodes[1].executors[0].reason.as_deref().is_some_and(|r| r.contains("no kernel")));
    let own = of(&verdict, "torch:cpu");
    assert_eq!(own.cause, Cause::Agree);
    assert!(own.because.ends_with("at node b it failed"), "{}", own.because);
    assert!(!verdict.verdict.cause.is_fault());

    let verdict = hear(&case, vec![("torch:cpu", until(&[0.0, 5.0], 1)), ("ort:cpu", Outcome::Ok(whole))]);
    assert_eq!(verdict.verdict.cause, Cause::Defect);
    assert_eq!(verdict.verdict.at.as_ref().map(|at| at.node.as_str()), Some("a"));
}
