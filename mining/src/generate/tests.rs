use std::collections::BTreeSet;

use serde_json::{Value, json};
use ulpian_spec::trace::{Binding, BoundArgument, Call, PATTERN_FORMAT, Pattern, PatternEdge};
use ulpian_spec::{OpKind, ValueRef};

use super::baseline::{self, Baseline};
use super::{Generator, Unfit, Values, single_ops};
use crate::records::Records;

fn tensor(shape: &[usize], min: f64, max: f64) -> Value {
    json!({"dtype": "float32", "shape": shape, "min": min, "max": max, "mean": 0.0, "std": 1.0, "zeros": 0.0, "nonfinite": 0.0,
           "quantiles": [min, 0.5 * (min + max), max]})
}

fn call(node: usize, op: &str, args: Value) -> Call {
    let Value::Object(args) = args else { panic!("args is an object") };
    Call { node, op: op.to_owned(), args, unsupported: None }
}

fn pattern(nodes: &[&str], edges: &[(usize, usize, &str)]) -> Pattern {
    let feeds = |argument: &str| vec![BoundArgument(argument.to_owned(), 0)];
    Pattern {
        format: PATTERN_FORMAT.to_owned(),
        id: 3,
        nodes: nodes.iter().map(|s| (*s).to_owned()).collect(),
        edges: edges.iter().map(|&(from, to, _)| PatternEdge::Plain(from, to)).collect(),
        directed: true,
        support: 1,
        graphs: vec!["m".to_owned()],
        bindings: vec![Binding {
            edges: edges.iter().map(|&(_, _, argument)| feeds(argument)).collect(),
            graphs: 1,
            graph: "m".to_owned(),
            nodes: (0..nodes.len()).collect(),
        }],
    }
}

/// Two convolutions of different widths, each with the batch_norm that followed it, and a residual sum.
fn records() -> Records {
    let mut calls = Vec::new();
    for (i, channels) in [4, 6].into_iter().enumerate() {
        let seen = [1, channels, 5, 5];
        let small = |shape: &[usize]| tensor(shape, 0.5, 1.5);
        calls.push(call(
            10 * i,
            "conv2d",
            json!({"input": tensor(&[1, 3, 5, 5], -2.0, 2.0), "weight": small(&[channels, 3, 3, 3]), "bias": null, "padding": [1, 1]}),
        ));
        calls.push(call(
            10 * i + 1,
            "batch_norm",
            json!({"input": tensor(&seen, -9.0, 9.0), "running_mean": small(&[channels]),
                   "running_var": small(&[channels]), "training": false, "eps": 1e-3}),
        ));
        calls.push(call(10 * i + 2, "relu", json!({"input": tensor(&seen, -3.0, 3.0)})));
        calls.push(call(
            10 * i + 3,
            "add",
            json!({"input": tensor(&seen, -3.0, 3.0), "other": tensor(&seen, -3.0, 3.0)}),
        ));
    }
    calls.push(call(
        90,
        "linear",
        json!({"input": tensor(&[2, 7], -1.0, 1.0), "weight": tensor(&[3, 7], -1.0, 1.0)}),
    ));
    calls.push(call(91, "gelu", json!({"input": tensor(&[8, 8], -1.0, 1.0)})));
    let mut records = Records::new();
    records.add("m", calls, 1 << 20);
    assert_eq!((records.len(), records.left_out().len()), (10, 0));
    records
}

#[test]
fn the_three_kinds_of_parameter() {
    let records = records();
    let chain = pattern(&["conv2d", "batch_norm", "relu"], &[(0, 1, "input"), (1, 2, "input")]);
    let generator = Generator::new(&chain, &records, Values::Range, 1).unwrap();
    let mut widths = BTreeSet::new();
    for index in 0..40 {
        let made = generator.generate(index).unwrap();
        let case = &made.case;
        assert_eq!(case.nodes.len(), 3);
        // Entry: as recorded. Dependent: the result before. Others: of a record whose input is of that shape.
        let conv = &case.nodes[0].types[0];
        widths.insert(conv.shape[1]);
        let operands = case.nodes[1].op.operands();
        assert_eq!(*operands[0].1, ValueRef::Node { node: 0, output: 0 });
        let mean = operands.iter().find(|(name, _)| *name == "running_mean").unwrap();
        assert_eq!(case.type_of(*mean.1).shape, [conv.shape[1]]);
        assert_eq!(case.nodes[2].types[0], *conv);
        for t in &case.tensors {
            let (low, high) = if t.name.ends_with(".input") { (-2.0, 2.0) } else { (0.5, 1.5) };
            assert!(t.value.to_f64_vec().iter().all(|x| (low..=high).contains(x)), "{}", t.name);
        }
        assert!(made.origins.iter().all(|(model, _)| model == "m"));
    }
    assert_eq!(widths, BTreeSet::from([4, 6]), "both records are drawn");
}

