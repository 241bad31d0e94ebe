//! Every op's balls against the exact evaluator: each ball holds the exact result, and is small.

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
use ulpian_spec::{DType, HostTensor, Op, TensorType};

use super::{Balls, Width, evaluate};
use crate::Settings;
use crate::dd::Dd;
use crate::exact::{Evaluator, GraphNode, Source};
use crate::random::Random;

/// How the operands come to be.
#[derive(Debug, Clone, Copy, PartialEq)]
enum From {
    /// As they are.
    Exact,
    /// Divided by 3, so that they are balls.
    Thirds,
}

/// Elements, unknown ones, and the greatest radius relative to the element's magnitude, in bits.
#[derive(Debug, Default)]
struct Seen {
    elements: usize,
    unknown: usize,
    known_specials: usize,
    relative: f64,
}

fn third_of<T>(input: T) -> Op<T> {
    Op::Div(Div { input, other: TensorOrScalar::Scalar(Scalar::Float(3.0)), rounding_mode: None })
}

/// Compares all results with the exact evaluator's.
fn compare(op: &Op<HostTensor>, shapes: &[&[usize]], from: From, width: Width) -> Seen {
    let types: Vec<TensorType> = shapes.iter().map(|&s| TensorType::new(DType::F32, s)).collect();
    let tensors: Vec<&HostTensor> = op.operands().into_iter().map(|(_, t)| t).collect();
    let mut graph = Vec::new();
    let mut balls: Vec<Balls> = Vec::new();
    for (k, t) in tensors.iter().enumerate() {
        let ty = TensorType::new(DType::F32, t.shape());
        let exact = Balls::exact(t);
        let is_mask = op.operands()[k].0 == "mask";
        if from == From::Thirds && !is_mask {
            let thirds = evaluate(&third_of(&exact), std::slice::from_ref(&ty), Width::Narrow);
            balls.extend(thirds.expect("a float type"));
            graph.push(GraphNode { op: third_of(Source::Tensor(t)), types: vec![ty] });
        } else {
            balls.push(exact);
            graph.push(GraphNode {
                op: Op::Flatten(Flatten { input: Source::Tensor(t), start_dim: 0, end_dim: 0 }),
                types: vec![ty],
            });
        }
    }
    let mut next = 0;
    let last = op.as_ref().map(|_, _| {
        next += 1;
        Source::Node { node: next - 1, output: 0 }
    });
    let node = graph.len();
    graph.push(GraphNode { op: last, types: types.clone() });
    let mut next = 0;
    let over_balls = op.as_ref().map(|_, _| {
        next += 1;
        &balls[next - 1]
    });
    let results = evaluate(&over_balls, &types, width).expect("balls answer ops of float types");
    let evaluator = Evaluator::new(graph, &Settings::default());
    let mut seen = Seen::default();
    for (output, result) in results.iter().enumerate() {
        assert_eq!(result.shape(), shapes[output]);
        for i in 0..result.len() {
            let want = evaluator.resolve(node, output, i).expect("determined");
            seen.elements += 1;
            let (hi, lo, radius) = (result.high(i), result.low(i), result.radius(i));
            if !radius.is_finite() {
                if want.hi.is_finite() && want.value.is_finite() {
                    seen.unknown += 1;
                } else {
                    seen.known_specials += 1;
                }
                continue;
            }
            assert!(want.hi.is_finite(), "{op:?}[{i}]: {hi:e} where {want:?}");
            let gap = Dd { hi, lo }.sub(Dd::sum(want.hi, want.lo)).hi.abs();
            assert!(
                gap <= (radius + want.radius) * (1.0 + 4.0 * f64::EPSILON),
                "{op:?} from {from:?} {width:?}, result {output}[{i}]: off by {gap:e}, radius {radius:e}, {hi:e}, {want:?}"
            );
            if hi == 0.0 && radius == 0.0 && !want.zero_sign_free {
                assert_eq!(want.value.to_bits(), hi.to_bits(), "{op:?} from {from:?}, [{i}]: a zero's sign");
            }
            if hi.abs() > 1e-30 {
                seen.relative = seen.relative.max(radius / hi.abs());
            }
        }
    }
    seen
}

/// On plain data nothing is unknown, and no radius exceeds 2^-`bits` of its element.
fn check(op: &Op<HostTensor>, shapes: &[&[usize]], bits: i32) {
    for (from, width, bits) in [
        (From::Exact, Width::Narrow, bits),
        (From::Thirds, Width::Narrow, bits),
        (From::Exact, Width::Wide, bits.min(32)),
        (From::Thirds, Width::Wide, bits.min(32)),
    ] {
        let seen = compare(op, shapes, from, width);
        assert_eq!(seen.unknown, 0, "{} from {from:?} {width:?}: {seen:?}", op.kind());
        assert!(
            seen.relative <= f64::from(-bits).exp2(),
            "{} from {from:?} {width:?}: 2^{:.1}",
            op.kind(),
            seen.relative.log2()
        );
    }
}

