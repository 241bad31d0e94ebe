//! softmax for results in float32, float16 and bfloat16.
//!
//! Formula: y_i = exp(d_i) / sum_j exp(d_j), d_i = x_i - max x.
//!
//! Method: a row at a time in float64: maximum, exponentials and their sum in 16 lanes, product with the reciprocal of the sum.
//!
//! Bound, u = 2^-53: d_i rounds by u |d_i|, which multiplies exp(d_i) by at most exp(u |d_i|); exp itself loses 4 u. The sum S
//! has the same relative errors on average, u (4 + T / S) with T = sum exp(d_j) |d_j|, and n / 16 + 20 additions on any path.
//! Reciprocal and product add 2 u. Together y_i is off by u (|d_i| + T / S + n / 16 + 32), and a factor 1 + 2^-20 covers
//! second-order terms (n < 2^30) and the cut:
//! d is cut at -700, where exp(d) is only known to lie in [0, exp(-700)]; n times that is far below u S.
//!
//! Special values: -inf beside a finite maximum is such a term, exactly 0. Rows with NaN or +inf, or of -inf alone, are left
//! pending. Results are positive, so the lower end of an interval is at least +0.

use half::{bf16, f16};
use ulpian_spec::ops::softmax::Softmax;
use ulpian_spec::{DType, HostTensor, TensorType};

use super::Candidate;
use super::chunks::{self, Sign};
use super::decide::Narrow;
use super::matmul::{as_f32, with_narrow};
use crate::elementary::exp::exp;

/// 2^-53.
const UNIT: f64 = f64::EPSILON / 2.0;

/// Where d is cut.
const LOWEST: f64 = -700.0;

pub(super) fn softmax(op: &Softmax<&HostTensor>, ty: &TensorType) -> Option<Candidate> {
    let x = as_f32(op.input)?;
    let shape = &ty.shape;
    let (length, inner) = if shape.is_empty() {
        (1, 1)
    } else {
        let axis = usize::try_from(if op.dim < 0 { op.dim + shape.len() as i64 } else { op.dim }).ok()?;
        (*shape.get(axis)?, shape[axis + 1..].iter().product())
    };
    if length >= 1 << 30 {
        return None;
    }
    with_narrow!(ty.dtype, evaluate(&x, length, inner, ty))
}

fn evaluate<T: Narrow>(x: &[f32], length: usize, inner: usize, ty: &TensorType) -> Candidate {
    chunks::evaluate::<T, ()>(
        x,
        chunks::rows(length * inner),
        ty,
        Sign::NotNegative,
        #[inline(always)]
        |_, x, center, radius| {
            if inner == 1 {
                let rows = x.chunks(length).zip(center.chunks_mut(length));
                for ((x, c), r) in rows.zip(radius.chunks_mut(length)) {
                    row(x, c, r);
                }
            } else {
                strided(x, length, inner, center, radius);
            }
        },
        |(), _, _, _| None,
    )
}

/// Rows whose elements lie `inner` apart.
#[inline(always)]
fn strided(x: &[f32], length: usize, inner: usize, center: &mut [f64], radius: &mut [f64]) {
    let mut line = vec![0f32; length];
    let (mut c, mut r) = (vec![0.0; length], vec![0.0; length]);
    for first in (0..x.len()).step_by(length * inner).flat_map(|b| b..b + inner) {
        for (k, to) in line.iter_mut().enumerate() {
            *to = x[first + k * inner];
        }
        row(&line, &mut c, &mut r);
        for k in 0..length {
            center[first + k * inner] = c[k];
            radius[first + k * inner] = r[k];
        }
    }
}

