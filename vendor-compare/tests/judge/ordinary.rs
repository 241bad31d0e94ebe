//! Ordinary data, drawn at random: lawful implementations of several orders are never accused, and common faults never acquitted.
//!
//! None of the judge's thresholds was chosen by looking at these.

use std::collections::BTreeMap;
use std::sync::Arc;

use ulpian_reference::round::round_f64;
use ulpian_spec::verdict::Cause;
use ulpian_spec::{Case, DType, HostTensor, Outcome, Run, Storage};

use crate::parties::{case, f32s, first, hear, numbers, returns, tensor};

const ACQUITTALS: [Cause; 3] = [Cause::Agree, Cause::Rounding, Cause::Conditioning];

/// How a kernel may add.
#[derive(Debug, Clone, Copy)]
enum Order {
    Ascending,
    Descending,
    Pairwise,
    EightLanes,
}

const ORDERS: [Order; 4] = [Order::Ascending, Order::Descending, Order::Pairwise, Order::EightLanes];

fn sum(terms: &[f32], order: Order) -> f32 {
    match order {
        Order::Ascending => terms.iter().fold(0.0, |s, t| s + t),
        Order::Descending => terms.iter().rev().fold(0.0, |s, t| s + t),
        Order::Pairwise if terms.len() > 2 => {
            let (left, right) = terms.split_at(terms.len() / 2);
            sum(left, order) + sum(right, order)
        }
        Order::Pairwise => terms.iter().sum(),
        Order::EightLanes => {
            let mut lanes = [0.0f32; 8];
            terms.iter().enumerate().for_each(|(i, t)| lanes[i % 8] += t);
            sum(&lanes, Order::Ascending)
        }
    }
}

/// About normal numbers, exact in `dtype`.
fn normal(n: usize, seed: u64, dtype: DType) -> Vec<f64> {
    let format = dtype.float_format().expect("a float dtype");
    numbers(4 * n, seed).chunks(4).map(|c| round_f64(format, c.iter().sum::<f64>() * 0.87)).collect()
}

fn f32_of(data: &[f64]) -> Vec<f32> {
    data.iter().map(|&x| x as f32).collect()
}

fn bf16_run(shape: &[usize], data: &[f32]) -> Run {
    let bytes: Vec<u8> = data.iter().flat_map(|x| (((x.to_bits()) >> 16) as u16).to_le_bytes()).collect();
    let value = HostTensor::new(shape, Storage::from_le_bytes(DType::BF16, &bytes))
        .expect("as many as the shape says");
    Run { results: BTreeMap::from([(first(), Arc::new(value))]), ..Run::default() }
}

fn to_bf16(x: f32) -> f32 {
    round_f64(DType::BF16.float_format().expect("a float dtype"), f64::from(x)) as f32
}

