//! `ulpian order` as scripts see it: known orders are found, named and met bit for bit; what cannot be found is said.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::{Said, run, run_with_python};
use serde_json::Map;
use ulpian::order::{Call, Measured, Subject, measure};
use ulpian::records::OrderLine;
use ulpian::spec::{Case, DType, HostTensor, OpKind, Outcome, Run, ValueRef};

fn parse(said: &Said) -> OrderLine {
    assert_eq!(said.out.lines().count(), 1, "{}{}", said.out, said.err);
    let line: OrderLine = serde_json::from_str(&said.out).unwrap();
    assert_eq!(line.format, "ulpian-order/1");
    line
}

fn order(executor: &str, op: &str, more: &[&str]) -> OrderLine {
    let said = run(&[&["order", "--json", executor, op], more].concat());
    assert_eq!(said.code, 0, "{executor} {op}: {}{}", said.out, said.err);
    parse(&said)
}

/// Each replay's order is known from its code; no Python is needed.
#[test]
fn the_order_of_a_replay_is_the_one_it_is_written_in() {
    for (replay, name, arithmetic, fused, depth) in [
        ("sequential-fma", "left to right", "fused multiply-add", Some(true), 74),
        ("multiply-then-add", "left to right", "rounded products", Some(false), 74),
        ("pairwise-sum", "pairwise by halves", "rounded products", Some(false), 7),
        (
            "lanes-8-fma",
            "8 lanes joined by halves, the rest in the first lanes",
            "fused multiply-add",
            Some(true),
            12,
        ),
        (
            "lanes-16-fma",
            "16 lanes joined by halves, the rest in the first lanes",
            "fused multiply-add",
            Some(true),
            8,
        ),
        ("float64-accumulator", "left to right", "float64 sums", None, 74),
    ] {
        let line = order(&format!("replay:{replay}"), "matmul", &["--k", "75"]);
        assert_eq!((line.k, line.name.as_deref(), line.depth), (75, Some(name), Some(depth)), "{replay}");
        assert_eq!(line.verified.arithmetic.as_deref(), Some(arithmetic), "{replay}");
        assert_eq!((line.verified.outcome.as_str(), line.fused), ("same bits", fused));
        assert!(line.verified.replays.contains(&format!("replay:{replay}")), "{:?}", line.verified.replays);
        assert!(line.coverage.is_some_and(|c| c.complete && c.missing.is_empty()));
        let parents = line.tree.unwrap();
        assert_eq!(parents.len(), 75 + 74, "a binary tree has a sum less than it has terms");
        assert_eq!(parents.iter().filter(|p| p.is_none()).count(), 1);
    }
}

/// Few rows and columns are read in many calls, many in one: the order is the same.
#[test]
fn the_shape_of_the_result_decides_how_it_is_read_not_what_is_found() {
    let whole = order("replay:lanes-8-fma", "linear", &["--k", "40"]);
    let thin = order("replay:lanes-8-fma", "linear", &["--shape", "input=1x40", "--shape", "weight=3x40"]);
    assert_eq!((&whole.tree, &whole.text), (&thin.tree, &thin.text));
    assert!(thin.verified.tried.iter().all(|t| t.elements > 40), "too few results are compared");
    let batched = order(
        "replay:lanes-8-fma",
        "matmul",
        &["--shape", "input=2x3x40", "--shape", "other=2x40x5", "--dtype", "float32"],
    );
    assert_eq!(whole.tree, batched.tree);
}

#[test]
fn a_bias_is_a_term() {
    let shapes = ["--shape", "input=2x20", "--shape", "weight=7x20", "--shape", "bias=7"];
    let last = order("replay:sequential-fma", "linear", &shapes);
    assert_eq!((last.k, last.name.as_deref()), (21, Some("left to right")));
    let first = order("replay:sequential-fma-bias-first", "linear", &shapes);
    assert_eq!((first.k, first.text.as_deref()), (21, Some("[0, 20, 1..19]")));
    assert_eq!(first.verified.arithmetic.as_deref(), Some("fused multiply-add"));
}

#[test]
fn tensor_cores_add_several_at_once() {
    for (replay, dtype, width) in
        [("tensor-core-ampere", "float16", 8), ("tensor-core-hopper", "bfloat16", 16)]
    {
        let line = order(&format!("replay:{replay}"), "matmul", &["--k", "48", "--dtype", dtype]);
        assert_eq!(line.name, Some(format!("{width} at a time, added at once to the sum so far")));
        assert_eq!((line.depth, line.fused), (Some(48 / width), None));
        let parents = line.tree.unwrap();
        let operands = |sum: usize| parents.iter().filter(|p| **p == Some(sum)).count();
        assert_eq!(operands(parents.len() - 1), width + 1);
        assert!(line.verified.replays.contains(&format!("replay:{replay}")));
        assert_eq!(line.verified.arithmetic, None);
    }
}

