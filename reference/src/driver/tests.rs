use ulpian_spec::ops::adaptive_avg_pool2d::AdaptiveAvgPool2d;
use ulpian_spec::ops::add::Add;
use ulpian_spec::ops::batch_norm::BatchNorm;
use ulpian_spec::ops::conv2d::Conv2d;
use ulpian_spec::ops::div::Div;
use ulpian_spec::ops::dropout::Dropout;
use ulpian_spec::ops::flatten::Flatten;
use ulpian_spec::ops::gelu::Gelu;
use ulpian_spec::ops::layer_norm::LayerNorm;
use ulpian_spec::ops::linear::Linear;
use ulpian_spec::ops::matmul::Matmul;
use ulpian_spec::ops::max_pool2d::MaxPool2d;
use ulpian_spec::ops::mul::Mul;
use ulpian_spec::ops::relu::Relu;
use ulpian_spec::ops::softmax::Softmax;
use ulpian_spec::ops::{GeluApproximate, Padding, RoundingMode, Scalar, TensorOrScalar};
use ulpian_spec::{DType, OpKind, Storage};

use super::*;
use crate::assemble::{Number, store};
use crate::dd::Dd;
use crate::exact::Resolved;
use crate::random::Random;
use crate::round::round_f64;

type Make = fn(&mut Random, &[usize]) -> HostTensor;

/// Calls of an op, over float32.
fn samples(kind: OpKind, r: &mut Random, make: Make) -> Vec<Op<HostTensor>> {
    let tensor = TensorOrScalar::Tensor;
    match kind {
        OpKind::Flatten => {
            vec![Op::Flatten(Flatten { input: make(r, &[2, 3, 2]), start_dim: 0, end_dim: 1 })]
        }
        OpKind::Add => [Scalar::Int(1), Scalar::Int(3)]
            .map(|alpha| Op::Add(Add { input: make(r, &[4, 3]), other: tensor(make(r, &[3])), alpha }))
            .to_vec(),
        OpKind::Mul => vec![Op::Mul(Mul { input: make(r, &[4, 3]), other: tensor(make(r, &[4, 1])) })],
        OpKind::Div => [None, Some(RoundingMode::Floor), Some(RoundingMode::Trunc)]
            .map(|rounding_mode| {
                let (input, other) = (make(r, &[4, 3]), tensor(make(r, &[4, 3])));
                Op::Div(Div { input, other, rounding_mode })
            })
            .to_vec(),
        OpKind::Softmax => vec![Op::Softmax(Softmax { input: make(r, &[3, 4]), dim: 0, dtype: None })],
        OpKind::AdaptiveAvgPool2d => {
            vec![Op::AdaptiveAvgPool2d(AdaptiveAvgPool2d {
                input: make(r, &[2, 4, 5]),
                output_size: [Some(3), None],
            })]
        }
        OpKind::Matmul => vec![Op::Matmul(Matmul { input: make(r, &[2, 3, 5]), other: make(r, &[5, 4]) })],
        OpKind::MaxPool2d => [false, true]
            .map(|return_indices| {
                Op::MaxPool2d(MaxPool2d {
                    input: make(r, &[2, 5, 5]),
                    kernel_size: [3, 2],
                    stride: [2, 1],
                    padding: [1, 0],
                    dilation: [1, 2],
                    ceil_mode: true,
                    return_indices,
                })
            })
            .to_vec(),
        OpKind::BatchNorm => [false, true]
            .map(|training| {
                let mut positive = make(r, &[2]);
                if let Storage::F32(v) = positive.storage() {
                    positive = HostTensor::f32(&[2], &v.iter().map(|x| x.abs()).collect::<Vec<_>>());
                }
                Op::BatchNorm(BatchNorm {
                    input: make(r, &[3, 2, 2]),
                    running_mean: Some(make(r, &[2])),
                    running_var: Some(positive),
                    weight: Some(make(r, &[2])),
                    bias: Some(make(r, &[2])),
                    training,
                    momentum: 0.1,
                    eps: 1e-5,
                })
            })
            .to_vec(),
        OpKind::Dropout => [(0.5, true), (0.1, true), (1.0, true), (0.5, false)]
            .map(|(p, training)| {
                let bits = (0..6).map(|_| (r.bits() % 2) as u8).collect();
                let mask = HostTensor::new([2, 3], Storage::Bool(bits));
                Op::Dropout(Dropout { input: make(r, &[2, 3]), mask, p, training })
            })
            .to_vec(),
        OpKind::Relu => vec![Op::Relu(Relu { input: make(r, &[9]) })],
        OpKind::Conv2d => vec![Op::Conv2d(Conv2d {
            input: make(r, &[1, 2, 4, 4]),
            weight: make(r, &[2, 1, 2, 3]),
            bias: Some(make(r, &[2])),
            stride: [1, 2],
            padding: Padding::Explicit([1, 1]),
            dilation: [1, 1],
            groups: 2,
        })],
        OpKind::Gelu => [GeluApproximate::None, GeluApproximate::Tanh]
            .map(|approximate| Op::Gelu(Gelu { input: make(r, &[9]), approximate }))
            .to_vec(),
        OpKind::Linear => vec![Op::Linear(Linear {
            input: make(r, &[3, 5]),
            weight: make(r, &[4, 5]),
            bias: Some(make(r, &[4])),
        })],
        OpKind::LayerNorm => vec![Op::LayerNorm(LayerNorm {
            input: make(r, &[3, 5]),
            weight: Some(make(r, &[5])),
            bias: Some(make(r, &[5])),
            normalized_shape: vec![5],
            eps: 1e-5,
        })],
    }
}