fn node(op: &str, args: &str) -> Case {
    case(&format!(r#"[{{"id": "n", "op": "{op}", "args": {{{args}}}}}]"#))
}

fn acquitted(case: &Case, run: Run, what: &str) {
    for name in ["recorded:x", "torch:cpu", "ort:cpu"] {
        let verdict = hear(case, vec![(name, Outcome::Ok(run.clone()))]).verdict;
        assert!(
            ACQUITTALS.contains(&verdict.cause),
            "{what} by {name}: {:?}, {}",
            verdict.cause,
            verdict.because
        );
    }
}

fn accused(case: &Case, run: Run, what: &str) {
    let verdict = hear(case, vec![("recorded:x", Outcome::Ok(run))]).verdict;
    assert!(!ACQUITTALS.contains(&verdict.cause), "{what}: {}", verdict.because);
}

/// linear of 4 rows of `k`, 5 outputs.
struct Linear {
    k: usize,
    x: Vec<f64>,
    w: Vec<f64>,
    b: Vec<f64>,
}

impl Linear {
    fn new(k: usize, seed: u64) -> Linear {
        let [x, w, b] = [(4 * k, 1), (5 * k, 2), (5, 3)].map(|(n, s)| normal(n, 8 * seed + s, DType::F32));
        Linear { k, x, w, b }
    }

    fn case(&self) -> Case {
        let [x, w, b] = [(vec![4, self.k], &self.x), (vec![5, self.k], &self.w), (vec![5], &self.b)]
            .map(|(s, d)| f32s(&s, d));
        node("linear", &format!(r#""input": {x}, "weight": {w}, "bias": {b}"#))
    }

    fn run(&self, each: impl Fn(&[f32], &[f32], f32) -> f32) -> Run {
        let (x, w, b) = (f32_of(&self.x), f32_of(&self.w), f32_of(&self.b));
        let data: Vec<f32> = (0..20)
            .map(|i| each(&x[i / 5 * self.k..][..self.k], &w[i % 5 * self.k..][..self.k], b[i % 5]))
            .collect();
        returns(&[4, 5], &data)
    }
}

fn products(x: &[f32], w: &[f32]) -> Vec<f32> {
    x.iter().zip(w).map(|(a, b)| a * b).collect()
}

#[test]
fn any_order_of_a_linear_layer_is_acquitted_and_its_faults_are_not() {
    for (seed, k) in [8, 65, 300, 1000].into_iter().enumerate() {
        let layer = Linear::new(k, seed as u64);
        let case = layer.case();
        for order in ORDERS {
            let run = layer.run(|x, w, b| sum(&products(x, w), order) + b);
            acquitted(&case, run, &format!("linear, k = {k}, {order:?}"));
            let wide = layer.run(|x, w, b| x.iter().zip(w).fold(b, |s, (a, c)| a.mul_add(*c, s)));
            acquitted(&case, wide, &format!("linear, k = {k}, FMA from the bias"));
        }
        type Each<'a> = &'a dyn Fn(&[f32], &[f32], f32) -> f32;
        let faults: [(&str, Each<'_>); 5] = [
            ("the bias dropped", &|x, w, _| sum(&products(x, w), Order::Ascending)),
            ("the last term dropped", &|x, w, b| sum(&products(x, w)[1..], Order::Ascending) + b),
            ("a term repeated", &|x, w, b| sum(&products(x, w), Order::Ascending) + x[0] * w[0] + b),
            ("weights one off", &|x, w, b| sum(&products(&x[1..], w), Order::Ascending) + b),
            ("a 16-bit accumulator", &|x, w, b| products(x, w).iter().fold(b, |s, p| to_bf16(s + p))),
        ];
        for (what, each) in faults {
            accused(&case, layer.run(each), &format!("linear, k = {k}, {what}"));
        }
    }
}

fn norm(x: &[f32], order: Order, eps: f32) -> Vec<f32> {
    let n = x.len() as f32;
    let mean = sum(x, order) / n;
    let squares: Vec<f32> = x.iter().map(|v| (v - mean) * (v - mean)).collect();
    let r = 1.0 / (sum(&squares, order) / n + eps).sqrt();
    x.iter().map(|v| (v - mean) * r).collect()
}

#[test]
fn two_passes_of_layer_norm_are_acquitted_and_its_faults_are_not() {
    for (seed, n) in [4, 33, 512].into_iter().enumerate() {
        for offset in [0.0, 2.0, 50.0] {
            let data: Vec<f64> = f32_of(&normal(n, 100 + seed as u64, DType::F32))
                .iter()
                .map(|x| f64::from(x + offset))
                .collect();
            let case = node(
                "layer_norm",
                &format!(r#""input": {}, "normalized_shape": [{n}]"#, f32s(&[1, n], &data)),
            );
            let x = f32_of(&data);
            for order in ORDERS {
                let what = format!("layer_norm, n = {n}, mean {offset}, {order:?}");
                acquitted(&case, returns(&[1, n], &norm(&x, order, 1e-5)), &what);
            }
            let what = format!("layer_norm, n = {n}, mean {offset}");
            accused(
                &case,
                returns(&[1, n], &norm(&x, Order::Pairwise, 1e-2)),
                &format!("{what}, a wrong eps"),
            );
            let shifted: Vec<f32> = norm(&x, Order::Pairwise, 1e-5).iter().map(|y| y + 0.01).collect();
            accused(&case, returns(&[1, n], &shifted), &format!("{what}, a bias from elsewhere"));
            let mut turned = norm(&x, Order::Pairwise, 1e-5);
            turned.rotate_left(1);
            accused(&case, returns(&[1, n], &turned), &format!("{what}, one element off"));
        }
    }
}

#[test]
fn softmax_is_acquitted_in_any_order_and_with_stored_exponentials() {
    for (seed, n) in [3, 40, 700].into_iter().enumerate() {
        let seed = 200 + seed as u64;
        let exps = |x: &[f32]| -> Vec<f32> {
            let m = x.iter().copied().fold(f32::MIN, f32::max);
            x.iter().map(|v| (v - m).exp()).collect()
        };
        let wide = normal(n, seed, DType::F32);
        let case = node("softmax", &format!(r#""input": {}, "dim": 0"#, f32s(&[n], &wide)));
        let e = exps(&f32_of(&wide));
        for order in ORDERS {
            let s = sum(&e, order);
            let y: Vec<f32> = e.iter().map(|v| v / s).collect();
            acquitted(&case, returns(&[n], &y), &format!("softmax, n = {n}, {order:?}"));
        }
        let s = sum(&e[1..], Order::Pairwise);
        let y: Vec<f32> = e.iter().map(|v| v / s).collect();
        accused(&case, returns(&[n], &y), &format!("softmax, n = {n}, a term left out of the sum"));

        let narrow = normal(n, seed, DType::BF16);
        let case = node("softmax", &format!(r#""input": {}, "dim": 0"#, tensor("bfloat16", &[n], &narrow)));
        let e = exps(&f32_of(&narrow));
        let s = sum(&e, Order::Pairwise);
        let once: Vec<f32> = e.iter().map(|v| to_bf16(v / s)).collect();
        acquitted(&case, bf16_run(&[n], &once), &format!("bfloat16 softmax, n = {n}"));
        let twice: Vec<f32> = e.iter().map(|v| to_bf16(to_bf16(*v) / s)).collect();
        acquitted(&case, bf16_run(&[n], &twice), &format!("bfloat16 softmax of two passes, n = {n}"));
        let off: Vec<f32> = once.iter().map(|v| to_bf16(v * 1.02)).collect();
        accused(&case, bf16_run(&[n], &off), &format!("bfloat16 softmax, n = {n}, 2 percent off"));
    }
}

#[test]
fn a_16_bit_quotient_may_be_rounded_before_it_is_truncated() {
    let (a, b) = (normal(500, 300, DType::BF16), normal(500, 301, DType::BF16));
    let a: Vec<f64> = a.iter().map(|x| x * 16.0).collect();
    let [x, y] = [&a, &b].map(|d| tensor("bfloat16", &[500], d));
    type Mode = (&'static str, fn(f32) -> f32);
    let modes: [Mode; 2] = [("trunc", f32::trunc), ("floor", f32::floor)];
    for (mode, rounded) in modes {
        let case = node("div", &format!(r#""input": {x}, "other": {y}, "rounding_mode": "{mode}""#));
        let by = |f: &dyn Fn(f32) -> f32| -> Run {
            let q: Vec<f32> = a.iter().zip(&b).map(|(a, b)| to_bf16(f((a / b) as f32))).collect();
            bf16_run(&[500], &q)
        };
        acquitted(&case, by(&|q| rounded(q)), mode);
        acquitted(&case, by(&|q| rounded(to_bf16(q))), mode);
        accused(&case, by(&|q| q.round()), &format!("{mode}, to the nearest"));
    }
}

#[test]
fn a_16_bit_product_with_a_one_dimensional_weight_may_be_rounded_before_the_bias() {
    let (x, w, b) = (normal(64 * 30, 400, DType::BF16), normal(30, 401, DType::BF16), 7.25);
    let [input, weight, bias] = [(vec![2, 32, 30], x.clone()), (vec![30], w.clone()), (vec![], vec![b])]
        .map(|(shape, data)| tensor("bfloat16", &shape, &data));
    let case = node("linear", &format!(r#""input": {input}, "weight": {weight}, "bias": {bias}"#));
    let by = |f: &dyn Fn(f32) -> f32| -> Run {
        let w = f32_of(&w);
        let y: Vec<f32> =
            x.chunks(30).map(|row| f(sum(&products(&f32_of(row), &w), Order::EightLanes))).collect();
        bf16_run(&[2, 32], &y)
    };
    acquitted(&case, by(&|p| to_bf16(p + b as f32)), "rounded once");
    acquitted(&case, by(&|p| to_bf16(to_bf16(p) + b as f32)), "rounded twice");
    accused(&case, by(&|p| to_bf16(p)), "the bias dropped");
}
