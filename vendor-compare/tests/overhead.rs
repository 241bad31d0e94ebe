//! What a case costs beyond PyTorch's own computation.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Instant;

use common::{case, config, id, input, ok};
use ulpian_spec::ops::linear;
use ulpian_spec::{DType, HostTensor, Op, TensorType};
use ulpian_vendor_compare::Pool;

#[test]
fn a_small_case_costs_less_than_twenty_milliseconds() {
    let mut pool = Pool::new(config());
    let op = Op::Linear(linear::Linear { input: input(0), weight: input(1), bias: None });
    let x = HostTensor::f32(&[64, 64], &[0.5; 64 * 64]);
    let small = case(&[x.clone(), x], vec![(op, vec![TensorType::new(DType::F32, [64, 64])])]);
    ok(pool.run(&id("torch:cpu"), &small));
    let mut costs: Vec<f64> = (0..101)
        .map(|_| {
            let start = Instant::now();
            let run = ok(pool.run(&id("torch:cpu"), &small));
            start.elapsed().as_secs_f64() - run.seconds.unwrap()
        })
        .collect();
    costs.sort_by(f64::total_cmp);
    println!("median {:.3} ms, 90th percentile {:.3} ms", costs[50] * 1e3, costs[90] * 1e3);
    assert!(costs[50] < 0.020, "median {} s", costs[50]);
}