#[test]
fn sums_of_16_bits_are_told_from_sums_of_32() {
    for (dtype, terms) in [("float16", "96"), ("bfloat16", "300")] {
        for (replay, arithmetic) in [("accumulator-16bit", "16-bit sums"), ("sequential-fma", "float32 sums")]
        {
            let line = order(&format!("replay:{replay}"), "linear", &["--k", terms, "--dtype", dtype]);
            assert_eq!(line.name.as_deref(), Some("left to right"), "{replay} {dtype}");
            assert_eq!(line.verified.arithmetic.as_deref(), Some(arithmetic), "{:?}", line.verified);
            let same = line.verified.tried.iter().filter(|t| t.same == t.elements).count();
            assert_eq!(same, 1, "{:?}", line.verified);
        }
    }
}

#[test]
fn convolutions_and_means_have_orders_too() {
    let shapes = ["--shape", "input=2x4x9x9", "--shape", "weight=6x2x3x3"];
    let line = order(
        "replay:multiply-then-add",
        "conv2d",
        &[&["groups=2", "padding=1", "stride=2", "dilation=[1, 2]"], &shapes[..]].concat(),
    );
    assert_eq!((line.k, line.name.as_deref()), (18, Some("left to right")));
    assert_eq!(line.fused, Some(false));

    let shape = ["output_size=[2, 1]", "--shape", "input=2x3x6x5"];
    let line = order("replay:sequential-mean", "adaptive_avg_pool2d", &shape);
    assert_eq!((line.k, line.name.as_deref()), (15, Some("left to right")));
    assert_eq!(
        line.verified.arithmetic.as_deref(),
        Some("own sums, divided by the height, then by the width")
    );

    let line = order("replay:two-pass-variance", "layer_norm", &["--k", "30"]);
    assert_eq!((line.k, line.name.as_deref(), line.coverage), (30, Some("left to right"), None));
    assert_eq!(line.verified.replays, ["replay:two-pass-variance"]);
}

/// Welford's mean is no sum: no tree is claimed, and the replay says what it is.
#[test]
fn a_running_mean_is_not_taken_for_a_sum() {
    let line = order("replay:welford-8-fma", "layer_norm", &["--k", "64"]);
    assert_eq!((line.tree, line.name), (None, None));
    assert!(line.inconclusive.unwrap().contains("no number of ones"));
    assert_eq!(line.verified.replays, ["replay:welford-8-fma"]);
}

#[test]
fn bad_requests_say_what_is_wrong() {
    for (args, words) in [
        (&["replay:sequential-fma", "softmax", "dim=1"][..], "are positive"),
        (&["replay:sequential-fma", "relu"], "no order can be found for this op"),
        (&["replay:sequential-fma", "fft"], "no such op"),
        (&["replay:nonsense", "matmul"], "no hypothesis `nonsense`"),
        (&["recorded:a100", "matmul"], "a recording cannot be probed"),
        (&["torch", "matmul"], "no colon"),
        (&["replay:sequential-fma", "matmul", "--shape", "input"], "expected ARG=SHAPE"),
        (&["replay:sequential-fma", "matmul", "--shape", "input=3xq"], "expected ARG=SHAPE"),
        (&["replay:sequential-fma", "matmul", "--shape", "input=4x5", "--shape", "other=6x4"], "other"),
        (&["replay:sequential-fma", "matmul", "--shape", "weight=4x5"], "weight"),
        (&["replay:sequential-fma", "matmul", "input=@x.npy"], "give the shape alone"),
        (&["replay:sequential-fma", "matmul", "input=3"], "given as a value and as a shape"),
        (&["replay:sequential-fma", "matmul", "--shape", "input=0x5"], "no elements"),
        (&["replay:sequential-fma", "matmul", "--shape", "input=2x0"], "no elements"),
        (
            &["replay:sequential-fma", "matmul", "--shape", "input=2x0", "--shape", "other=0x3"],
            "nothing to add up",
        ),
        (&["replay:sequential-fma", "conv2d", "padding=3", "--shape", "input=1x16x2x2"], "nothing to add up"),
        (&["replay:sequential-fma", "matmul", "--shape", "input=99999x99999"], "smaller shape"),
        (&["replay:sequential-fma", "conv2d", "--k", "9"], "--shape weight"),
        (&["replay:sequential-fma", "conv2d", "stride=0"], "stride"),
        (&["replay:sequential-mean", "adaptive_avg_pool2d", "output_size=3"], "windows of several sizes"),
        (&["replay:sequential-mean", "adaptive_avg_pool2d", "--dtype", "float16"], "too narrow"),
        (&["replay:sequential-fma", "matmul", "--dtype", "int32"], "expected float64"),
        (&["replay:sequential-fma", "matmul", "--k", "0"], "expected a number"),
        (&["replay:sequential-fma", "matmul", "--k", "9", "alpha=1"], "unknown argument"),
    ] {
        let said = run(&[&["order"], args].concat());
        assert_eq!(said.code, 2, "{args:?}: {}{}", said.out, said.err);
        assert!(said.err.contains(words), "{args:?}: {}", said.err);
        assert_eq!(said.out, "");
    }
}

