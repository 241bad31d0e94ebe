//! Ties and equal maxima that no precision can see, because irrational numbers cancel or are equal: the exact evaluator keeps
//! their expressions.

use std::collections::BTreeMap;

use ulpian_reference::{Settings, evaluate_chain};
use ulpian_spec::case::Limits;
use ulpian_spec::{Case, Enclosure, ValueRef};

/// T1 of the last node of a case with these nodes, result `output`.
fn last(nodes: &str, output: usize) -> Enclosure {
    let text = format!(r#"{{"format": "ulpian-case/1", "name": "tie", "nodes": [{nodes}]}}"#);
    let case = Case::from_json(&text, "tie.json", Limits::default()).expect("a valid case");
    let at = ValueRef::Node { node: case.nodes.len() - 1, output };
    let mut truth = evaluate_chain(&case, &BTreeMap::new(), &Settings::default()).expect("determined");
    truth.real.remove(&at).expect("every result is determined")
}

fn f16(shape: &str, data: &str) -> String {
    format!(r#"{{"dtype": "float16", "shape": {shape}, "data": {data}}}"#)
}

/// (33/32, -33/32) over sqrt(1089/1024 + 959/1024) = sqrt 2.
fn norm() -> String {
    format!(
        r#"{{"id": "norm", "op": "layer_norm", "args": {{"input": {}, "normalized_shape": [2], "eps": 0.9365234375}}}}"#,
        f16("[1, 2]", "[1.03125, -1.03125]")
    )
}

#[test]
fn a_product_of_two_norms_at_a_tie_rounds_to_even() {
    let square = r#"{"id": "square", "op": "mul", "args": {"input": "%norm", "other": "%norm"}}"#;
    let three = r#"{"id": "y", "op": "mul", "args": {"input": "%square", "other": 3}}"#;
    let y = last(&format!("{}, {square}, {three}", norm()), 0);
    assert!(y.undecided.is_empty());
    // 3 * 1089 / 2048: 1633.5 units of 2^-10.
    assert_eq!(y.value.to_f64_vec(), [1634.0 / 1024.0; 2]);
}

#[test]
fn irrational_terms_that_cancel_leave_a_tie() {
    let linear = format!(
        r#"{{"id": "sum", "op": "linear", "args": {{"input": "%norm", "weight": {}, "bias": {}}}}}"#,
        f16("[1, 2]", "[3, 3]"),
        f16("[1]", "[1.0009765625]")
    );
    let half = r#"{"id": "y", "op": "add", "args": {"input": "%sum", "other": 0.00048828125}}"#;
    let y = last(&format!("{}, {linear}, {half}", norm()), 0);
    assert!(y.undecided.is_empty());
    assert_eq!(y.value.to_f64_vec(), [1.001953125]);
}

#[test]
fn gelu_of_both_signs_leaves_its_argument() {
    for approximate in ["none", "tanh"] {
        let gelu = |id: &str, x: &str| {
            format!(
                r#"{{"id": "{id}", "op": "gelu", "args": {{"input": {}, "approximate": "{approximate}"}}}}"#,
                f16("[1]", x)
            )
        };
        let difference = r#"{"id": "d", "op": "add", "args": {"input": "%a", "other": "%b", "alpha": -1}}"#;
        let half = r#"{"id": "y", "op": "add", "args": {"input": "%d", "other": 0.00048828125}}"#;
        let nodes =
            [gelu("a", "[1.0009765625]"), gelu("b", "[-1.0009765625]"), difference.into(), half.into()];
        let y = last(&nodes.join(", "), 0);
        assert!(y.undecided.is_empty());
        assert_eq!(y.value.to_f64_vec(), [1.001953125]);
    }
}

#[test]
fn softmax_of_equal_irrational_numbers_is_uniform() {
    let gelu = format!(
        r#"{{"id": "x", "op": "gelu", "args": {{"input": {}}}}}"#,
        f16("[1, 4]", "[0.75, 0.75, 0.75, 0.75]")
    );
    let softmax = r#"{"id": "p", "op": "softmax", "args": {"input": "%x", "dim": 1}}"#;
    // 1/4 * 4.0078125 = 1 + 2^-9; 2^-11 more is a tie.
    let scaled = r#"{"id": "s", "op": "mul", "args": {"input": "%p", "other": 4.0078125}}"#;
    let half = r#"{"id": "y", "op": "add", "args": {"input": "%s", "other": 0.00048828125}}"#;
    let y = last(&[gelu, softmax.into(), scaled.into(), half.into()].join(", "), 0);
    assert!(y.undecided.is_empty());
    assert_eq!(y.value.to_f64_vec(), [1.001953125; 4]);
}

#[test]
fn the_first_of_equal_irrational_maxima_is_named() {
    let x = f16("[1, 1, 2, 4]", "[0.25, 1.5, 1.5, -1, 1.5, 0.5, -2, 1.5]");
    let makers = [
        format!(r#"{{"id": "x", "op": "gelu", "args": {{"input": {x}}}}}"#),
        format!(r#"{{"id": "x", "op": "softmax", "args": {{"input": {x}, "dim": -1}}}}"#),
        format!(r#"{{"id": "x", "op": "layer_norm", "args": {{"input": {x}, "normalized_shape": [2, 4]}}}}"#),
        format!(
            r#"{{"id": "n", "op": "layer_norm", "args": {{"input": {x}, "normalized_shape": [2, 4]}}}},
               {{"id": "x", "op": "layer_norm", "args": {{"input": "%n", "normalized_shape": [4]}}}}"#
        ),
        format!(
            r#"{{"id": "n", "op": "layer_norm", "args": {{"input": {x}, "normalized_shape": [4]}}}},
               {{"id": "g", "op": "gelu", "args": {{"input": "%n", "approximate": "tanh"}}}},
               {{"id": "x", "op": "softmax", "args": {{"input": "%g", "dim": -1}}}}"#
        ),
    ];
    let pool = r#"{"id": "y", "op": "max_pool2d", "args": {"input": "%x", "kernel_size": [1, 4], "return_indices": true}}"#;
    for maker in makers {
        let y = last(&format!("{maker}, {pool}"), 1);
        assert!(y.undecided.is_empty(), "{maker}");
        let named: Vec<_> = (0..2).map(|i| y.value.get_i64(i)).collect();
        assert_eq!(named, [Some(1), Some(4)], "{maker}");
    }
}