/// Whatever the data: what is known is right.
fn check_containment(op: &Op<HostTensor>, shapes: &[&[usize]]) {
    for width in [Width::Narrow, Width::Wide] {
        compare(op, shapes, From::Exact, width);
        compare(op, shapes, From::Thirds, width);
    }
}

const KINDS: [fn(&mut Random, &[usize]) -> HostTensor; 4] =
    [Random::plain, Random::mixed, Random::wild, Random::special];

#[test]
fn add_mul_div() {
    let mut r = Random(11);
    for make in KINDS {
        for _ in 0..4 {
            let (x, y) = (make(&mut r, &[5, 1, 7]), make(&mut r, &[3, 1]));
            let shape: &[usize] = &[5, 3, 7];
            for alpha in [Scalar::Int(1), Scalar::Int((1 << 60) + 1), Scalar::Float(-0.1)] {
                let other = TensorOrScalar::Tensor(y.clone());
                check_containment(&Op::Add(Add { input: x.clone(), other, alpha }), &[shape]);
            }
            check_containment(
                &Op::Mul(Mul { input: x.clone(), other: TensorOrScalar::Tensor(y.clone()) }),
                &[shape],
            );
            for rounding_mode in [None, Some(RoundingMode::Floor), Some(RoundingMode::Trunc)] {
                let other = TensorOrScalar::Tensor(y.clone());
                check_containment(&Op::Div(Div { input: x.clone(), other, rounding_mode }), &[shape]);
            }
        }
    }
    let (x, y) = (r.plain(&[40, 40]), r.plain(&[40, 40]));
    check(&Op::Mul(Mul { input: x.clone(), other: TensorOrScalar::Tensor(y.clone()) }), &[&[40, 40]], 100);
    check(
        &Op::Div(Div { input: x, other: TensorOrScalar::Tensor(y), rounding_mode: None }),
        &[&[40, 40]],
        100,
    );
}

#[test]
fn flatten_relu_dropout() {
    let mut r = Random(12);
    for make in KINDS {
        let x = make(&mut r, &[6, 5, 4]);
        let mask = r.tensor(&[6, 5, 4], |r| (r.bits() % 2) as f32);
        check_containment(&Op::Flatten(Flatten { input: x.clone(), start_dim: 1, end_dim: 2 }), &[&[6, 20]]);
        check_containment(&Op::Relu(Relu { input: x.clone() }), &[&[6, 5, 4]]);
        for (p, training) in [(0.1, true), (0.0, true), (1.0, true), (0.3, false)] {
            let mask = Some(mask.clone());
            check_containment(&Op::Dropout(Dropout { input: x.clone(), mask, p, training }), &[&[6, 5, 4]]);
        }
        check_containment(
            &Op::Dropout(Dropout { input: x, mask: None, p: 1.0, training: true }),
            &[&[6, 5, 4]],
        );
    }
}

#[test]
fn matmul_and_linear() {
    let mut r = Random(13);
    for make in KINDS {
        for (a, b, c) in [
            (&[4, 9][..], &[9, 11][..], &[4, 11][..]),
            (&[9], &[9], &[]),
            (&[9], &[9, 3], &[3]),
            (&[2, 3, 9], &[9], &[2, 3]),
            (&[2, 1, 3, 9], &[5, 9, 2], &[2, 5, 3, 2]),
            (&[3, 3, 9], &[9, 2], &[3, 3, 2]),
            (&[2, 0], &[0, 3], &[2, 3]),
        ] {
            let op = Op::Matmul(Matmul { input: make(&mut r, a), other: make(&mut r, b) });
            check_containment(&op, &[c]);
        }
        let op = Op::Linear(Linear {
            input: make(&mut r, &[2, 3, 17]),
            weight: make(&mut r, &[10, 17]),
            bias: Some(make(&mut r, &[10])),
        });
        check_containment(&op, &[&[2, 3, 10]]);
        let op = Op::Linear(Linear { input: make(&mut r, &[4, 5]), weight: make(&mut r, &[5]), bias: None });
        check_containment(&op, &[&[4]]);
    }
    // One sign: no cancellation.
    let mut positive = |shape: &[usize]| r.tensor(shape, |r| r.unit().abs() + 0.01);
    let op = Op::Matmul(Matmul { input: positive(&[9, 300]), other: positive(&[300, 9]) });
    check(&op, &[&[9, 9]], 90);
}

#[test]
fn conv2d() {
    let mut r = Random(14);
    for make in KINDS {
        for (stride, padding, dilation, groups, out) in [
            ([1, 1], Padding::Explicit([0, 0]), [1, 1], 1, [5, 4]),
            ([2, 1], Padding::Explicit([1, 2]), [1, 2], 2, [4, 6]),
            ([1, 1], Padding::Same, [2, 1], 1, [7, 6]),
            ([1, 1], Padding::Valid, [1, 1], 4, [5, 4]),
        ] {
            let op = Op::Conv2d(Conv2d {
                input: make(&mut r, &[2, 4, 7, 6]),
                weight: make(&mut r, &[4, 4 / groups as usize, 3, 3]),
                bias: Some(make(&mut r, &[4])),
                stride,
                padding,
                dilation,
                groups,
            });
            check_containment(&op, &[&[2, 4, out[0], out[1]]]);
        }
        let op = Op::Conv2d(Conv2d {
            input: make(&mut r, &[2, 5, 5]),
            weight: make(&mut r, &[3, 2, 2, 2]),
            bias: None,
            stride: [1, 1],
            padding: Padding::Same,
            dilation: [1, 1],
            groups: 1,
        });
        check_containment(&op, &[&[3, 5, 5]]);
    }
}

