//! `torch:cpu` under its keys: values that are known, and what cannot run.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;

use common::{case, config, failed, id, input, node, ok, unavailable};
use ulpian_spec::ops::{
    GeluApproximate, Scalar, TensorOrScalar, add, batch_norm, conv2d, div, dropout, flatten, gelu,
    layer_norm, linear, matmul, max_pool2d, mul, relu, softmax,
};
use ulpian_spec::ops::{Padding, adaptive_avg_pool2d};
use ulpian_spec::{Case, DType, HostTensor, Op, OpKind, Outcome, Storage, TensorType, ValueRef};
use ulpian_vendor_compare::Pool;

fn f32s(shape: &[usize]) -> TensorType {
    TensorType::new(DType::F32, shape)
}

/// Integers, so that every order of summation gives the same bits.
fn ramp(shape: &[usize]) -> HostTensor {
    let n: usize = shape.iter().product();
    HostTensor::f32(shape, &(0..n).map(|i| (i * 7 % 11) as f32 - 5.0).collect::<Vec<_>>())
}

/// A case of each op, with one input `(2, 4, 6, 6)` or what it needs.
fn one_of_each() -> BTreeMap<OpKind, Case> {
    let x = || ramp(&[2, 4, 6, 6]);
    let matrix = || ramp(&[3, 8]);
    let ones = |n: usize| HostTensor::f32(&[n], &vec![1.0; n]);
    let image = f32s(&[2, 4, 6, 6]);
    let op_cases = vec![
        case(
            &[x()],
            vec![(
                Op::Flatten(flatten::Flatten { input: input(0), start_dim: 1, end_dim: -1 }),
                vec![f32s(&[2, 144])],
            )],
        ),
        case(
            &[x(), x()],
            vec![(
                Op::Mul(mul::Mul { input: input(0), other: TensorOrScalar::Tensor(input(1)) }),
                vec![image.clone()],
            )],
        ),
        case(
            &[x()],
            vec![(
                Op::Div(div::Div {
                    input: input(0),
                    other: TensorOrScalar::Scalar(Scalar::Float(2.5)),
                    rounding_mode: None,
                }),
                vec![image.clone()],
            )],
        ),
        case(
            &[x()],
            vec![(
                Op::Softmax(softmax::Softmax { input: input(0), dim: -1, dtype: None }),
                vec![image.clone()],
            )],
        ),
        case(
            &[x()],
            vec![(
                Op::AdaptiveAvgPool2d(adaptive_avg_pool2d::AdaptiveAvgPool2d {
                    input: input(0),
                    output_size: [Some(3), Some(2)],
                }),
                vec![f32s(&[2, 4, 3, 2])],
            )],
        ),
        case(
            &[matrix(), ramp(&[8, 5])],
            vec![(Op::Matmul(matmul::Matmul { input: input(0), other: input(1) }), vec![f32s(&[3, 5])])],
        ),
        case(
            &[x()],
            vec![(
                Op::MaxPool2d(max_pool2d::MaxPool2d {
                    input: input(0),
                    kernel_size: [2, 2],
                    stride: [2, 2],
                    padding: [0, 0],
                    dilation: [1, 1],
                    ceil_mode: false,
                    return_indices: true,
                }),
                vec![f32s(&[2, 4, 3, 3]), TensorType::new(DType::I64, [2, 4, 3, 3])],
            )],
        ),
        case(
            &[x(), ones(4), ones(4)],
            vec![(
                Op::BatchNorm(batch_norm::BatchNorm {
                    input: input(0),
                    running_mean: Some(input(1)),
                    running_var: Some(input(2)),
                    weight: None,
                    bias: None,
                    training: false,
                    momentum: 0.1,
                    eps: 1e-5,
                }),
                vec![image.clone()],
            )],
        ),
        case(
            &[x(), HostTensor::new([2, 4, 6, 6], Storage::Bool(vec![1; 288])).unwrap()],
            vec![(
                Op::Dropout(dropout::Dropout {
                    input: input(0),
                    mask: Some(input(1)),
                    p: 0.5,
                    training: true,
                }),
                vec![image.clone()],
            )],
        ),
        case(&[x()], vec![(Op::Relu(relu::Relu { input: input(0) }), vec![image.clone()])]),
        case(
            &[x(), ramp(&[8, 2, 3, 3]), ones(8)],
            vec![(
                Op::Conv2d(conv2d::Conv2d {
                    input: input(0),
                    weight: input(1),
                    bias: Some(input(2)),
                    stride: [1, 1],
                    padding: Padding::Same,
                    dilation: [1, 1],
                    groups: 2,
                }),
                vec![f32s(&[2, 8, 6, 6])],
            )],
        ),
        case(
            &[x()],
            vec![(
                Op::Gelu(gelu::Gelu { input: input(0), approximate: GeluApproximate::Tanh }),
                vec![image.clone()],
            )],
        ),
        case(
            &[matrix(), ramp(&[5, 8]), ones(5)],
            vec![(
                Op::Linear(linear::Linear { input: input(0), weight: input(1), bias: Some(input(2)) }),
                vec![f32s(&[3, 5])],
            )],
        ),
        case(
            &[x(), ones(6)],
            vec![(
                Op::LayerNorm(layer_norm::LayerNorm {
                    input: input(0),
                    weight: Some(input(1)),
                    bias: None,
                    normalized_shape: vec![6],
                    eps: 1e-5,
                }),
                vec![image.clone()],
            )],
        ),
        case(
            &[x(), x()],
            vec![(
                Op::Add(add::Add {
                    input: input(0),
                    other: TensorOrScalar::Tensor(input(1)),
                    alpha: Scalar::Int(3),
                }),
                vec![image],
            )],
        ),
    ];
    op_cases.into_iter().map(|c| (c.nodes[0].op.kind(), c)).collect()
}

