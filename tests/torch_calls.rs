//! Random calls over all ops and arguments against PyTorch itself: whatever PyTorch takes is taken, with its dtypes and
//! shapes; whatever it rejects is rejected; and its float64 results are within 1e-12 of the truth, or within what a correct
//! implementation may lose. The calls are drawn by `torch_calls/generate.py`.

mod python;

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use ulpian_reference::Settings;
use ulpian_spec::case::Limits;
use ulpian_spec::ops::batch_norm::BatchNorm;
use ulpian_spec::ops::div::Div;
use ulpian_spec::ops::{RoundingMode, TensorOrScalar};
use ulpian_spec::tensor::unravel;
use ulpian_spec::{Case, DType, Executor, HostTensor, Op, OpKind, ValueRef};
use ulpian_vendor_compare::judge::Hearing;
use ulpian_vendor_compare::recorded::Recorded;

const SEED: u32 = 1;
const VALID: usize = 3100;
const INVALID: usize = 500;
/// At least this many valid calls must agree; the rest are those of [`STRICTER`].
const AGREED: usize = 3000;
/// At least this many valid calls must have a float64 result.
const FLOAT64: usize = 2000;

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    case: &'a RawValue,
    torch: Answer,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Answer {
    Results(Vec<Tensor>),
    Error(String),
}

#[derive(Deserialize)]
struct Tensor {
    dtype: String,
    shape: Vec<usize>,
}

/// A kind of call that PyTorch takes and Ulpian refuses on purpose.
struct Stricter {
    /// The op, or any.
    op: Option<OpKind>,
    /// Part of Ulpian's message.
    message: &'static str,
    /// Only where the result has no element.
    empty: bool,
    reason: &'static str,
}

const STRICTER: &[Stricter] = &[
    Stricter {
        op: None,
        message: "argument",
        empty: true,
        reason: "where there is nothing to compute, PyTorch leaves out checks of dtypes and parameters",
    },
    Stricter {
        op: Some(OpKind::AdaptiveAvgPool2d),
        message: "takes (N, C, H, W) or (C, H, W)",
        empty: false,
        reason: "an output of 1 x 1 is handed to mean, which takes any rank; the documentation does not",
    },
    Stricter {
        op: Some(OpKind::Linear),
        message: "argument bias: expected a tensor of shape",
        empty: false,
        reason: "any bias that broadcasts is taken; the documentation says (out_features)",
    },
    Stricter {
        op: Some(OpKind::Linear),
        message: "these are not promoted",
        empty: false,
        reason: "the bias beside a one-dimensional weight goes through add, which promotes; no other bias is promoted",
    },
    Stricter {
        op: Some(OpKind::Conv2d),
        message: "are more than 64 bits hold",
        empty: false,
        reason: "at a dilation near 2^62 the size that PyTorch computes has overflowed",
    },
    Stricter {
        op: Some(OpKind::BatchNorm),
        message: "expected a tensor of shape",
        empty: false,
        reason: "a weight or bias of C elements is taken in any rank; the documentation says (C)",
    },
];

/// A kind of call of which some elements have another class than the truth, by PyTorch's own doing.
struct Known {
    /// How many elements of this call's first result do: all that differ, and no more.
    elements: fn(&Call, &HostTensor) -> usize,
    reason: &'static str,
}

type Call = Op<Arc<HostTensor>>;

const KNOWN: &[Known] = &[
    Known {
        elements: floored_infinities,
        reason: "floor division of an infinity is NaN in PyTorch, and an infinity by limit (unspecified)",
    },
    Known {
        elements: folded_infinities,
        reason: "an infinite weight is folded into alpha x + beta, where infinities cancel to NaN",
    },
];

/// Elements of a `div` with `rounding_mode="floor"` that are NaN where `input` is infinite and `other` a number other than 0.
fn floored_infinities(call: &Call, result: &HostTensor) -> usize {
    let Op::Div(Div { input, other, rounding_mode: Some(RoundingMode::Floor) }) = call else { return 0 };
    let other = |index: &[usize]| match other {
        TensorOrScalar::Tensor(t) => broadcast(t, index),
        TensorOrScalar::Scalar(scalar) => scalar.as_f64(),
    };
    (0..result.len())
        .filter(|&i| {
            let index = unravel(i, result.shape());
            let divisor = other(&index);
            broadcast(input, &index).is_infinite()
                && divisor.is_finite()
                && divisor != 0.0
                && result.get_f64(i).is_nan()
        })
        .count()
}