#[test]
fn pools() {
    let mut r = Random(15);
    for make in KINDS {
        let x = make(&mut r, &[2, 3, 7, 5]);
        let op =
            Op::AdaptiveAvgPool2d(AdaptiveAvgPool2d { input: x.clone(), output_size: [Some(3), Some(2)] });
        check_containment(&op, &[&[2, 3, 3, 2]]);
        let pool = |padding, dilation, ceil_mode| {
            Op::MaxPool2d(MaxPool2d {
                input: x.clone(),
                kernel_size: [3, 2],
                stride: [2, 2],
                padding,
                dilation,
                ceil_mode,
                return_indices: true,
            })
        };
        check_containment(&pool([0, 0], [1, 1], false), &[&[2, 3, 3, 2], &[2, 3, 3, 2]]);
        check_containment(&pool([1, 1], [1, 1], true), &[&[2, 3, 4, 4], &[2, 3, 4, 4]]);
        check_containment(&pool([1, 0], [2, 3], false), &[&[2, 3, 3, 1], &[2, 3, 3, 1]]);
    }
}

#[test]
fn softmax() {
    let mut r = Random(16);
    for make in KINDS {
        for dim in [0, 1, -1] {
            let op = Op::Softmax(Softmax { input: make(&mut r, &[3, 4, 5]), dim, dtype: None });
            check_containment(&op, &[&[3, 4, 5]]);
        }
    }
    let op = Op::Softmax(Softmax { input: r.plain(&[8, 30]), dim: 1, dtype: None });
    check(&op, &[&[8, 30]], 93);
    // A mask of minus infinities leaves nothing unknown.
    let masked = r.tensor(&[8, 9], |r| if r.bits() % 3 == 0 { f32::NEG_INFINITY } else { 4.0 * r.unit() });
    let seen = compare(
        &Op::Softmax(Softmax { input: masked, dim: 1, dtype: None }),
        &[&[8, 9]],
        From::Exact,
        Width::Narrow,
    );
    assert_eq!(seen.unknown, 0, "{seen:?}");
}

#[test]
fn gelu() {
    let mut r = Random(17);
    for approximate in [GeluApproximate::None, GeluApproximate::Tanh] {
        for make in KINDS {
            check_containment(&Op::Gelu(Gelu { input: make(&mut r, &[60]), approximate }), &[&[60]]);
        }
        let x = r.tensor(&[400], |r| 12.0 * r.unit());
        check(&Op::Gelu(Gelu { input: x, approximate }), &[&[400]], 88);
    }
}

#[test]
fn layer_norm() {
    let mut r = Random(18);
    for make in KINDS {
        for affine in [false, true] {
            let op = Op::LayerNorm(LayerNorm {
                input: make(&mut r, &[3, 4, 6]),
                weight: affine.then(|| make(&mut r, &[4, 6])),
                bias: affine.then(|| make(&mut r, &[4, 6])),
                normalized_shape: vec![4, 6],
                eps: 1e-5,
            });
            check_containment(&op, &[&[3, 4, 6]]);
        }
    }
    let op = |input, normalized_shape, eps| {
        Op::LayerNorm(LayerNorm { input, weight: None, bias: None, normalized_shape, eps })
    };
    check(&op(r.plain(&[5, 64]), vec![64], 1e-5), &[&[5, 64]], 80);
    // A mean far from zero: the radius grows with its square at most.
    let shifted = r.tensor(&[5, 64], |r| 1000.0 + r.unit());
    check(&op(shifted, vec![64], 0.0), &[&[5, 64]], 65);
    // No variance at all.
    check_containment(&op(r.tensor(&[2, 8], |_| 0.1), vec![8], 0.0), &[&[2, 8]]);
}

#[test]
fn batch_norm() {
    let mut r = Random(19);
    for make in KINDS {
        for training in [false, true] {
            let op = Op::BatchNorm(BatchNorm {
                input: make(&mut r, &[3, 2, 4]),
                running_mean: Some(make(&mut r, &[2])),
                running_var: Some(r.tensor(&[2], |r| r.unit().abs())),
                weight: Some(make(&mut r, &[2])),
                bias: training.then(|| make(&mut r, &[2])),
                training,
                momentum: 0.1,
                eps: 1e-5,
            });
            let shapes: &[&[usize]] = if training { &[&[3, 2, 4], &[2], &[2]] } else { &[&[3, 2, 4]] };
            check_containment(&op, shapes);
        }
    }
}
