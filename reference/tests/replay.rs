//! Replays against the very bits of PyTorch 2.11.0 on CPU (AVX2, and ATEN_CPU_CAPABILITY=default) and of public reports.

#![allow(clippy::unwrap_used)]

use half::{bf16, f16};
use ulpian_reference::replay::{contractions, hypotheses, hypothesis};
use ulpian_spec::ops::add::Add;
use ulpian_spec::ops::batch_norm::BatchNorm;
use ulpian_spec::ops::conv2d::Conv2d;
use ulpian_spec::ops::div::Div;
use ulpian_spec::ops::gelu::Gelu;
use ulpian_spec::ops::layer_norm::LayerNorm;
use ulpian_spec::ops::linear::Linear;
use ulpian_spec::ops::matmul::Matmul;
use ulpian_spec::ops::mul::Mul;
use ulpian_spec::ops::{GeluApproximate, Padding, Scalar, TensorOrScalar};
use ulpian_spec::{HostTensor, Op, Storage};

#[track_caller]
fn explained(name: &str, op: &Op<&HostTensor>, seen: &HostTensor) {
    let h = hypothesis(name).unwrap();
    let own = (h.run)(op).map(|r| r[0].to_f64_vec());
    assert_eq!(h.explains(op, &[seen]), Some(true), "{name} gives {own:?}, seen {:?}", seen.to_f64_vec());
}

#[track_caller]
fn not_explained(name: &str, op: &Op<&HostTensor>, seen: &HostTensor) {
    assert_ne!(hypothesis(name).unwrap().explains(op, &[seen]), Some(true), "{name}");
}

fn bf16s(shape: &[usize], data: &[f32]) -> HostTensor {
    HostTensor::new(shape, Storage::BF16(data.iter().map(|&x| bf16::from_f32(x)).collect())).unwrap()
}

fn f16s(shape: &[usize], data: &[f32]) -> HostTensor {
    HostTensor::new(shape, Storage::F16(data.iter().map(|&x| f16::from_f32(x)).collect())).unwrap()
}

fn training(input: &HostTensor) -> Op<&HostTensor> {
    Op::BatchNorm(BatchNorm {
        input,
        running_mean: None,
        running_var: None,
        weight: None,
        bias: None,
        training: true,
        momentum: 0.1,
        eps: 1e-5,
    })
}

#[test]
fn batch_norm_folds_scale_and_shift() {
    let x = bf16s(&[2, 1], &[1.3046875, 0.87890625]);
    explained("fold-scale-shift-fma", &training(&x), &bf16s(&[2, 1], &[0.98828125, -1.0078125]));

    let x = HostTensor::f32(&[1, 1, 10, 10], &[9_765_625_000.0; 100]);
    explained("fold-scale-shift-fma", &training(&x), &HostTensor::f32(&[1, 1, 10, 10], &[-107_694.47; 100]));
    explained("fold-scale-shift", &training(&x), &HostTensor::f32(&[1, 1, 10, 10], &[0.0; 100]));

    let x = HostTensor::f32(&[4, 1], &[299.9, 300.1, 300.05, 299.95]);
    let avx2 = HostTensor::f32(&[4, 1], &[-1.264_023_3, 1.263_931_75, 0.631_750_1, -0.631_841_66]);
    let default = HostTensor::f32(&[4, 1], &[-1.263_916, 1.263_916, 0.631_835_94, -0.631_835_94]);
    explained("fold-scale-shift-fma", &training(&x), &avx2);
    explained("fold-scale-shift", &training(&x), &default);
    not_explained("subtract-then-scale", &training(&x), &avx2);
}

#[test]
fn batch_norm_in_evaluation() {
    let x = HostTensor::f32(&[1, 1], &[1_000_000.5]);
    let (mean, var) = (HostTensor::f32(&[1], &[1e6]), HostTensor::f32(&[1], &[1e-10]));
    let op = Op::BatchNorm(BatchNorm {
        input: &x,
        running_mean: Some(&mean),
        running_var: Some(&var),
        weight: None,
        bias: None,
        training: false,
        momentum: 0.1,
        eps: 1e-5,
    });
    explained("fold-scale-shift-fma", &op, &HostTensor::f32(&[1, 1], &[146.402_16]));
    explained("fold-scale-shift", &op, &HostTensor::f32(&[1, 1], &[160.0]));
    explained("subtract-then-scale", &op, &HostTensor::f32(&[1, 1], &[158.113_1]));
}

fn normalised(input: &HostTensor) -> Op<&HostTensor> {
    let normalized_shape = vec![*input.shape().last().unwrap() as i64];
    Op::LayerNorm(LayerNorm { input, weight: None, bias: None, normalized_shape, eps: 1e-5 })
}