/// Elements of a `batch_norm` that are NaN though `input` is a number, in the channels whose weight is infinite.
fn folded_infinities(call: &Call, result: &HostTensor) -> usize {
    let Op::BatchNorm(BatchNorm { input, weight: Some(weight), .. }) = call else { return 0 };
    (0..result.len())
        .filter(|&i| {
            let channel = unravel(i, result.shape())[1];
            weight.get_f64(channel).is_infinite()
                && input.get_f64(i).is_finite()
                && result.get_f64(i).is_nan()
        })
        .count()
}

/// The element of a tensor that broadcasting puts at this index of a result.
fn broadcast(tensor: &HostTensor, index: &[usize]) -> f64 {
    let own = &index[index.len() - tensor.shape().len()..];
    let flat = own.iter().zip(tensor.shape()).fold(0, |at, (&i, &n)| at * n + if n == 1 { 0 } else { i });
    tensor.get_f64(flat)
}

#[test]
fn types_are_those_of_pytorch_and_what_it_rejects_is_rejected() {
    let lines = calls();
    let (mut valid, mut invalid) = (0, 0);
    let mut used = vec![0; STRICTER.len()];
    let mut by_op = std::collections::BTreeMap::<OpKind, [usize; 2]>::new();
    let mut disagreements = Vec::new();
    for text in lines.lines() {
        let line: Line<'_> = serde_json::from_str(text).expect("the generator's own lines");
        let ours = Case::from_json(line.case.get(), "call", Limits::default());
        if let Ok(case) = &ours {
            let counts = by_op.entry(case.nodes[0].op.kind()).or_default();
            counts[usize::from(matches!(line.torch, Answer::Error(_)))] += 1;
        }
        match (ours, line.torch) {
            (Ok(case), Answer::Results(theirs)) => {
                valid += 1;
                let ours: Vec<String> = case.nodes[0].types.iter().map(ToString::to_string).collect();
                let theirs: Vec<String> =
                    theirs.iter().map(|t| format!("{}{:?}", t.dtype, t.shape)).collect();
                if ours != theirs {
                    disagreements.push(format!("ours {ours:?}, PyTorch's {theirs:?}: {}", line.case.get()));
                }
            }
            (Err(_), Answer::Error(_)) => invalid += 1,
            (Ok(_), Answer::Error(theirs)) => {
                disagreements.push(format!("taken, PyTorch says {theirs}: {}", line.case.get()));
            }
            (Err(ours), Answer::Results(theirs)) => {
                let ours = ours.to_string();
                let op = op_of(line.case);
                let empty = theirs[0].shape.contains(&0);
                let row = |s: &Stricter| {
                    s.op.is_none_or(|o| o == op) && s.empty == empty && ours.contains(s.message)
                };
                match STRICTER.iter().position(row) {
                    Some(i) => used[i] += 1,
                    None => disagreements.push(format!("{ours}, PyTorch takes it: {}", line.case.get())),
                }
            }
        }
    }
    println!("{valid} valid, {invalid} invalid; valid by op {by_op:?}");
    for (row, count) in STRICTER.iter().zip(&used) {
        println!("{count:4} refused on purpose: {}", row.reason);
        assert!(*count > 0, "no call needs the row `{}` any more; remove it", row.message);
    }
    assert!(
        disagreements.is_empty(),
        "{} disagreements, the first:\n{}",
        disagreements.len(),
        disagreements[..disagreements.len().min(10)].join("\n")
    );
    assert!(valid >= AGREED, "only {valid} valid calls agree");
    assert_eq!(invalid, INVALID);
    for kind in OpKind::ALL {
        assert!(by_op.get(kind).is_some_and(|counts| counts[0] >= 40), "too few calls of {kind}");
    }
}

