//! Case files: what is written reads back, and what is wrong is said with its place.

use std::sync::Arc;

use ulpian_spec::case::{CaseBuilder, Limits, NamedTensors};
use ulpian_spec::{Case, DType, HostTensor, Op, OpKind, Storage, ValueRef};

fn read(nodes: &str) -> Result<Case, String> {
    let text = format!(r#"{{"format": "ulpian-case/1", "name": "t", "nodes": {nodes}}}"#);
    Case::from_json_with(&text, "t.json", tensors(), Limits::default()).map_err(|e| e.to_string())
}

fn refused(nodes: &str) -> String {
    match read(nodes) {
        Ok(case) => panic!("taken: {case:?}"),
        Err(message) => message,
    }
}

fn tensors() -> NamedTensors {
    let f32 = |shape: &[usize]| Arc::new(HostTensor::f32(shape, &vec![0.5; shape.iter().product()]));
    [
        ("x", f32(&[2, 4, 6, 6])),
        ("m", f32(&[3, 4])),
        ("w", f32(&[5, 4])),
        ("v4", f32(&[4])),
        ("v5", f32(&[5])),
        ("v3", f32(&[3])),
        ("k", f32(&[6, 2, 3, 3])),
        ("v6", f32(&[6])),
        ("i", Arc::new(HostTensor::new([3, 4], Storage::I32(vec![7; 12])).expect("12 elements"))),
        ("mask", Arc::new(HostTensor::new([3, 4], Storage::Bool(vec![1; 12])).expect("12 elements"))),
    ]
    .map(|(name, t)| (name.to_owned(), t))
    .into()
}

/// Every op, with and without its optional arguments.
const CALLS: &[(&str, &str)] = &[
    ("flatten", r#"{"input": "@x"}"#),
    ("flatten", r#"{"input": "@x", "start_dim": 1, "end_dim": -2}"#),
    ("mul", r#"{"input": "@x", "other": "@x"}"#),
    ("__mul__", r#"{"input": "@x", "other": true}"#),
    ("mul", r#"{"input": "@m", "other": "0x1.8p+3"}"#),
    ("div", r#"{"input": "@x", "other": 3}"#),
    ("div", r#"{"input": "@i", "other": "@i", "rounding_mode": "floor"}"#),
    ("div", r#"{"input": "@i", "other": -2.0, "rounding_mode": "trunc"}"#),
    ("softmax", r#"{"input": "@m", "dim": -1}"#),
    ("softmax", r#"{"input": "@i", "dim": 0, "dtype": "bfloat16"}"#),
    ("adaptive_avg_pool2d", r#"{"input": "@x", "output_size": [null, 3]}"#),
    ("adaptive_avg_pool2d", r#"{"input": "@x", "output_size": 2}"#),
    ("matmul", r#"{"input": "@m", "other": "@v4"}"#),
    ("max_pool2d", r#"{"input": "@x", "kernel_size": 2}"#),
    (
        "max_pool2d",
        r#"{"input": "@x", "kernel_size": [3, 2], "stride": [1, 2], "padding": 1, "dilation": [1, 2],
            "ceil_mode": true, "return_indices": true}"#,
    ),
    ("batch_norm", r#"{"input": "@x", "running_mean": "@v4", "running_var": "@v4"}"#),
    (
        "batch_norm",
        r#"{"input": "@x", "running_mean": "@v4", "running_var": "@v4", "weight": "@v4", "bias": "@v4",
            "training": true, "momentum": 0.25, "eps": 1e-3}"#,
    ),
    ("batch_norm", r#"{"input": "@x", "running_mean": "@v4", "running_var": "@v4", "eps": 0}"#),
    ("batch_norm", r#"{"input": "@x", "training": true}"#),
    ("dropout", r#"{"input": "@m"}"#),
    ("dropout", r#"{"input": "@m", "p": 0.1, "training": false, "mask": "@mask"}"#),
    ("relu", r#"{"input": "@i"}"#),
    ("conv2d", r#"{"input": "@x", "weight": "@k", "groups": 2}"#),
    (
        "conv2d",
        r#"{"input": "@x", "weight": "@k", "bias": "@v6", "stride": [2, 1], "padding": [0, 1], "dilation": 2, "groups": 2}"#,
    ),
    ("conv2d", r#"{"input": "@x", "weight": "@k", "padding": "same", "groups": 2}"#),
    ("conv2d", r#"{"input": "@x", "weight": "@k", "padding": "valid", "groups": 2}"#),
    ("gelu", r#"{"input": "@x"}"#),
    ("gelu", r#"{"input": "@x", "approximate": "tanh"}"#),
    ("linear", r#"{"input": "@m", "weight": "@w", "bias": "@v5"}"#),
    ("linear", r#"{"input": "@m", "weight": "@v4"}"#),
    ("layer_norm", r#"{"input": "@m", "normalized_shape": [4]}"#),
    ("layer_norm", r#"{"input": "@m", "normalized_shape": [4], "weight": "@v4", "bias": "@v4", "eps": 0}"#),
    ("add", r#"{"input": "@m", "other": {"dtype": "float16", "shape": [], "data": "nan"}}"#),
    ("__add__", r#"{"input": "@m", "other": "inf", "alpha": -0.5}"#),
    ("add", r#"{"input": "@i", "other": "@m", "alpha": 3}"#),
];

fn every_call() -> Case {
    let nodes: Vec<String> = CALLS
        .iter()
        .enumerate()
        .map(|(i, (op, args))| format!(r#"{{"id": "n{i}", "op": "{op}", "args": {args}}}"#))
        .collect();
    read(&format!("[{}]", nodes.join(","))).expect("every call is valid")
}

/// Operands by content, since a reader may number the tensors otherwise.
fn assert_same(a: &Case, b: &Case) {
    assert_eq!((&a.name, &a.source, &a.outputs, &a.expect), (&b.name, &b.source, &b.outputs, &b.expect));
    assert_eq!(a.nodes.len(), b.nodes.len());
    for (m, n) in a.nodes.iter().zip(&b.nodes) {
        assert_eq!((&m.id, &m.types), (&n.id, &n.types));
        let blind = |op: &Op<ValueRef>| format!("{:?}", op.clone().map(|_, _| ()));
        assert_eq!(blind(&m.op), blind(&n.op));
        for ((name, x), (other, y)) in m.op.operands().into_iter().zip(n.op.operands()) {
            assert_eq!(name, other);
            match (*x, *y) {
                (ValueRef::Input(i), ValueRef::Input(j)) => {
                    assert_eq!(a.tensors[i].name, b.tensors[j].name);
                    assert!(a.tensors[i].value.same_bits(&b.tensors[j].value));
                }
                (x, y) => assert_eq!(x, y),
            }
        }
    }
    assert_eq!(a.observed.len(), b.observed.len());
    for (m, n) in a.observed.iter().zip(&b.observed) {
        assert_eq!((&m.executor, m.at), (&n.executor, n.at));
        assert!(m.tensor.same_bits(&n.tensor));
    }
}

#[test]
fn every_op_reads_back() {
    let case = every_call();
    for kind in OpKind::ALL {
        assert!(case.nodes.iter().any(|n| n.op.kind() == *kind), "no call of {kind}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("every.json");
    case.write(&path).expect("written");
    let again = Case::read(&path, Limits::default()).expect("read back");
    assert_same(&case, &again);
    // With everything inline only the tensors' names differ.
    let inline = Case::from_json(&case.to_json(), "every.json", Limits::default()).expect("read back");
    assert_eq!(inline.nodes.len(), case.nodes.len());
    assert_eq!(inline.to_json(), case.to_json());
}

#[test]
fn every_element_reads_back() {
    let mut builder = CaseBuilder::new("elements");
    let f16: Vec<_> = (0..=u16::MAX).map(half::f16::from_bits).collect();
    let bf16: Vec<_> = (0..=u16::MAX).map(half::bf16::from_bits).collect();
    let f32 =
        [0.1, -0.0, 1e38, f32::MIN_POSITIVE, 1e-45, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 16_777_217.0];
    let f64 = [0.1, -0.0, 1e308, 5e-324, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.0 / 3.0, 1e22, 1e23];
    for (i, storage) in [
        Storage::F16(f16),
        Storage::BF16(bf16),
        Storage::F32(f32.to_vec()),
        Storage::F64(f64.to_vec()),
        Storage::I64(vec![i64::MIN, i64::MAX, 0]),
        Storage::I8(vec![-128, 127]),
        Storage::U8(vec![255, 0]),
    ]
    .into_iter()
    .enumerate()
    {
        let tensor = HostTensor::new([storage.len()], storage).expect("the shape is the length");
        let x = builder.inline_tensor(format!("n{i}.input"), tensor).expect("small enough");
        builder.node(format!("n{i}"), Op::Relu(ulpian_spec::ops::relu::Relu { input: x })).expect("valid");
    }
    let case = builder.finish().expect("valid");
    let again = Case::from_json(&case.to_json(), "elements.json", Limits::default()).expect("read back");
    assert_same(&case, &again);
}

#[test]
fn results_are_named() {
    let case = read(
        r#"[{"id": "p", "op": "max_pool2d", "args": {"input": "@x", "kernel_size": 2, "return_indices": true}},
            {"id": "q", "op": "relu", "args": {"input": "%p.1"}}]"#,
    )
    .expect("valid");
    assert_eq!(case.nodes[1].types[0].dtype, DType::I64);
    assert_eq!(case.outputs, [ValueRef::Node { node: 1, output: 0 }]);
    let message = refused(
        r#"[{"id": "p", "op": "max_pool2d", "args": {"input": "@x", "kernel_size": 2}},
            {"id": "q", "op": "relu", "args": {"input": "%p.1"}}]"#,
    );
    assert_eq!(
        message,
        "t.json: node q, argument input: max_pool2d of node p has one result here; there is no `p.1`"
    );
}

#[test]
fn messages_name_the_place_and_the_remedy() {
    let node = |op: &str, args: &str| refused(&format!(r#"[{{"id": "fc", "op": "{op}", "args": {args}}}]"#));
    for (op, args, expected) in [
        (
            "linear",
            r#"{"input": "@m", "weight": "@w", "bias": "@v4"}"#,
            "node fc, argument bias: expected a tensor of shape [5], got float32[4]",
        ),
        (
            "linear",
            r#"{"input": "@m", "weight": "@w", "bais": "@v4"}"#,
            "node fc: unknown argument `bais`; linear takes input, weight, bias; did you mean `bias`?",
        ),
        (
            "linaer",
            "{}",
            "node fc: unknown op `linaer`; the ops are flatten, mul, div, softmax, adaptive_avg_pool2d, matmul, \
             max_pool2d, batch_norm, dropout, relu, conv2d, gelu, linear, layer_norm, add; did you mean `linear`?",
        ),
        ("linear", r#"{"weight": "@w"}"#, "node fc, argument input: linear needs it"),
        (
            "relu",
            r#"{"input": "@y"}"#,
            "node fc, argument input: there is no tensor `y`; there are: i, k, m, mask, v3, v4, v5, v6, … (10 in all); \
             did you mean `i`?",
        ),
        (
            "relu",
            r#"{"input": 3}"#,
            "node fc, argument input: expected a tensor: \"@name\", \"%id\" or {\"dtype\", \"shape\", \"data\"}; got 3",
        ),
        ("relu", r#"{"input": "%gone"}"#, "node fc, argument input: there is no node `gone`"),
        ("relu", r#"{"input": "%fc"}"#, "node fc, argument input: a cycle: node fc uses %fc"),
        (
            "add",
            r#"{"input": "@m", "other": 1e400}"#,
            "node fc, argument other: 1e400 is beyond the greatest finite float64; write \"inf\" if infinity is meant",
        ),
        (
            "max_pool2d",
            r#"{"input": "@x", "kernel_size": 2.0}"#,
            "node fc, argument kernel_size: expected an integer, got the float 2.0",
        ),
        (
            "relu",
            r#"{"input": {"dtype": "int8", "shape": [2], "data": [1, 128]}}"#,
            "node fc, argument input: data: element 1: 128 is not representable in int8, which holds -128 to 127",
        ),
        (
            "dropout",
            r#"{"input": "@m", "mask": "@m"}"#,
            "node fc, argument mask: expected bool, or zeros and ones; element 0 is 0.5",
        ),
        (
            "div",
            r#"{"input": "@i", "other": 0, "rounding_mode": "trunc"}"#,
            "node fc, argument other: 0 is 0 in int32: integer division by zero",
        ),
    ] {
        assert_eq!(node(op, args), format!("t.json: {expected}"));
    }
}

#[test]
fn the_order_of_nodes_is_checked() {
    let relu =
        |id: &str, from: &str| format!(r#"{{"id": "{id}", "op": "relu", "args": {{"input": "{from}"}}}}"#);
    let nodes = |list: &[String]| refused(&format!("[{}]", list.join(",")));
    assert_eq!(
        nodes(&[relu("a", "%b"), relu("b", "@m")]),
        "t.json: node a, argument input: %b comes later; a node uses earlier ones only, so list it first"
    );
    assert_eq!(
        nodes(&[relu("a", "%b"), relu("b", "%c"), relu("c", "%a")]),
        "t.json: node a, argument input: a cycle: node a uses %b, which uses %c, which uses %a"
    );
    assert_eq!(nodes(&[relu("a", "@m"), relu("a", "@m")]), "t.json: node a: the id is given twice");
}

#[test]
fn a_large_observed_tensor_goes_to_the_tensors_file() {
    let mut builder = CaseBuilder::new("seen");
    let x = builder.tensor("x", HostTensor::f32(&[100], &[1.0; 100])).expect("new");
    let y = builder.node_from_json("y", "relu", r#"{"input": "@x"}"#).expect("valid");
    assert_eq!(x, ValueRef::Input(0));
    builder.observe("a", y, HostTensor::f32(&[100], &[f32::NAN; 100])).expect("new");
    builder.observe("b", y, HostTensor::f32(&[1], &[2.0])).expect("a wrong shape is a finding");
    assert!(builder.observe("b", y, HostTensor::f32(&[1], &[2.0])).is_err());
    let case = builder.finish().expect("valid");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("seen.json");
    case.write(&path).expect("written");
    let text = std::fs::read_to_string(&path).expect("text");
    assert!(text.contains(r#""tensor": "@observed.0""#), "{text}");
    assert_same(&case, &Case::read(&path, Limits::default()).expect("read back"));
}