#[test]
fn layer_norm_overflows_or_not() {
    let x = HostTensor::f32(&[1, 4], &[1e19, -1e19, 1e19, -1e19]);
    explained("squares-overflow-fma", &normalised(&x), &HostTensor::f32(&[1, 4], &[0.0; 4]));
    assert_eq!(hypothesis("welford-8-fma").unwrap().explains(&normalised(&x), &[&x]), None);

    let x = HostTensor::f32(&[1, 2048], &[8.5071e37; 2048]);
    explained("squares-overflow-fma", &normalised(&x), &HostTensor::f32(&[1, 2048], &[f32::NAN; 2048]));

    let x = HostTensor::f32(&[1, 4], &[1999.125, 2000.5, 2001.75, 1998.875]);
    let seen = HostTensor::f32(&[1, 4], &[-0.812_294_84, 0.379_070_9, 1.462_130_7, -1.028_906_8]);
    explained("welford-8-fma", &normalised(&x), &seen);
}

#[test]
fn gelu_cancels() {
    let x = HostTensor::f32(&[6], &[-4.0, -5.0, -5.5, -6.0, -8.0, -10.0]);
    let op = Op::Gelu(Gelu { input: &x, approximate: GeluApproximate::None });
    let head = [-1.267_194_7e-4, -1.490_116_1e-6, -1.639_127_7e-7];
    let onednn = [&head[..], &[0.0; 3]].concat();
    let own = [&head[..], &[-0.0; 3]].concat();
    explained("one-plus-erf-polynomial-fma", &op, &HostTensor::f32(&[6], &onednn));
    explained("one-plus-erf", &op, &HostTensor::f32(&[6], &own));

    let x = HostTensor::f32(&[4], &[-4.0, -5.0, -5.5, -6.0]);
    let op = Op::Gelu(Gelu { input: &x, approximate: GeluApproximate::Tanh });
    explained(
        "one-plus-tanh-fma",
        &op,
        &HostTensor::f32(&[4], &[-7.021_427e-5, -2.980_232_2e-7, -0.0, -0.0]),
    );
}

#[test]
fn early_roundings_and_reciprocals() {
    let (a, b) = (f16s(&[1], &[-8.35]), f16s(&[1], &[-2.338]));
    let op = Op::Add(Add { input: &a, other: TensorOrScalar::Tensor(&b), alpha: Scalar::Float(-3.125) });
    explained("product-16bit", &op, &f16s(&[1], &[-1.046875]));
    not_explained("product-16bit", &op, &f16s(&[1], &[-1.0458984]));

    for (x, s, seen) in [(169.0, 13, 13.000_001), (49.5, 50, 0.989_999_95)] {
        let x = HostTensor::f32(&[1], &[x]);
        let other = TensorOrScalar::Scalar(Scalar::Int(s));
        let op = Op::Div(Div { input: &x, other, rounding_mode: None });
        explained("reciprocal-multiply", &op, &HostTensor::f32(&[1], &[seen]));
    }
}

#[test]
fn a_contracted_product_is_not_rounded() {
    let (x, c, product) = (bf16s(&[1], &[1.0078125]), bf16s(&[1], &[-1.015625]), bf16s(&[1], &[1.015625]));
    let mul = Op::Mul(Mul { input: &x, other: TensorOrScalar::Tensor(&x) });
    let seen = bf16s(&[1], &[6.103_515_6e-5]);
    let run = contractions()[0].run;
    let forward = Op::Add(Add { input: &product, other: TensorOrScalar::Tensor(&c), alpha: Scalar::Int(1) });
    assert!(run(&mul, &forward, false).unwrap()[0].same_bits(&seen));
    let backward = Op::Add(Add { input: &c, other: TensorOrScalar::Tensor(&product), alpha: Scalar::Int(1) });
    assert!(run(&mul, &backward, true).unwrap()[0].same_bits(&seen));
}

#[test]
fn reduced_precision_in_products() {
    let (a, b) = (HostTensor::f32(&[1], &[1024.5]), HostTensor::f32(&[1, 1], &[1.0]));
    let op = Op::Matmul(Matmul { input: &a, other: &b });
    explained("tf32-rna", &op, &HostTensor::f32(&[1], &[1025.0]));
    for name in ["tf32-rne", "tf32-rz"] {
        explained(name, &op, &HostTensor::f32(&[1], &[1024.0]));
    }
    explained("sequential-fma", &op, &HostTensor::f32(&[1], &[1024.5]));

    let (a, b) = (bf16s(&[2, 1024], &[1.0; 2048]), bf16s(&[1024, 3], &[1.0; 3072]));
    let op = Op::Matmul(Matmul { input: &a, other: &b });
    explained("accumulator-16bit", &op, &bf16s(&[2, 3], &[256.0; 6]));
    for name in ["sequential-fma", "tensor-core-ampere", "tensor-core-hopper"] {
        explained(name, &op, &bf16s(&[2, 3], &[1024.0; 6]));
    }
}

