//! relu.
//!
//! Formula: max(x, 0), which is exact. NaN and zeros of either sign stay (the sign is free, the driver knows); negative
//! numbers give +0. Integer dtypes are left to the exact evaluator.
//!
//! Cost: fresh memory, 8 bytes of centre and the value; radii stay zeros that no page stands behind.

use half::{bf16, f16};
use rayon::prelude::*;
use ulpian_spec::ops::relu::Relu;
use ulpian_spec::{DType, HostTensor, Storage, TensorType};

use super::chunks::CHUNK;
use super::decide::Narrow;
use super::matmul::{as_f32, with_narrow};
use super::{Candidate, vectorize};

/// Elements whose values are held as float32 at a time.
const BLOCK: usize = 256;

pub(super) fn relu(op: &Relu<&HostTensor>, ty: &TensorType) -> Option<Candidate> {
    if let Storage::F64(x) = op.input.storage() {
        let center: Vec<f64> = x.iter().map(|&x| if x < 0.0 { 0.0 } else { x }).collect();
        return Some(exact(ty, Storage::F64(center.clone()), center));
    }
    let x = as_f32(op.input)?;
    with_narrow!(ty.dtype, narrow(&x, ty))
}

fn narrow<T: Narrow>(x: &[f32], ty: &TensorType) -> Candidate {
    let (mut center, mut value) = (vec![0.0; x.len()], vec![T::default(); x.len()]);
    let chunks = x.par_chunks(CHUNK).zip(center.par_chunks_mut(CHUNK)).zip(value.par_chunks_mut(CHUNK));
    chunks.for_each(|((x, center), value)| {
        vectorize(
            #[inline(always)]
            || {
                let mut results = [0f32; BLOCK];
                let blocks = x.chunks(BLOCK).zip(center.chunks_mut(BLOCK)).zip(value.chunks_mut(BLOCK));
                for ((x, c), v) in blocks {
                    for ((&x, c), y) in x.iter().zip(c).zip(&mut results) {
                        *y = if x < 0.0 { 0.0 } else { x };
                        *c = f64::from(*y);
                    }
                    T::narrow(&results[..v.len()], v);
                }
            },
        );
    });
    exact(ty, T::into_storage(value), center)
}

fn exact(ty: &TensorType, value: Storage, center: Vec<f64>) -> Candidate {
    let radius = vec![0.0; center.len()];
    Candidate { ty: ty.clone(), center, low: Vec::new(), radius, value, pending: Vec::new() }
}

#[cfg(test)]
mod tests {
    use ulpian_spec::Op;

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