#[test]
fn every_op_under_every_key() {
    let mut pool = Pool::new(config());
    let cases = one_of_each();
    assert_eq!(cases.len(), OpKind::ALL.len());
    for (kind, case) in &cases {
        let default = ok(pool.run(&id("torch:cpu"), case));
        for (k, wanted) in case.nodes[0].types.iter().enumerate() {
            let got = &default.results[&ValueRef::Node { node: 0, output: k }];
            assert_eq!(got.tensor_type(), *wanted, "{kind}");
        }
        for keys in ["mkldnn=off", "isa=default", "threads=1", "batch=1", "layout=channels_last"] {
            let outcome = pool.run(&id(&format!("torch:cpu?{keys}")), case);
            if keys == "layout=channels_last" && matches!(kind, OpKind::Matmul | OpKind::Linear) {
                assert!(unavailable(outcome).0.contains("four dimensions"));
                continue;
            }
            let run = ok(outcome);
            for (at, a) in &default.results {
                let b = &run.results[at];
                // Where only exact operations are needed, every switch gives the same bits.
                let exact = !matches!(
                    kind,
                    OpKind::Softmax
                        | OpKind::BatchNorm
                        | OpKind::Gelu
                        | OpKind::LayerNorm
                        | OpKind::AdaptiveAvgPool2d
                );
                if exact {
                    assert!(a.same_bits(b), "{kind} {keys}");
                }
                for (x, y) in a.to_f64_vec().into_iter().zip(b.to_f64_vec()) {
                    assert!((x - y).abs() <= 1e-5 * (1.0 + x.abs()), "{kind} {keys}: {x} {y}");
                }
            }
        }
    }
    // One process for the defaults and all switches but the ISA.
    assert_eq!(pool.processes().len(), 2);
}

#[test]
fn every_op_in_onnx_runtime() {
    let mut pool = Pool::new(config());
    let mut torch = Pool::new(config());
    for (kind, case) in &one_of_each() {
        let outcome = pool.run(&id("ort:cpu"), case);
        if *kind == OpKind::Dropout {
            assert!(unavailable(outcome).0.contains("ONNX has no dropout"));
            continue;
        }
        let (ours, theirs) = (ok(outcome), ok(torch.run(&id("torch:cpu"), case)));
        assert_eq!(ours.results.len(), theirs.results.len());
        for (at, a) in &ours.results {
            let b = &theirs.results[at];
            assert_eq!(a.tensor_type(), b.tensor_type(), "{kind}");
            for (x, y) in a.to_f64_vec().into_iter().zip(b.to_f64_vec()) {
                assert!((x - y).abs() <= 1e-5 * (1.0 + x.abs()), "{kind}: {x} {y}");
            }
        }
    }
}

