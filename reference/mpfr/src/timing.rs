//! MPFR's time beside the reference's, on the same float32 elements, one thread each.
//!
//! MPFR works at [`PRECISION`] bits, and has the best of it: operands are converted beforehand, variables are made once and
//! changed in place, and of large results only a part is computed. Its results are rounded to float32 and compared. The two
//! alternate, and the least time of each counts.

use std::time::Instant;

use rug::float::Constant;
use rug::ops::NegAssign;
use rug::{Assign, Float};
use ulpian_reference::{Settings, evaluate};
use ulpian_spec::ops::{
    GeluApproximate, Padding, Scalar, TensorOrScalar, adaptive_avg_pool2d::AdaptiveAvgPool2d, add::Add,
    batch_norm::BatchNorm, conv2d::Conv2d, div::Div, gelu::Gelu, layer_norm::LayerNorm, linear::Linear,
    matmul::Matmul, max_pool2d::MaxPool2d, mul::Mul, relu::Relu, softmax::Softmax,
};
use ulpian_spec::{HostTensor, Op};

use crate::generate::Rng;

/// Bits of binary128: enough to round nearly every element of these ops to float32.
const PRECISION: u32 = 113;

const EPS: f64 = 1e-5;

/// Times that each side is timed.
const ROUNDS: usize = 5;

/// Prints a row for every op that begins with `only`.
pub fn run(only: Option<&str>) {
    println!("MPFR at {PRECISION} bits, one thread; nanoseconds per element of the result\n");
    println!(
        "{:<22}{:<20}{:>12}{:>12}{:>9}{:>12}{:>9}",
        "op", "result", "reference", "MPFR", "ratio", "compared", "differ"
    );
    let wanted = |name: &str| only.is_none_or(|o| name.starts_with(o));
    let mut rng = Rng(0x5eed);
    let large: [&[usize]; 2] = [&[4096, 1024], &[16, 3, 224, 224]];
    let small: [&[usize]; 2] = [&[512, 768], &[1, 3, 224, 224]];
    products(&mut rng, &wanted);
    for [wide, image] in [large, small] {
        pointwise(&mut rng, wide, &wanted);
        rows(&mut rng, wide, &wanted);
        planes(&mut rng, image, &wanted);
    }
}

fn tensor(rng: &mut Rng, shape: &[usize]) -> HostTensor {
    let mut uniform = || (rng.next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0;
    let data: Vec<f32> =
        (0..shape.iter().product()).map(|_| 0.87 * (uniform() + uniform() + uniform() + uniform())).collect();
    HostTensor::f32(shape, &data)
}

/// The first elements, as MPFR has them.
fn floats(t: &HostTensor, count: usize) -> Vec<Float> {
    (0..t.len().min(count)).map(|i| Float::with_val(PRECISION, t.get_f64(i))).collect()
}

fn float(x: f64) -> Float {
    Float::with_val(PRECISION, x)
}

/// Times both sides; `theirs` gives the first elements of the result, or as many as it likes.
fn row(name: &str, op: &Op<&HostTensor>, mut theirs: impl FnMut() -> Vec<f32>) {
    let (mut least_ours, mut least_theirs) = (f64::INFINITY, f64::INFINITY);
    let (mut results, mut expected) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        drop(std::mem::take(&mut results));
        let start = Instant::now();
        results = evaluate(op, &Settings::default()).expect("a valid call");
        least_ours = start.elapsed().as_secs_f64().min(least_ours);
        let start = Instant::now();
        expected = theirs();
        least_theirs = start.elapsed().as_secs_f64().min(least_theirs);
    }
    let value = &results[0].value;
    let (ours, theirs) = (least_ours / value.len() as f64, least_theirs / expected.len() as f64);
    let differ = (0..expected.len()).filter(|&i| f64::from(expected[i]) != value.get_f64(i)).count();
    println!(
        "{name:<22}{:<20}{:>12.2}{:>12.2}{:>9.1}{:>12}{differ:>9}",
        value.shape().iter().map(usize::to_string).collect::<Vec<_>>().join("x"),
        ours * 1e9,
        theirs * 1e9,
        theirs / ours,
        expected.len()
    );
}

fn dot<'a>(sum: &mut Float, product: &mut Float, terms: impl Iterator<Item = (&'a Float, &'a Float)>) {
    sum.assign(0);
    for (a, b) in terms {
        product.assign(a * b);
        *sum += &*product;
    }
}