/// Centres and radii of one row.
#[inline(always)]
fn row(x: &[f32], center: &mut [f64], radius: &mut [f64]) {
    const LANES: usize = 16;
    let mut top = [f32::NEG_INFINITY; LANES];
    let mut nan = [0u32; LANES];
    let (full, rest) = x.as_chunks::<LANES>();
    let mut look = |i: usize, x: f32| {
        top[i] = if x > top[i] { x } else { top[i] };
        nan[i] |= u32::from(x.is_nan());
    };
    for x in full {
        for i in 0..LANES {
            look(i, x[i]);
        }
    }
    rest.iter().enumerate().for_each(|(i, &x)| look(i, x));
    let max = f64::from(top.iter().fold(f32::NEG_INFINITY, |m, &x| if x > m { x } else { m }));
    if !max.is_finite() || nan.contains(&1) {
        radius.fill(f64::NAN);
        return;
    }
    // The radius holds exp(d) d for the time being.
    for ((&x, e), w) in x.iter().zip(center.iter_mut()).zip(radius.iter_mut()) {
        let d = f64::from(x) - max;
        let d = if d > LOWEST { d } else { LOWEST };
        *e = exp(d);
        *w = *e * d;
    }
    let (sum, weighted) = (sum_in_lanes(center), sum_in_lanes(radius));
    let scale = 1.0 / sum;
    let inflation = UNIT * (1.0 + 1.0 / f64::from(1 << 20));
    let fixed = -weighted * scale + (x.len() / LANES) as f64 + 33.0;
    for ((&x, c), r) in x.iter().zip(center).zip(radius) {
        let d = f64::from(x) - max;
        *c *= scale;
        *r = *c * if d > LOWEST { (fixed - d) * inflation } else { 1.0 };
    }
}

/// A sum in 16 lanes: n / 16 + 16 additions on any path, at most.
#[inline(always)]
fn sum_in_lanes(x: &[f64]) -> f64 {
    let mut lanes = [0.0f64; 16];
    let (full, rest) = x.as_chunks::<16>();
    for x in full {
        for i in 0..16 {
            lanes[i] += x[i];
        }
    }
    lanes.iter().sum::<f64>() + rest.iter().sum::<f64>()
}

#[cfg(test)]
mod tests {
    use ulpian_spec::Op;

    use super::super::tests::{Data, KINDS, Random, all_patterns, assert_agrees, tensor};
    use super::*;

    #[test]
    fn every_kind_of_data_and_every_dimension() {
        let mut random = Random(0x0bad_cafe_1111);
        let mut pending = 0;
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            for kind in KINDS {
                for (shape, dim) in [
                    (&[3, 40][..], 1),
                    (&[2, 5, 7], 1),
                    (&[5, 4], -2),
                    (&[17], 0),
                    (&[4, 1], 1),
                    (&[], 0),
                    (&[2, 0], 1),
                ] {
                    let x = tensor(&mut random, dtype, shape, kind);
                    let op = Op::Softmax(Softmax { input: &x, dim, dtype: None });
                    pending += assert_agrees(&op, &[x.tensor_type()]);
                }
            }
        }
        assert_eq!(pending, 0);
        let x = tensor(&mut random, DType::F16, &[6, 50], Data::Plain);
        let op = Op::Softmax(Softmax { input: &x, dim: 1, dtype: Some(DType::F32) });
        assert_eq!(assert_agrees(&op, &[TensorType::new(DType::F32, [6, 50])]), 0);
    }

    #[test]
    fn masked_rows_and_special_values() {
        let inf = f32::INFINITY;
        let x = [
            [0.5, -inf, 1.0, -inf],
            [-1e9, 0.0, -1e9, 1.0],
            [-150.0, 0.0, -103.5, -104.5],
            [inf, 0.0, 0.0, 0.0],
            [f32::NAN, 0.0, 0.0, -inf],
            [-inf, -inf, -inf, -inf],
            [3e38, -3e38, 1e-45, 0.0],
        ];
        let x = HostTensor::f32(&[7, 4], x.as_flattened());
        let op = Op::Softmax(Softmax { input: &x, dim: 1, dtype: None });
        assert_eq!(assert_agrees(&op, &[x.tensor_type()]), 12);
    }

    #[test]
    fn the_exponential_of_every_float16_and_bfloat16() {
        for dtype in [DType::F16, DType::BF16] {
            let all = all_patterns(dtype).to_f64_vec();
            let pairs: Vec<f32> =
                all.iter().filter(|x| x.is_finite()).flat_map(|&x| [x as f32, 0.0]).collect();
            let x = HostTensor::f32(&[pairs.len() / 2, 2], &pairs);
            let op = Op::Softmax(Softmax { input: &x, dim: 1, dtype: Some(dtype) });
            assert_eq!(assert_agrees(&op, &[TensorType::new(dtype, x.shape())]), 0);
        }
    }
}