/// Where oneDNN is off, NNPACK computes convolutions of 16 images or more, and a product with 1 is not exact.
#[test]
fn nnpack_can_be_left_out() {
    let mut pool = Pool::new(config());
    let weight = 0.241_408_035_f32;
    let conv2d = Op::Conv2d(conv2d::Conv2d {
        input: input(0),
        weight: input(1),
        bias: None,
        stride: [1, 1],
        padding: Padding::Explicit([0, 0]),
        dilation: [1, 1],
        groups: 1,
    });
    let tensors = [HostTensor::f32(&[16, 1, 1, 2], &[1.0; 32]), HostTensor::f32(&[1, 1, 1, 1], &[weight])];
    let c = case(&tensors, vec![(conv2d, vec![f32s(&[16, 1, 1, 2])])]);
    match pool.run(&id("torch:cpu?mkldnn=off&nnpack=off"), &c) {
        Outcome::Unavailable { reason, .. } => assert!(reason.contains("NNPACK"), "{reason}"),
        outcome => {
            assert_eq!(ok(outcome).results[&node(0)].to_f64_vec(), [f64::from(weight); 32]);
            let with = ok(pool.run(&id("torch:cpu?mkldnn=off"), &c)).results[&node(0)].to_f64_vec();
            assert!(with.iter().all(|y| (y - f64::from(weight)).abs() < 1e-6), "{with:?}");
        }
    }
}

#[test]
fn bfloat16_in_onnx_runtime() {
    let mut pool = Pool::new(config());
    let values = [1.0, -0.0, -3.5, 3.389_531_4e38, f32::INFINITY, 1e-40].map(half::bf16::from_f32);
    let x = HostTensor::new([2, 1, 3], Storage::BF16(values.to_vec())).unwrap();
    let ty = TensorType::new(DType::BF16, [2, 3]);
    let flatten = Op::Flatten(flatten::Flatten { input: input(0), start_dim: 1, end_dim: -1 });
    let run = ok(pool.run(&id("ort:cpu"), &case(&[x], vec![(flatten, vec![ty])])));
    let expected = HostTensor::new([2, 3], Storage::BF16(values.to_vec())).unwrap();
    assert_eq!(*run.results[&node(0)], expected);
}

fn gelu_case(x: HostTensor) -> Case {
    let ty = x.tensor_type();
    let op = Op::Gelu(gelu::Gelu { input: input(0), approximate: GeluApproximate::None });
    case(&[x], vec![(op, vec![ty])])
}

#[test]
fn onnx_runtime_says_what_it_lacks() {
    let mut pool = Pool::new(config());
    let x = HostTensor::new([2], Storage::BF16(vec![half::bf16::ONE; 2])).unwrap();
    let (reason, remedy) = unavailable(pool.run(&id("ort:cpu"), &gelu_case(x)));
    assert!(reason.contains("no Gelu for bfloat16"), "{reason}");
    assert!(!remedy.is_empty());
}

/// PyTorch's exact gelu is 0.5 x (1 + erf(x / sqrt 2)), which loses everything at -6.
#[test]
fn a_chain_keeps_every_result() {
    let mut pool = Pool::new(config());
    let ty = f32s(&[2]);
    let chain = case(
        &[HostTensor::f32(&[2], &[-6.0, 2.0])],
        vec![
            (Op::Gelu(gelu::Gelu { input: input(0), approximate: GeluApproximate::None }), vec![ty.clone()]),
            (
                Op::Add(add::Add {
                    input: node(0),
                    other: TensorOrScalar::Scalar(Scalar::Float(f64::INFINITY)),
                    alpha: Scalar::Int(1),
                }),
                vec![ty],
            ),
        ],
    );
    for name in ["torch:cpu", "torch:cpu?compile=on", "ort:cpu"] {
        let run = ok(pool.run(&id(name), &chain));
        let first = run.results[&node(0)].to_f64_vec();
        assert_eq!(first[0], 0.0, "{name}");
        assert!((first[1] - 1.954_499_7).abs() < 1e-6, "{name}: {first:?}");
        assert_eq!(run.results[&node(1)].to_f64_vec(), [f64::INFINITY; 2], "{name}");
    }
}