/// The same numbers in another dtype, rounded; integers are truncated. A mask stays.
fn cast(name: &str, tensor: HostTensor, dtype: DType) -> HostTensor {
    if name == "mask" {
        return tensor;
    }
    let mut storage = Storage::zeros(dtype, tensor.len());
    for i in 0..tensor.len() {
        let x = tensor.get_f64(i);
        let x = dtype.float_format().map_or(x, |format| round_f64(format, x));
        store(&mut storage, i, Number::Float(x));
    }
    HostTensor::new(tensor.shape(), storage).expect("one element for each")
}

#[test]
fn every_op_and_dtype_as_the_exact_evaluator_has_it() {
    let settings = Settings::default();
    let mut r = Random(21);
    let kinds: [Make; 4] = [Random::plain, Random::mixed, Random::wild, Random::special];
    let mut calls = std::collections::BTreeMap::new();
    for &kind in OpKind::ALL {
        for dtype in DType::ALL {
            for make in kinds {
                for op in samples(kind, &mut r, make) {
                    let op = op.map(|name, t| cast(name, t, dtype));
                    let op = op.as_ref();
                    let Ok(types) = infer(&op) else { continue };
                    *calls.entry(kind).or_insert(0) += 1;
                    let evaluator = Evaluator::single(&op, types.clone(), &settings);
                    let want: Result<Vec<Vec<Resolved>>, EvaluateError> = types
                        .iter()
                        .enumerate()
                        .map(|(output, ty)| {
                            let elements = ty.elements().expect("a small result");
                            (0..elements).map(|i| evaluator.resolve(0, output, i)).collect()
                        })
                        .collect();
                    match (evaluate(&op, &settings), want) {
                        (Ok(got), Ok(want)) => {
                            for (got, want) in got.iter().zip(&want) {
                                same(&op, got, want);
                            }
                        }
                        (got, want) => assert_eq!(got.err(), want.err(), "{op:?}"),
                    }
                }
            }
        }
    }
    // Every op takes at least the four float types.
    assert!(OpKind::ALL.iter().all(|kind| calls[kind] >= 16), "{calls:?}");
}

fn same(op: &Op<&HostTensor>, got: &Enclosure, want: &[Resolved]) {
    assert_eq!((got.len(), &got.undecided), (want.len(), &vec![]), "{op:?}");
    for (i, want) in want.iter().enumerate() {
        let (value, center, low, radius) =
            (got.value.get_f64(i), got.center[i], got.low_at(i), got.radius[i]);
        let what = || format!("{op:?}[{i}]: {value:e}, {center:e} {low:e} {radius:e}; {want:?}");
        assert!(want.decided, "{}", what());
        let free = value == 0.0 && want.value == 0.0 && got.zero_sign_is_free;
        let same = value.to_bits() == want.value.to_bits() || (value.is_nan() && want.value.is_nan());
        assert!(same || free, "{}", what());
        assert!(got.value.get_i64(i).is_none_or(|n| n == want.integer), "{}", what());
        if want.hi.is_finite() && want.radius.is_finite() {
            let gap = Dd::sum(center, low).sub(Dd::sum(want.hi, want.lo)).hi.abs();
            assert!(gap <= (radius + want.radius) * (1.0 + 4.0 * f64::EPSILON), "{}", what());
        } else if !want.hi.is_finite() {
            assert!(radius == 0.0, "{}", what());
            assert!(center == want.hi || (center.is_nan() && want.hi.is_nan()), "{}", what());
        }
    }
}

