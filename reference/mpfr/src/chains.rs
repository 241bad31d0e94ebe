//! Random chains of two to five ops: the exact chain over the reals against the reference's, and against its wider enclosures.

use std::collections::BTreeMap;
use std::sync::Arc;

use ulpian_reference::{Settings, enclose_real, evaluate_chain};
use ulpian_spec::case::CaseTensor;
use ulpian_spec::ops::*;
use ulpian_spec::{Case, DType, HostTensor, Node, Op, TensorType, ValueRef};

use crate::generate::{PROFILES, Profile, Rng, tensor};
use crate::ops::{Tensor, run};
use crate::{Tally, compare};

/// A chain over a (2, 4, 4, 4) input, with the exact results of every node.
pub fn check(dtype: DType, rng: &mut Rng, prec: u32) -> Tally {
    let mut inputs: Vec<CaseTensor> = Vec::new();
    let mut exact_inputs: Vec<Tensor> = Vec::new();
    let mut nodes: Vec<Node> = Vec::new();
    let mut exact: Vec<Vec<Tensor>> = Vec::new();
    let profile = rng.pick(&PROFILES);
    let specials = rng.chance(12);
    let mut leaf = |shape: &[usize], rng: &mut Rng| {
        let profile = if rng.chance(3) { Profile::Ordinary } else { profile };
        let t = tensor(dtype, shape, rng, profile, specials);
        exact_inputs.push(Tensor::from_host(&t, prec));
        inputs.push(CaseTensor { name: format!("t{}", inputs.len()), inline: false, value: Arc::new(t) });
        (ValueRef::Input(inputs.len() - 1), exact_inputs[inputs.len() - 1].clone())
    };
    let mut current = leaf(&[2, 4, 4, 4], rng);
    for _ in 0..rng.range(2, 5) {
        let shape = current.1.shape.clone();
        let spatial = shape.len() == 4;
        let last = shape[shape.len() - 1];
        // Pairs of the reference's operand and the oracle's.
        let input = current.clone();
        let op: Op<(ValueRef, Tensor)> = match rng.range(0, if spatial { 12 } else { 8 }) {
            0 => Op::Add(add::Add {
                input: input.clone(),
                other: TensorOrScalar::Tensor(leaf(&shape, rng)),
                alpha: Scalar::Int(1),
            }),
            1 => Op::Mul(mul::Mul { input: input.clone(), other: TensorOrScalar::Tensor(leaf(&shape, rng)) }),
            2 => Op::Div(div::Div {
                input: input.clone(),
                other: TensorOrScalar::Tensor(leaf(&shape, rng)),
                rounding_mode: None,
            }),
            3 => Op::Softmax(softmax::Softmax { input, dim: -1, dtype: None }),
            4 => Op::Relu(relu::Relu { input }),
            5 => Op::Gelu(gelu::Gelu {
                input,
                approximate: rng.pick(&[GeluApproximate::None, GeluApproximate::Tanh]),
            }),
            6 => Op::Linear(linear::Linear {
                input,
                weight: leaf(&[4, last], rng),
                bias: Some(leaf(&[4], rng)),
            }),
            7 => Op::LayerNorm(layer_norm::LayerNorm {
                input,
                weight: Some(leaf(&[last], rng)),
                bias: Some(leaf(&[last], rng)),
                normalized_shape: vec![last as i64],
                eps: 1e-5,
            }),
            8 if !spatial => Op::Matmul(matmul::Matmul { input, other: leaf(&[last, 3], rng) }),
            8 => Op::Flatten(flatten::Flatten { input, start_dim: 1, end_dim: -1 }),
            9 => Op::Conv2d(conv2d::Conv2d {
                input,
                weight: leaf(&[2, shape[1], 3, 3], rng),
                bias: None,
                stride: [1, 1],
                padding: Padding::Explicit([1, 1]),
                dilation: [1, 1],
                groups: 1,
            }),
            10 => Op::AdaptiveAvgPool2d(adaptive_avg_pool2d::AdaptiveAvgPool2d {
                input,
                output_size: [Some(2), Some(3)],
            }),
            11 => Op::MaxPool2d(max_pool2d::MaxPool2d {
                input,
                kernel_size: [2, 2],
                stride: [1, 1],
                padding: [1, 1],
                dilation: [1, 1],
                ceil_mode: false,
                return_indices: false,
            }),
            _ => Op::BatchNorm(batch_norm::BatchNorm {
                input,
                running_mean: None,
                running_var: None,
                weight: None,
                bias: None,
                training: true,
                momentum: 0.1,
                eps: 1e-5,
            }),
        };
        let results = {
            let exact_op = op.as_ref().map(|_, pair| &pair.1);
            run(&exact_op, prec)
        };
        let types = results.iter().map(|t| TensorType::new(t.dtype, t.shape.clone())).collect();
        nodes.push(Node { id: format!("n{}", nodes.len()), op: op.map(|_, pair| pair.0), types });
        current = (ValueRef::Node { node: nodes.len() - 1, output: 0 }, results[0].clone());
        exact.push(results);
    }
    let case = Case {
        name: "chain".into(),
        source: String::new(),
        tensors: inputs,
        outputs: vec![current.0],
        nodes,
        observed: Vec::new(),
        expect: None,
    };
    let what = || {
        let list: Vec<String> = case.nodes.iter().map(|n| format!("{:?}", n.op)).collect();
        format!(
            "chain {} over {:?}",
            list.join("; "),
            case.tensors.iter().map(|t| describe(&t.value)).collect::<Vec<_>>()
        )
    };
    let (masks, settings) = (BTreeMap::new(), Settings::default());
    let both = evaluate_chain(&case, &masks, &settings)
        .and_then(|truth| Ok((truth, enclose_real(&case, &masks, &settings)?)));
    match both {
        Ok((truth, wide)) => {
            let mut tally = Tally::default();
            for (node, results) in exact.iter().enumerate() {
                for (output, t) in results.iter().enumerate() {
                    let at = ValueRef::Node { node, output };
                    let what = || format!("node {node}: {}", what());
                    match truth.real.get(&at) {
                        Some(e) => tally = tally.plus(compare(t, e, &what)),
                        None => eprintln!("no result: {}", what()),
                    }
                    if let Some(e) = wide.get(&at) {
                        // What it leaves open is no failure of it, and its elements are counted once.
                        let found = compare(t, e, &|| format!("wide, {}", what()));
                        tally.wrong += found.wrong;
                        tally.missed += found.missed;
                    }
                }
            }
            tally
        }
        Err(e) => {
            eprintln!("{e}: {}", what());
            Tally { elements: 1, wrong: 1, ..Tally::default() }
        }
    }
}

fn describe(t: &HostTensor) -> String {
    format!("{}: {:?}", t.tensor_type(), t.to_f64_vec())
}