#[test]
fn branches_meet_and_several_entries_are_filled() {
    let records = records();
    // Two convolutions into one sum: both must take the same width.
    let diamond = pattern(&["conv2d", "conv2d", "add"], &[(0, 2, "input"), (1, 2, "other")]);
    let generator = Generator::new(&diamond, &records, Values::Sketch, 5).unwrap();
    for index in 0..20 {
        let case = generator.generate(index).unwrap().case;
        assert_eq!(case.nodes[0].types, case.nodes[1].types);
    }
    // One value on both sides of a sum.
    let mut double = pattern(&["relu", "add"], &[(0, 1, "input")]);
    double.bindings[0].edges[0].push(BoundArgument("other".to_owned(), 0));
    let case = Generator::new(&double, &records, Values::Range, 5).unwrap().generate(0).unwrap().case;
    assert!(case.nodes[1].op.operands().iter().all(|(_, at)| **at == ValueRef::Node { node: 0, output: 0 }));
}

#[test]
fn an_input_depends_on_its_seed_and_number_alone() {
    let records = records();
    let chain = pattern(&["conv2d", "relu"], &[(0, 1, "input")]);
    let json = |seed, index| {
        Generator::new(&chain, &records, Values::Range, seed).unwrap().generate(index).unwrap().case.tensors
            [0]
        .value
        .to_f64_vec()
    };
    assert_eq!(json(1, 7), json(1, 7));
    assert_ne!(json(1, 7), json(1, 8));
    assert_ne!(json(1, 7), json(2, 7));
}

#[test]
fn what_no_record_fits_is_said_and_not_forced() {
    let records = records();
    let fit = |p: &Pattern| Generator::new(p, &records, Values::Range, 0).err();
    let chain = pattern(&["linear", "gelu"], &[(0, 1, "input")]);
    let (from, to) = (OpKind::Linear, OpKind::Gelu);
    assert_eq!(fit(&chain), Some(Unfit::NoMatch { from, to, argument: "input".to_owned() }));
    assert_eq!(fit(&pattern(&["softmax"], &[])), Some(Unfit::NoCalls(OpKind::Softmax)));
    assert_eq!(fit(&pattern(&["permute"], &[])), Some(Unfit::Label("permute".to_owned())));
    let mut cycle = pattern(&["relu", "relu"], &[(0, 1, "input"), (1, 0, "input")]);
    assert_eq!(fit(&cycle), Some(Unfit::Direction));
    cycle.edges.pop();
    cycle.directed = false;
    assert_eq!(fit(&cycle), Some(Unfit::Direction));
    let eps = pattern(&["relu", "batch_norm"], &[(0, 1, "eps")]);
    assert!(matches!(fit(&eps), Some(Unfit::NoMatch { .. })));
    let unknown = pattern(&["relu", "batch_norm"], &[(0, 1, "inputs")]);
    assert!(matches!(fit(&unknown), Some(Unfit::Argument { .. })));
}

#[test]
fn without_bindings_every_sensible_wiring_is_tried() {
    let records = records();
    let mut diamond = pattern(&["relu", "conv2d", "add"], &[(0, 2, "input"), (1, 2, "other")]);
    diamond.bindings.clear();
    let generator = Generator::new(&diamond, &records, Values::Range, 0).unwrap();
    let wired = |index| {
        let case = generator.generate(index).unwrap().case;
        let add = case.nodes.iter().find(|n| n.op.kind() == OpKind::Add).unwrap().op.operands()[0].1;
        case.result_name(*add)
    };
    let inputs: BTreeSet<String> = (0..30).map(wired).collect();
    assert_eq!(inputs, BTreeSet::from(["relu_0".to_owned(), "conv2d_1".to_owned()]));
}

#[test]
fn calls_that_no_case_can_hold_are_counted() {
    let mut records = Records::new();
    let mut complex = call(0, "relu", json!({"input": tensor(&[2], 0.0, 1.0)}));
    complex.unsupported = Some("complex64".to_owned());
    let large = call(1, "relu", json!({"input": tensor(&[300], 0.0, 1.0)}));
    let wrong = call(2, "softmax", json!({"input": tensor(&[2], 0.0, 1.0), "dim": 4}));
    records.add("m", [complex, large, wrong], 256);
    assert!(records.is_empty());
    let reasons: Vec<&String> = records.left_out().keys().collect();
    assert_eq!(reasons.len(), 3, "{reasons:?}");
    assert!(reasons.iter().any(|r| r.contains("more than 256 elements")), "{reasons:?}");
}

#[test]
fn baselines_are_sometimes_valid_and_often_not() {
    let records = records();
    let ops = [OpKind::Relu, OpKind::Add, OpKind::Conv2d];
    for kind in [Baseline::Uniform, Baseline::Mutate] {
        let mut valid = 0;
        for single in single_ops(ops) {
            for index in 0..100 {
                valid += usize::from(baseline::generate(kind, &single, &records, 1, index).unwrap().is_ok());
            }
        }
        assert!((1..300).contains(&valid), "{kind:?}: {valid} of 300");
    }
    let chain = pattern(&["conv2d", "relu"], &[(0, 1, "input")]);
    let made = baseline::generate(Baseline::Mutate, &chain, &records, 1, 0).unwrap();
    assert_eq!(
        baseline::generate(Baseline::Mutate, &chain, &records, 1, 0).unwrap().is_ok(),
        made.is_ok(),
        "the same number is the same input"
    );
}