/// Why an op has no fast path: a row that is no longer true fails.
fn without_fast_path(op: &Op<&HostTensor>) -> Option<&'static str> {
    match op {
        Op::Flatten(_) => Some("copied by the driver"),
        Op::Dropout(_) => Some("one quotient an element: balls"),
        Op::Div(args) if args.rounding_mode.is_some() => {
            Some("one quotient an element, then a choice: balls")
        }
        _ => None,
    }
}

#[test]
fn every_op_is_answered_by_every_layer() {
    let settings = Settings::default();
    let mut r = Random(22);
    for &kind in OpKind::ALL {
        for op in samples(kind, &mut r, Random::plain) {
            let op = op.as_ref();
            let types = infer(&op).expect("a valid call");
            let fast = fast::try_evaluate(&op, &types, &settings).is_some();
            assert_eq!(fast, without_fast_path(&op).is_none(), "{kind}: fast path");
            let operands = op.clone().map(|_, t| Balls::exact(t));
            let balls = balls::evaluate(&operands.as_ref(), &types, crate::balls::Width::Narrow)
                .expect("balls answer float types");
            assert_eq!(balls.len(), types.len(), "{kind}: balls");
            let evaluator = Evaluator::single(&op, types.clone(), &settings);
            for output in 0..types.len() {
                assert!(evaluator.resolve(0, output, 0).expect("determined").decided, "{kind}: exact");
            }
        }
    }
}

#[test]
fn what_cannot_be_answered_is_an_error() {
    let x = HostTensor::f32(&[4], &[1.0, 2.0, 3.0, 4.0]);
    let dropout = |p| Op::Dropout(Dropout { input: &x, mask: None, p, training: true });
    let settings = Settings::default();
    assert_eq!(evaluate(&dropout(0.5), &settings), Err(EvaluateError::Undetermined));
    assert_eq!(evaluate(&dropout(1.0), &settings).expect("all dropped")[0].value.to_f64_vec(), [0.0; 4]);
    assert_eq!(evaluate(&dropout(0.0), &settings).expect("none dropped")[0].value, x);
    let small = Settings { max_bytes: 100, ..settings.clone() };
    assert!(matches!(evaluate(&dropout(0.0), &small), Err(EvaluateError::TooLarge { .. })));
    let bad = Op::Softmax(Softmax { input: &x, dim: 3, dtype: None });
    assert!(matches!(evaluate(&bad, &settings), Err(EvaluateError::Invalid(_))));
}

