//! adaptive_avg_pool2d for float32, float16 and bfloat16.
//!
//! Formula: the mean of rows floor(i H / h) to ceil((i + 1) H / h) - 1 and columns likewise.
//!
//! Method and bound: [`moments::mean`](super::moments::mean) in two words, exact where sum and division are. So exact ties are
//! decided.
//!
//! Special values: windows with NaN or infinities, and empty ones, are left pending.

use half::{bf16, f16};
use rayon::prelude::*;
use ulpian_spec::ops::adaptive_avg_pool2d::AdaptiveAvgPool2d;
use ulpian_spec::{DType, HostTensor, TensorType};

use super::decide::{Narrow, decide};
use super::matmul::{as_f32, with_narrow};
use super::moments::mean;
use super::{Candidate, vectorize};
use crate::balls::Ball;

pub(super) fn adaptive_avg_pool2d(op: &AdaptiveAvgPool2d<&HostTensor>, ty: &TensorType) -> Option<Candidate> {
    let x = as_f32(op.input)?;
    let [.., height, width] = *op.input.shape() else { return None };
    let [.., out_height, out_width] = ty.shape[..] else { return None };
    with_narrow!(ty.dtype, evaluate(&x, [height, width], [out_height, out_width], ty))
}

fn evaluate<T: Narrow>(x: &[f32], size: [usize; 2], out: [usize; 2], ty: &TensorType) -> Candidate {
    let plane = out[0] * out[1];
    let len = ty.shape.iter().product();
    let (mut center, mut radius, mut value) = (vec![0.0; len], vec![0.0; len], vec![T::default(); len]);
    let window = |i: usize, d: usize| i * size[d] / out[d]..((i + 1) * size[d]).div_ceil(out[d]);
    center.par_chunks_mut(plane.max(1)).zip(radius.par_chunks_mut(plane.max(1))).enumerate().for_each(
        |(p, (center, radius))| {
            let x = &x[p * size[0] * size[1]..][..size[0] * size[1]];
            vectorize(
                #[inline(always)]
                || {
                    for (at, (c, r)) in center.iter_mut().zip(radius.iter_mut()).enumerate() {
                        let (rows, columns) = (window(at / out[1], 0), window(at % out[1], 1));
                        let count = rows.len() * columns.len();
                        let pieces = rows.map(|y| &x[y * size[1]..][columns.clone()]);
                        let Ball { center, radius } = mean(pieces, count);
                        (*c, *r) = (center.hi, (center.lo.abs() + radius) * (1.0 + f64::EPSILON));
                    }
                },
            );
        },
    );
    let mut pending = Vec::new();
    decide(&center, &radius, &mut value, 0, &mut pending);
    Candidate { ty: ty.clone(), center, low: Vec::new(), radius, value: T::into_storage(value), pending }
}

#[cfg(test)]
mod tests {
    use ulpian_spec::Op;

    use super::super::tests::{Data, KINDS, Random, assert_agrees, tensor};
    use super::*;

    #[test]
    fn every_kind_of_data_and_uneven_windows() {
        let mut random = Random(0xa4e_0001);
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            for kind in KINDS {
                for (shape, out) in [([2, 3, 8, 9], [3, 4]), ([1, 2, 17, 40], [1, 1]), ([1, 1, 3, 2], [5, 7])]
                {
                    let x = tensor(&mut random, dtype, &shape, kind);
                    let output_size = out.map(|n| Some(n as i64));
                    let op = Op::AdaptiveAvgPool2d(AdaptiveAvgPool2d { input: &x, output_size });
                    let ty = TensorType::new(dtype, [shape[0], shape[1], out[0], out[1]]);
                    let pending = assert_agrees(&op, &[ty]);
                    assert!(
                        pending == 0 || kind != Data::Plain && kind != Data::Integers,
                        "{dtype} {kind:?}"
                    );
                }
            }
        }
        let x = HostTensor::f32(&[1, 1, 4], &[f32::NAN, 1.0, f32::INFINITY, 2.0]);
        let op = AdaptiveAvgPool2d { input: &x, output_size: [Some(1), Some(4)] };
        assert_eq!(assert_agrees(&Op::AdaptiveAvgPool2d(op), &[x.tensor_type()]), 2);
    }
}