fn products(rng: &mut Rng, wanted: &impl Fn(&str) -> bool) {
    const N: usize = 1024;
    let (a, b, bias) = (tensor(rng, &[N, N]), tensor(rng, &[N, N]), tensor(rng, &[N]));
    let (mut sum, mut product) = (float(0.0), float(0.0));
    if wanted("matmul") {
        let (x, y) = (floats(&a, N), floats(&b, N * N));
        row("matmul", &Op::Matmul(Matmul { input: &a, other: &b }), || {
            let mut element = |j: usize| {
                dot(&mut sum, &mut product, x.iter().zip(y[j..].iter().step_by(N)));
                sum.to_f32()
            };
            (0..N).map(&mut element).collect()
        });
    }
    if wanted("linear") {
        let (x, y, z) = (floats(&a, N), floats(&b, N * N), floats(&bias, N));
        row("linear", &Op::Linear(Linear { input: &a, weight: &b, bias: Some(&bias) }), || {
            let mut element = |j: usize| {
                dot(&mut sum, &mut product, x.iter().zip(&y[j * N..]));
                sum += &z[j];
                sum.to_f32()
            };
            (0..N).map(&mut element).collect()
        });
    }
    if wanted("conv2d") {
        let (image, filters) = (tensor(rng, &[16, 3, 224, 224]), tensor(rng, &[64, 3, 7, 7]));
        let (x, w) = (floats(&image, 3 * 224 * 224), floats(&filters, 147));
        let op = Conv2d {
            input: &image,
            weight: &filters,
            bias: None,
            stride: [2, 2],
            padding: Padding::Explicit([3, 3]),
            dilation: [1, 1],
            groups: 1,
        };
        row("conv2d", &Op::Conv2d(op), || {
            let mut element = |at: usize| {
                let (y0, x0) = (2 * (at / 112), 2 * (at % 112));
                let taps = (0..147).filter_map(|k| {
                    let (c, i, j) = (k / 49, y0 + k / 7 % 7, x0 + k % 7);
                    let inside = (3..227).contains(&i) && (3..227).contains(&j);
                    inside.then(|| (&x[(c * 224 + i - 3) * 224 + j - 3], &w[k]))
                });
                dot(&mut sum, &mut product, taps);
                sum.to_f32()
            };
            (0..112 * 40).map(&mut element).collect()
        });
    }
}

/// Elements of pointwise results that MPFR computes.
const POINTWISE: usize = 1 << 18;

fn pointwise(rng: &mut Rng, shape: &[usize], wanted: &impl Fn(&str) -> bool) {
    let (a, b) = (tensor(rng, shape), tensor(rng, shape));
    let (x, y) = (floats(&a, POINTWISE), floats(&b, POINTWISE));
    let mut z = float(0.0);
    let other = TensorOrScalar::Tensor(&b);
    let mut two = |name: &str, op: Op<&HostTensor>, f: &dyn Fn(&mut Float, &Float, &Float)| {
        if wanted(name) {
            row(name, &op, || {
                let mut element = |(x, y): (&Float, &Float)| {
                    f(&mut z, x, y);
                    z.to_f32()
                };
                x.iter().zip(&y).map(&mut element).collect()
            });
        }
    };
    two("add", Op::Add(Add { input: &a, other, alpha: Scalar::Int(1) }), &|z, x, y| z.assign(x + y));
    two("mul", Op::Mul(Mul { input: &a, other }), &|z, x, y| z.assign(x * y));
    two("div", Op::Div(Div { input: &a, other, rounding_mode: None }), &|z, x, y| z.assign(x / y));
    two("relu", Op::Relu(Relu { input: &a }), &|z, x, _| {
        if x.is_sign_negative() { z.assign(0) } else { z.assign(x) }
    });
    let root = -float(0.5).sqrt();
    two("gelu", Op::Gelu(Gelu { input: &a, approximate: GeluApproximate::None }), &|z, x, _| {
        z.assign(x * &root);
        z.erfc_mut();
        *z *= x;
        *z >>= 1;
    });
    let slope = -(float(8.0) / Float::with_val(PRECISION, Constant::Pi)).sqrt();
    let cubic = float(44715.0) / 1_000_000u32;
    two("gelu_tanh", Op::Gelu(Gelu { input: &a, approximate: GeluApproximate::Tanh }), &|z, x, _| {
        z.assign(x * x);
        *z *= &cubic;
        *z += 1;
        *z *= x;
        *z *= &slope;
        z.exp_mut();
        *z += 1;
        z.recip_mut();
        *z *= x;
    });
}

/// Mean and 1 / sqrt(var + eps) of numbers given twice.
fn statistics<'a>(values: impl Iterator<Item = &'a Float> + Clone, count: usize) -> [Float; 2] {
    let (mut mean, mut square, mut sum) = (float(0.0), float(0.0), float(0.0));
    for v in values.clone() {
        mean += v;
    }
    mean /= count as u32;
    for v in values {
        square.assign(v - &mean);
        square.square_mut();
        sum += &square;
    }
    sum /= count as u32;
    sum += EPS;
    sum.recip_sqrt_mut();
    [mean, sum]
}