#[test]
fn who_cannot_be_heard_is_not_measured() {
    for executor in ["gpu:cublas", "torch:cpu"] {
        let said = run(&["order", executor, "matmul", "--k", "8"]);
        assert_eq!(said.code, 3, "{}", said.err);
        assert!(said.err.contains(executor), "{}", said.err);
    }
    // A replay that is about another op.
    let said = run(&["order", "replay:sequential-mean", "matmul", "--k", "8"]);
    assert_eq!(said.code, 3, "{}", said.err);
}

#[test]
fn people_read_the_name_and_what_it_rests_on() {
    let said = run(&["order", "replay:sequential-fma", "matmul", "--k", "12"]);
    assert_eq!(said.code, 0);
    for words in ["left to right", "[0..11]", "at most 11 additions", "every term arrives", "same bits"] {
        assert!(said.out.contains(words), "{}", said.out);
    }
}

/// PyTorch's own order, whatever this machine's libraries make of it, is found and gives PyTorch's bits.
#[test]
fn pytorch_adds_in_the_order_that_is_found() {
    for (executor, op, more) in [
        ("torch:cpu", "matmul", &["--k", "64"][..]),
        ("torch:cpu?mkldnn=off", "linear", &["--k", "96"]),
        ("torch:cpu", "adaptive_avg_pool2d", &["output_size=2"]),
    ] {
        let said = run_with_python(&[&["order", "--json", executor, op], more].concat());
        assert_eq!(said.code, 0, "{executor} {op}: {}{}", said.out, said.err);
        let line = parse(&said);
        assert!(line.tree.is_some(), "{line:?}");
        assert_eq!(line.verified.outcome, "same bits", "{line:?}");
    }
}

/// PyTorch's layer_norm in float64 has a running mean, and float64 has no replays: nothing is known, and that is said.
#[test]
fn what_is_no_sum_and_no_replay_is_inconclusive() {
    let said =
        run_with_python(&["order", "--json", "torch:cpu", "layer_norm", "--k", "64", "--dtype", "float64"]);
    assert_eq!(said.code, 4, "{}{}", said.out, said.err);
    let line = parse(&said);
    assert!(line.tree.is_none() && line.inconclusive.is_some());
    assert_eq!(line.verified.outcome, "not compared");
}

const TERMS: usize = 16;
const COLUMNS: usize = 8;

/// The order of a small product of matrices whose elements are computed by `dot` from the column and its products.
fn of_product(dot: fn(usize, &[f32]) -> f32) -> Measured {
    let shapes = [("input", vec![2, TERMS]), ("other", vec![TERMS, COLUMNS])];
    let call = Call {
        op: OpKind::Matmul,
        literals: Map::new(),
        shapes: shapes.map(|(name, shape)| (name.to_owned(), shape)).into(),
        terms: None,
        dtype: DType::F32,
    };
    let mut run = |case: &Case| {
        let values: BTreeMap<&str, Vec<f64>> =
            case.tensors.iter().map(|t| (t.name.as_str(), t.value.to_f64_vec())).collect();
        let (a, b) = (&values["input"], &values["other"]);
        let element = |e: usize| {
            let (row, column) = (e / COLUMNS, e % COLUMNS);
            let product = |k: usize| (a[row * TERMS + k] as f32) * (b[k * COLUMNS + column] as f32);
            dot(column, &(0..TERMS).map(product).collect::<Vec<f32>>())
        };
        let y = HostTensor::f32(&[2, COLUMNS], &(0..2 * COLUMNS).map(element).collect::<Vec<f32>>());
        let results = [(ValueRef::Node { node: 0, output: 0 }, Arc::new(y))].into();
        Outcome::Ok(Run { results, ..Run::default() })
    };
    measure(&Subject::new(call).unwrap(), 1, &mut run).unwrap()
}

#[test]
fn a_lost_term_is_named() {
    let found = of_product(|_, x| x[..TERMS - 1].iter().sum());
    assert_eq!((found.complete, found.missing), (Some(false), vec![TERMS - 1]));
    assert!(found.tree.is_none());
}

#[test]
fn a_column_in_another_order_is_named_and_left_out() {
    let found = of_product(|column, x| match column {
        5 => x.iter().rev().sum(),
        _ => x.iter().sum(),
    });
    assert_eq!(found.name().as_deref(), Some("left to right"));
    assert_eq!(found.deviating, [5]);
    assert_eq!(found.same_bits().map(|t| t.name.as_str()), Some("rounded products"));
    assert_eq!(found.fused(), Some(false));
}

/// A compensated sum is no tree of roundings: the probe does not pass it off as one that has its bits.
#[test]
fn a_compensated_sum_is_not_taken_for_a_plain_one() {
    let found = of_product(|_, x| {
        let (mut sum, mut lost) = (0.0f32, 0.0f32);
        for &v in x {
            let next = sum + (v - lost);
            lost = (next - sum) - (v - lost);
            sum = next;
        }
        sum
    });
    assert!(found.tree.is_none() || found.same_bits().is_none(), "{found:?}");
}
