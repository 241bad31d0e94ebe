//! relu.
//!
//! Formula: max(x, 0), which is exact. NaN and zeros of either sign stay (the sign is free, the driver knows); negative
//! numbers give +0. Integer dtypes are left to the exact evaluator.

use ulpian_spec::ops::relu::Relu;
use ulpian_spec::{HostTensor, Storage, TensorType};

use super::Candidate;

pub(super) fn relu(op: &Relu<&HostTensor>, ty: &TensorType) -> Option<Candidate> {
    let zero = |x: f64| if x < 0.0 { 0.0 } else { x };
    let (value, center): (Storage, Vec<f64>) = match op.input.storage() {
        Storage::F64(v) => {
            let v: Vec<f64> = v.iter().map(|&x| zero(x)).collect();
            (Storage::F64(v.clone()), v)
        }
        Storage::F32(v) => (
            Storage::F32(v.iter().map(|&x| if x < 0.0 { 0.0 } else { x }).collect()),
            v.iter().map(|&x| zero(f64::from(x))).collect(),
        ),
        Storage::F16(v) => (
            Storage::F16(v.iter().map(|&x| if x < half::f16::ZERO { half::f16::ZERO } else { x }).collect()),
            v.iter().map(|&x| zero(f64::from(x))).collect(),
        ),
        Storage::BF16(v) => (
            Storage::BF16(
                v.iter().map(|&x| if x < half::bf16::ZERO { half::bf16::ZERO } else { x }).collect(),
            ),
            v.iter().map(|&x| zero(f64::from(x))).collect(),
        ),
        _ => return None,
    };
    let radius = vec![0.0; center.len()];
    Some(Candidate { ty: ty.clone(), center, low: Vec::new(), radius, value, pending: Vec::new() })
}

#[cfg(test)]
mod tests {
    use ulpian_spec::{DType, Op};

    use super::super::tests::{Data, Random, all_patterns, assert_agrees, tensor};
    use super::*;

    #[test]
    fn every_float16_and_bfloat16_and_wide_data() {
        let mut random = Random(0x1e1u64);
        for x in [
            all_patterns(DType::F16),
            all_patterns(DType::BF16),
            tensor(&mut random, DType::F32, &[2000], Data::Wide),
            tensor(&mut random, DType::F64, &[2000], Data::Wide),
        ] {
            assert_eq!(assert_agrees(&Op::Relu(Relu { input: &x }), &[x.tensor_type()]), 0);
        }
    }
}