fn rows(rng: &mut Rng, shape: &[usize], wanted: &impl Fn(&str) -> bool) {
    let length = shape[1];
    let (a, weight, bias) = (tensor(rng, shape), tensor(rng, &shape[1..]), tensor(rng, &shape[1..]));
    let x = floats(&a, 128 * length);
    let mut z = float(0.0);
    if wanted("softmax") {
        let mut e: Vec<Float> = (0..length).map(|_| float(0.0)).collect();
        row("softmax", &Op::Softmax(Softmax { input: &a, dim: 1, dtype: None }), || {
            let mut results = Vec::new();
            for x in x.chunks(length) {
                let max = x.iter().max_by(|a, b| a.total_cmp(b)).expect("rows are not empty");
                z.assign(0);
                for (x, e) in x.iter().zip(&mut e) {
                    e.assign(x - max);
                    e.exp_mut();
                    z += &*e;
                }
                for e in &mut e {
                    *e /= &z;
                    results.push(e.to_f32());
                }
            }
            results
        });
    }
    if wanted("layer_norm") {
        let (w, b) = (floats(&weight, length), floats(&bias, length));
        let op = LayerNorm {
            input: &a,
            weight: Some(&weight),
            bias: Some(&bias),
            normalized_shape: vec![length as i64],
            eps: EPS,
        };
        row("layer_norm", &Op::LayerNorm(op), || {
            let mut results = Vec::new();
            for x in x.chunks(length) {
                let [mean, scale] = statistics(x.iter(), length);
                for ((x, w), b) in x.iter().zip(&w).zip(&b) {
                    z.assign(x - &mean);
                    z *= &scale;
                    z *= w;
                    z += b;
                    results.push(z.to_f32());
                }
            }
            results
        });
    }
}

fn planes(rng: &mut Rng, shape: &[usize], wanted: &impl Fn(&str) -> bool) {
    let image = tensor(rng, shape);
    let x = floats(&image, image.len());
    let mut z = float(0.0);
    if wanted("batch_norm") {
        let op = BatchNorm {
            input: &image,
            running_mean: None,
            running_var: None,
            weight: None,
            bias: None,
            training: true,
            momentum: 0.1,
            eps: EPS,
        };
        row("batch_norm", &Op::BatchNorm(op), || {
            let plane = 224 * 224;
            let channels: Vec<[Float; 2]> = (0..3)
                .map(|c| {
                    let values = x.chunks(plane).skip(c).step_by(3).flatten();
                    statistics(values, shape[0] * plane)
                })
                .collect();
            let mut element = |(i, x): (usize, &Float)| {
                let [mean, scale] = &channels[i / plane % 3];
                z.assign(x - mean);
                z *= scale;
                z.to_f32()
            };
            x.iter().enumerate().map(&mut element).collect()
        });
    }
    if wanted("adaptive_avg_pool2d") {
        let op = AdaptiveAvgPool2d { input: &image, output_size: [Some(7), Some(7)] };
        row("adaptive_avg_pool2d", &Op::AdaptiveAvgPool2d(op), || {
            let mut element = |at: usize| {
                let (plane, i, j) = (at / 49, at / 7 % 7 * 32, at % 7 * 32);
                z.assign(0);
                for y in i..i + 32 {
                    for v in &x[(plane * 224 + y) * 224 + j..][..32] {
                        z += v;
                    }
                }
                z /= 1024;
                z.to_f32()
            };
            (0..shape[0] * 3 * 49).map(&mut element).collect()
        });
    }
    if wanted("max_pool2d") {
        let op = MaxPool2d {
            input: &image,
            kernel_size: [3, 3],
            stride: [2, 2],
            padding: [1, 1],
            dilation: [1, 1],
            ceil_mode: false,
            return_indices: false,
        };
        row("max_pool2d", &Op::MaxPool2d(op), || {
            let mut element = |at: usize| {
                let (plane, i, j) = (at / (112 * 112), at / 112 % 112 * 2, at % 112 * 2);
                z.assign(f64::INFINITY);
                z.neg_assign();
                for y in i.saturating_sub(1)..(i + 2).min(224) {
                    for v in &x[(plane * 224 + y) * 224..][j.saturating_sub(1)..(j + 2).min(224)] {
                        z.max_mut(v);
                    }
                }
                z.to_f32()
            };
            (0..shape[0] * 3 * 112 * 112).map(&mut element).collect()
        });
    }
}