#[test]
fn float64_values_are_near_the_truth() {
    let mut counts = std::collections::BTreeMap::<OpKind, [usize; 3]>::new();
    let mut known = [0; KNOWN.len()];
    let mut disagreements = Vec::new();
    for text in calls().lines() {
        let line: Line<'_> = serde_json::from_str(text).expect("the generator's own lines");
        let Ok(case) = Case::from_json(line.case.get(), "call", Limits::default()) else { continue };
        if case.observed.is_empty() || case.nodes[0].types[0].dtype != DType::F64 {
            continue;
        }
        let kind = case.nodes[0].op.kind();
        let counts = counts.entry(kind).or_default();
        counts[0] += 1;
        let mut hearing = match Hearing::new(&case, &Settings::default()) {
            Ok(hearing) => hearing,
            Err(error) => {
                disagreements.push(format!("{error}: {}", line.case.get()));
                continue;
            }
        };
        let mut torch = Recorded::new("torch");
        let outcome = torch.run(&case);
        hearing.hear(torch.id().clone(), outcome);
        let verdict = hearing.verdict(serde_json::Map::new());
        let call = case.nodes[0].op.clone().map(|_, at| match at {
            ValueRef::Input(i) => Arc::clone(&case.tensors[i].value),
            ValueRef::Node { .. } => unreachable!("the calls have one node"),
        });
        for (output, node) in verdict.nodes.iter().enumerate() {
            let heard = &node.executors[0];
            // No element, or none whose truth is finite: classes are all there is to compare.
            if heard.local.is_none() && heard.class_mismatches == Some(0) {
                counts[1] += 1;
                continue;
            }
            let Some(local) = &heard.local else {
                let reason = heard.reason.as_deref().unwrap_or("nothing to compare");
                disagreements.push(format!("{}: {} {reason}: {}", node.node, heard.status, line.case.get()));
                continue;
            };
            let near =
                local.max_rel <= 1e-12 || (kind == OpKind::Gelu && in_gelus_tail(&case, local.max_abs));
            counts[1] += usize::from(near);
            counts[2] += usize::from(!near && local.bound_ratio <= 1.0);
            let expected = |k: &Known| match &case.observed[..] {
                [first, ..] if output == 0 => (k.elements)(&call, &first.tensor),
                _ => 0,
            };
            if let Some(differing) = heard.class_mismatches.filter(|&n| n > 0)
                && let Some(i) = KNOWN.iter().position(|k| expected(k) == differing)
            {
                known[i] += 1;
                continue;
            }
            if heard.class_mismatches != Some(0) || !(near || local.bound_ratio <= 1.0) {
                disagreements.push(format!(
                    "{}: {:?} of another class, error {:e} relative, {} of the bound, got {:e}, truth {:e}: {}",
                    node.node,
                    heard.class_mismatches,
                    local.max_rel,
                    local.bound_ratio,
                    local.got,
                    local.truth,
                    line.case.get()
                ));
            }
        }
    }
    for (row, count) in KNOWN.iter().zip(known) {
        println!("{count:4} of another class: {}", row.reason);
        assert!(count > 0, "nothing needs the row any more, remove it: {}", row.reason);
    }
    println!("calls, results within 1e-12, others within the bound, by op: {counts:?}");
    assert!(
        disagreements.is_empty(),
        "{} disagreements, the first:\n{}",
        disagreements.len(),
        disagreements[..disagreements.len().min(20)].join("\n")
    );
    assert!(counts.values().map(|c| c[0]).sum::<usize>() >= FLOAT64, "too few float64 calls");
}

/// PyTorch computes 1 + erf and 1 + tanh, which cancel for negative x: its error is small against x, not against the result.
fn in_gelus_tail(case: &Case, error: f64) -> bool {
    let largest = case.tensors[0]
        .value
        .to_f64_vec()
        .into_iter()
        .filter(|x| x.is_finite())
        .fold(0.0, |m: f64, x| m.max(x.abs()));
    error <= 2.0 * f64::EPSILON * largest
}

fn op_of(case: &RawValue) -> OpKind {
    let case: serde_json::Value = serde_json::from_str(case.get()).expect("the generator's own JSON");
    case["nodes"][0]["op"].as_str().and_then(OpKind::from_name).expect("an op of the list")
}

/// The calls, drawn once for both tests.
fn calls() -> &'static str {
    static CALLS: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    CALLS.get_or_init(|| {
        let drawn = [SEED.to_string(), VALID.to_string(), INVALID.to_string()];
        python::run("torch_calls/generate.py", &drawn.each_ref().map(String::as_str))
    })
}