#[test]
fn zero_sized_and_zero_dimensional_tensors() {
    let mut pool = Pool::new(config());
    for shape in [&[0, 3][..], &[]] {
        let n: usize = shape.iter().product();
        let x = HostTensor::f32(shape, &vec![-2.0; n]);
        let relu = case(&[x], vec![(Op::Relu(relu::Relu { input: input(0) }), vec![f32s(shape)])]);
        for name in ["torch:cpu", "ort:cpu"] {
            let run = ok(pool.run(&id(name), &relu));
            assert!(run.results[&node(0)].same_bits(&HostTensor::f32(shape, &vec![0.0; n])), "{name}");
        }
    }
}

fn batch_norm_in_training(running_mean: Option<ValueRef>, running_var: Option<ValueRef>) -> Op<ValueRef> {
    Op::BatchNorm(batch_norm::BatchNorm {
        input: input(0),
        running_mean,
        running_var,
        weight: None,
        bias: None,
        training: true,
        momentum: 0.5,
        eps: 1e-5,
    })
}

#[test]
fn batch_norm_in_training_in_onnx_runtime() {
    let mut pool = Pool::new(config());
    let x = HostTensor::f32(&[4, 1], &[1.0, 2.0, 3.0, 6.0]);
    let c = case(&[x], vec![(batch_norm_in_training(None, None), vec![f32s(&[4, 1])])]);
    for name in ["torch:cpu", "ort:cpu"] {
        let run = ok(pool.run(&id(name), &c));
        assert_eq!(run.results.len(), 1);
        let scale = (3.5_f64 + 1e-5).sqrt();
        for (y, wanted) in run.results[&node(0)].to_f64_vec().into_iter().zip([-2.0, -1.0, 0.0, 3.0]) {
            assert!((y - wanted / scale).abs() < 1e-6, "{name}: {y}");
        }
    }
}

#[test]
fn batch_norm_in_training_updates_copies() {
    let mut pool = Pool::new(config());
    let op = batch_norm_in_training(Some(input(1)), Some(input(2)));
    let c = case(
        &[
            HostTensor::f32(&[2, 1], &[1.0, 3.0]),
            HostTensor::f32(&[1], &[0.0]),
            HostTensor::f32(&[1], &[1.0]),
        ],
        vec![(op, vec![f32s(&[2, 1]), f32s(&[1]), f32s(&[1])])],
    );
    for _ in 0..2 {
        let run = ok(pool.run(&id("torch:cpu"), &c));
        let of = |output| run.results[&ValueRef::Node { node: 0, output }].to_f64_vec();
        // Mean 2 and unbiased variance 2, half and half with 0 and 1.
        assert_eq!((of(1), of(2)), (vec![1.0], vec![1.5]));
    }
    assert!(unavailable(pool.run(&id("ort:cpu"), &c)).0.contains("unbiased"));
}

