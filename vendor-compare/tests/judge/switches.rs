//! Interventions: what is asked for, in which order, and what the answers mean.

use ulpian_spec::verdict::{Cause, Grade};
use ulpian_spec::{Case, OpKind, Outcome, Run};

use crate::parties::{case, f32s, first, hear_with, ideal, one_of_each, returns};

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
    // The second has the same wrong zero at the worst element, and differs at the other.
    for other in [[-1.4901161e-6, -0.0], [-1.4901161e-6, 0.0]] {
        let other = returns(&[1, 2], &other);
        let verdict = hear_with(&case, vec![("torch:cpu", Outcome::Ok(weak.clone()))], |id, _| {
            Outcome::Ok(if id.key("mkldnn").is_some() { other.clone() } else { weak.clone() })
        });
        assert_eq!((verdict.verdict.cause, verdict.verdict.grade), (Cause::Vendor, Grade::Consistent));
    }
}

#[test]
fn without_onednn_nnpack_is_told_from_the_blas() {
    let node = format!(
        r#"[{{"id": "n", "op": "conv2d", "args": {{"input": {}, "weight": {}}}}}]"#,
        f32s(&[1, 1, 1, 2], &[1.0, 1.0]),
        f32s(&[1, 1, 1, 1], &[0.25])
    );
    let case = case(&node);
    let (right, weak) = (ideal(&case), returns(&[1, 1, 1, 2], &[0.250_000_15, 0.25]));
    let who = "torch:cpu?mkldnn=off";
    for (switch, named) in [("nnpack", "NNPACK"), ("threads", "the BLAS below PyTorch")] {
        let verdict = hear_with(&case, vec![(who, Outcome::Ok(weak.clone()))], |id, _| {
            Outcome::Ok(if id.key(switch).is_some() { right.clone() } else { weak.clone() })
        });
        let verdict = verdict.verdict;
        assert_eq!(
            (verdict.cause, verdict.grade),
            (Cause::Vendor, Grade::ConfirmedByIntervention),
            "{switch}"
        );
        assert!(verdict.because.contains(switch) && verdict.because.contains(named), "{}", verdict.because);
    }
}

#[test]
fn what_a_switch_does_is_asked_of_each_instruction_set_itself() {
    let (case, weak, _) = gelu_tail();
    let other = returns(&[1, 2], &[-1.4901161e-6, -0.0]);
    let parties = ["torch:cpu", "torch:cpu?isa=default", "torch:cpu?threads=1"];
    let mut asked = Vec::new();
    let verdict = hear_with(&case, parties.map(|id| (id, Outcome::Ok(weak.clone()))).to_vec(), |id, _| {
        asked.push(id.to_string());
        let differs = id.key("isa") == Some("default") && id.key("mkldnn").is_some();
        Outcome::Ok(if differs { other.clone() } else { weak.clone() })
    });
    let cause = |id: &str| verdict.executors.iter().find(|e| e.executor == id).map(|e| e.verdict.cause);
    assert_eq!(parties.map(cause), [Some(Cause::Framework), Some(Cause::Vendor), Some(Cause::Framework)]);
    assert!(asked.contains(&"torch:cpu?isa=default&mkldnn=off".to_owned()), "{asked:?}");
    assert!(
        !asked.iter().any(|id| id.contains("mkldnn=off&threads=1")),
        "the default's trials hold: {asked:?}"
    );
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

#[test]
fn tf32_off_that_mends_it_names_the_arithmetic() {
    let (_, linear) = one_of_each().into_iter().find(|(k, _)| *k == OpKind::Linear).expect("it is an op");
    let right = ideal(&linear);
    let value = right.results[&first()].clone();
    let off: Vec<f32> = value.to_f64_vec().iter().map(|&x| x as f32 + 3e-4).collect();
    let off = returns(value.shape(), &off);
    let verdict = hear_with(&linear, vec![("torch:cuda", Outcome::Ok(off.clone()))], |id, _| {
        Outcome::Ok(if id.key("tf32") == Some("off") { right.clone() } else { off.clone() })
    });
    assert_eq!(
        (verdict.verdict.cause, verdict.verdict.grade),
        (Cause::Hardware, Grade::ConfirmedByIntervention)
    );
    // Where no switch mends it, it is the vendor's product.
    let verdict =
        hear_with(&linear, vec![("torch:cuda", Outcome::Ok(off.clone()))], |_, _| Outcome::Ok(off.clone()));
    assert_eq!((verdict.verdict.cause, verdict.verdict.grade), (Cause::Vendor, Grade::Consistent));
}

#[test]
fn another_executor_that_is_right_explains_nothing() {
    let (case, _, right) = gelu_tail();
    let verdict =
        hear_with(&case, vec![("recorded:x", Outcome::Ok(returns(&[1, 2], &[7.0, 8.0])))], |_, _| {
            Outcome::Ok(right.clone())
        });
    assert_eq!((verdict.verdict.cause, verdict.verdict.grade), (Cause::Defect, Grade::Consistent));
    assert!(verdict.verdict.because.contains("is right on the same inputs"));
}