#[test]
fn float64_and_other_ops_are_left_alone() {
    let (a, b) = (HostTensor::f64(&[1, 2], &[1.0, 2.0]), HostTensor::f64(&[3, 2], &[1.0; 6]));
    let op = Op::Linear(Linear { input: &a, weight: &b, bias: None });
    let seen = HostTensor::f64(&[1, 3], &[3.0; 3]);
    for h in hypotheses() {
        assert_eq!(h.explains(&op, &[&seen]), None, "{}", h.name);
    }
}

#[test]
fn names_are_unique_and_kebab_case() {
    let mut names: Vec<&str> =
        hypotheses().iter().map(|h| h.name).chain(contractions().iter().map(|c| c.name)).collect();
    assert!(
        names.iter().all(|n| n.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'))
    );
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

/// Numbers in [-1, 1) with 24 significant bits.
fn numbers(n: usize, salt: u32) -> Vec<f32> {
    let hash = |i: usize| (i as u32).wrapping_mul(2_654_435_761).wrapping_add(salt).wrapping_mul(0x85EB_CA6B);
    (0..n).map(|i| ((hash(i) ^ hash(i) >> 13) >> 7) as f32 / (1 << 24) as f32 - 1.0).collect()
}

#[test]
fn fma_chains_are_those_of_the_definition() {
    let chain = |start: f32, terms: &mut dyn Iterator<Item = (f32, f32)>| {
        terms.fold(start, |s, (a, b)| a.mul_add(b, s))
    };
    let (m, k, n) = (3, 37, 19);
    let (x, w, bias) = (numbers(m * k, 1), numbers(n * k, 2), numbers(n, 3));
    let tensors = [
        HostTensor::f32(&[m, k], &x),
        HostTensor::f32(&[n, k], &w),
        HostTensor::f32(&[n], &bias),
        HostTensor::f32(&[2, 1, m, k], &[&x[..], &numbers(m * k, 4)].concat()),
        HostTensor::f32(&[k, n], &w),
    ];
    let linear = Op::Linear(Linear { input: &tensors[0], weight: &tensors[1], bias: Some(&tensors[2]) });
    let dot =
        |start: f32, i: usize, j: usize| chain(start, &mut (0..k).map(|l| (x[i * k + l], w[j * k + l])));
    let all = |f: &dyn Fn(usize, usize) -> f32| -> Vec<f32> {
        (0..m).flat_map(|i| (0..n).map(move |j| (i, j))).map(|(i, j)| f(i, j)).collect()
    };
    let last = HostTensor::f32(&[m, n], &all(&|i, j| dot(0.0, i, j) + bias[j]));
    let first = HostTensor::f32(&[m, n], &all(&|i, j| dot(bias[j], i, j)));
    explained("sequential-fma", &linear, &last);
    explained("sequential-fma-bias-first", &linear, &first);
    not_explained("sequential-fma", &linear, &first);

    let batched = Op::Matmul(Matmul { input: &tensors[3], other: &tensors[4] });
    let left = tensors[3].to_f64_vec();
    let product = |b: usize, i: usize, j: usize| {
        chain(0.0, &mut (0..k).map(|l| (left[(b * m + i) * k + l] as f32, w[l * n + j])))
    };
    let y = [all(&|i, j| product(0, i, j)), all(&|i, j| product(1, i, j))].concat();
    explained("sequential-fma", &batched, &HostTensor::f32(&[2, 1, m, n], &y));
}

#[test]
fn convolutions_are_dot_products_over_windows() {
    // Two groups of two channels and three filters; stride (2, 1), padding (1, 2), dilation (1, 2).
    let (x, w, bias) = (numbers(2 * 4 * 5 * 6, 5), numbers(6 * 2 * 3 * 2, 6), numbers(6, 7));
    let (input, weight) = (HostTensor::f32(&[2, 4, 5, 6], &x), HostTensor::f32(&[6, 2, 3, 2], &w));
    let bias_tensor = HostTensor::f32(&[6], &bias);
    let op = Op::Conv2d(Conv2d {
        input: &input,
        weight: &weight,
        bias: Some(&bias_tensor),
        stride: [2, 1],
        padding: Padding::Explicit([1, 2]),
        dilation: [1, 2],
        groups: 2,
    });
    let mut y = Vec::new();
    for (image, filter) in (0..2).flat_map(|image| (0..6).map(move |filter| (image, filter))) {
        for (r, c) in (0..3).flat_map(|r| (0..8).map(move |c| (r, c))) {
            let mut sum = 0.0f32;
            for term in 0..12 {
                let (channel, i, j) = (term / 6, term / 2 % 3, term % 2);
                let (row, column) = ((2 * r + i) as i64 - 1, (c + 2 * j) as i64 - 2);
                let inside = (0..5).contains(&row) && (0..6).contains(&column);
                let plane = image * 4 + filter / 3 * 2 + channel;
                let value = if inside { x[(plane * 5 + row as usize) * 6 + column as usize] } else { 0.0 };
                sum = value.mul_add(w[filter * 12 + term], sum);
            }
            y.push(sum + bias[filter]);
        }
    }
    explained("sequential-fma", &op, &HostTensor::f32(&[2, 6, 3, 8], &y));
}