/// What dropout gives for a mask is what PyTorch gives when it draws that mask itself.
#[test]
fn dropout_with_the_mask_that_pytorch_drew() {
    let mut pool = Pool::new(config());
    let values: Vec<f32> = (1..=4096).map(|i| i as f32 / 37.0).collect();
    for dtype in DType::FLOATS {
        let x = match dtype {
            DType::F64 => Storage::F64(values.iter().map(|&x| f64::from(x)).collect()),
            DType::F32 => Storage::F32(values.clone()),
            DType::F16 => Storage::F16(values.iter().map(|&x| half::f16::from_f32(x)).collect()),
            _ => Storage::BF16(values.iter().map(|&x| half::bf16::from_f32(x)).collect()),
        };
        let x = HostTensor::new([4096], x).unwrap();
        for p in [0.0, 0.1, 0.3, 0.9, 1.0] {
            let with = |tensors: &[HostTensor], mask| {
                let op = Op::Dropout(dropout::Dropout { input: input(0), mask, p, training: true });
                case(tensors, vec![(op, vec![x.tensor_type()])])
            };
            let drawn = ok(pool.run(&id("torch:cpu"), &with(std::slice::from_ref(&x), None)));
            assert!(drawn.notes[0].contains("mask drawn by PyTorch"), "{:?}", drawn.notes);
            let drawn = &drawn.results[&node(0)];
            let kept: Vec<u8> = drawn.to_f64_vec().into_iter().map(|y| u8::from(y != 0.0)).collect();
            let count = kept.iter().map(|&k| f64::from(k)).sum::<f64>() / 4096.0;
            assert!((count - (1.0 - p)).abs() < 0.05, "p = {p}: {count} kept");
            // Where p alone decides, a mask that says otherwise changes nothing.
            let kept = if p == 0.0 || p == 1.0 { kept.iter().map(|k| 1 - k).collect() } else { kept };
            let mask = HostTensor::new([4096], Storage::Bool(kept)).unwrap();
            let given = ok(pool.run(&id("torch:cpu"), &with(&[x.clone(), mask], Some(input(1)))));
            assert!(given.notes[0].contains("takes no mask"), "{:?}", given.notes);
            assert!(given.results[&node(0)].same_bits(drawn), "{dtype} p = {p}");
        }
    }
}

#[test]
fn an_exception_names_its_node() {
    let mut pool = Pool::new(config());
    let op = Op::Matmul(matmul::Matmul { input: input(0), other: input(1) });
    let tensors = [HostTensor::f32(&[2, 3], &[0.0; 6]), HostTensor::f32(&[2, 3], &[0.0; 6])];
    let reason = failed(pool.run(&id("torch:cpu"), &case(&tensors, vec![(op, vec![f32s(&[2, 3])])])));
    assert!(reason.starts_with("node n0: RuntimeError: "), "{reason}");
    assert!(reason.contains("mat1 and mat2 shapes"), "{reason}");
}

#[test]
fn what_cannot_run_says_why_and_what_to_do() {
    let mut pool = Pool::new(config());
    let c = gelu_case(HostTensor::f32(&[3], &[1.0, 2.0, 3.0]));
    let (reason, _) = unavailable(pool.run(&id("torch:cpu?layout=channels_last"), &c));
    assert!(reason.contains("four dimensions"), "{reason}");
    for (name, says) in [
        ("torch:cpu?mkldnn=on", "`mkldnn=on` is not one of mkldnn=off"),
        ("torch:cpu?tf32=on", "no key `tf32`; its keys are batch=1, compile=on"),
        ("torch:cpu?threads=0", "threads"),
        ("torch:tpu", "cpu and cuda"),
        ("ort:cpu?threads=1", "it has no keys"),
        ("gpu:native", "no family `gpu`"),
    ] {
        let reason = failed(pool.run(&id(name), &c));
        assert!(reason.contains(says), "{name}: {reason}");
    }
    #[cfg(target_arch = "x86_64")]
    if !is_x86_feature_detected!("avx512f") {
        let (reason, remedy) = unavailable(pool.run(&id("torch:cpu?isa=avx512"), &c));
        assert!(reason.contains("AVX-512") && !remedy.is_empty(), "{reason}");
    }
    let facts = pool.introduce("torch").unwrap();
    if facts["cuda_devices"].as_array().is_some_and(Vec::is_empty) {
        let (reason, remedy) = unavailable(pool.run(&id("torch:cuda?tf32=off"), &c));
        assert!(reason.contains("torch.cuda.is_available() is false") && remedy.contains("GPU"), "{reason}");
    }
}

#[test]
fn an_observation_is_a_party() {
    let mut pool = Pool::new(config());
    let mut c = gelu_case(HostTensor::f32(&[1], &[1.0]));
    let seen = std::sync::Arc::new(HostTensor::f32(&[1], &[0.84]));
    c.observed.push(ulpian_spec::Observation { executor: "a100".into(), at: node(0), tensor: seen.clone() });
    let run = ok(pool.run(&id("recorded:a100"), &c));
    assert!(run.results[&node(0)].same_bits(&seen));
    let (_, remedy) = unavailable(pool.run(&id("recorded:h100"), &c));
    assert!(remedy.contains("a100"), "{remedy}");
    assert!(pool.processes().is_empty());
}