#[test]
fn tensors_without_elements_or_dimensions() {
    let settings = Settings::default();
    let zeros = |shape: &[usize]| HostTensor::new(shape, Storage::zeros(DType::F64, shape.iter().product()));
    let t = |shape: &[usize]| zeros(shape).expect("a shape's own size");
    let tensor = TensorOrScalar::Tensor;
    let pool = |input| {
        Op::MaxPool2d(MaxPool2d {
            input,
            kernel_size: [2, 2],
            stride: [2, 2],
            padding: [0, 0],
            dilation: [1, 1],
            ceil_mode: false,
            return_indices: true,
        })
    };
    let conv = |input, weight| {
        let (stride, padding) = ([1, 1], Padding::Valid);
        Op::Conv2d(Conv2d {
            input,
            weight,
            bias: Some(t(&[2])),
            stride,
            padding,
            dilation: [1, 1],
            groups: 1,
        })
    };
    let ops = [
        Op::Add(Add { input: t(&[0, 3]), other: tensor(t(&[3])), alpha: Scalar::Int(2) }),
        Op::Mul(Mul { input: t(&[]), other: tensor(t(&[2, 0])) }),
        Op::Div(Div { input: t(&[]), other: tensor(t(&[])), rounding_mode: None }),
        Op::Softmax(Softmax { input: t(&[]), dim: -1, dtype: None }),
        Op::Softmax(Softmax { input: t(&[2, 0]), dim: 1, dtype: None }),
        Op::AdaptiveAvgPool2d(AdaptiveAvgPool2d { input: t(&[0, 2, 3, 3]), output_size: [Some(2), Some(2)] }),
        Op::AdaptiveAvgPool2d(AdaptiveAvgPool2d { input: t(&[1, 2, 3, 3]), output_size: [Some(0), Some(2)] }),
        Op::Matmul(Matmul { input: t(&[0, 2, 3]), other: t(&[3, 4]) }),
        Op::Matmul(Matmul { input: t(&[2, 0]), other: t(&[0, 3]) }),
        Op::Matmul(Matmul { input: t(&[0]), other: t(&[0]) }),
        Op::Linear(Linear { input: t(&[2, 0]), weight: t(&[3, 0]), bias: Some(t(&[3])) }),
        Op::Linear(Linear { input: t(&[0, 4]), weight: t(&[3, 4]), bias: None }),
        Op::LayerNorm(LayerNorm {
            input: t(&[0, 4]),
            weight: None,
            bias: None,
            normalized_shape: vec![4],
            eps: 0.0,
        }),
        Op::Relu(Relu { input: t(&[]) }),
        Op::Gelu(Gelu { input: t(&[0]), approximate: GeluApproximate::None }),
        Op::Flatten(Flatten { input: t(&[]), start_dim: 0, end_dim: -1 }),
        pool(t(&[0, 2, 4, 4])),
        conv(t(&[0, 1, 3, 3]), t(&[2, 1, 2, 2])),
        Op::BatchNorm(BatchNorm {
            input: t(&[0, 2]),
            running_mean: Some(t(&[2])),
            running_var: Some(t(&[2])),
            weight: None,
            bias: None,
            training: false,
            momentum: 0.1,
            eps: 1e-5,
        }),
    ];
    for op in &ops {
        let op = op.as_ref();
        let Ok(types) = infer(&op) else { continue };
        let operands = op.clone().map(|_, t| Balls::exact(t));
        let balls = balls::evaluate(&operands.as_ref(), &types, crate::balls::Width::Narrow)
            .expect("balls answer float types");
        for (result, ty) in balls.iter().zip(&types) {
            assert_eq!((result.shape(), Some(result.len())), (&ty.shape[..], ty.elements()), "{op:?}");
        }
        let results = evaluate(&op, &settings).expect("a valid call");
        for (result, ty) in results.iter().zip(&types) {
            assert_eq!(result.tensor_type(), *ty, "{op:?}");
        }
    }
}

#[test]
fn a_batch_without_a_value_leaves_the_running_statistics() {
    for dtype in DType::FLOATS {
        for shape in [&[0, 3][..], &[2, 3, 0], &[0, 3, 2, 2]] {
            let t = |x: &[f32]| cast("parameter", HostTensor::f32(&[x.len()], x), dtype);
            let (input, mean, var) = (
                cast("input", HostTensor::f32(shape, &[]), dtype),
                t(&[1.5, f32::NAN, -0.1]),
                t(&[0.3, 2.0, f32::INFINITY]),
            );
            let op = Op::BatchNorm(BatchNorm {
                input: &input,
                running_mean: Some(&mean),
                running_var: Some(&var),
                weight: None,
                bias: None,
                training: true,
                momentum: 0.1,
                eps: 1e-5,
            });
            let results = evaluate(&op, &Settings::default()).expect("a valid call");
            for (result, old) in results[1..].iter().zip([&mean, &var]) {
                assert!(result.value.same_bits(old), "{dtype} {shape:?}: {:?}", result.value);
            }
            let evaluator = Evaluator::single(&op, infer(&op).expect("valid"), &Settings::default());
            for (result, output) in results[1..].iter().zip(1..) {
                let want: Vec<Resolved> =
                    (0..3).map(|i| evaluator.resolve(0, output, i).expect("determined")).collect();
                same(&op, result, &want);
            }
        }
    }
}
