//! matmul and linear.
//!
//! Formula: y = x w with PyTorch's rules for one-dimensional operands (a row on the left, a column on the right) and for
//! broadcast leading dimensions; linear is y = x w^T + b.
//!
//! Method and error bound: [`product`](super::product) for float32, float16, bfloat16; [`product_f64`](super::product_f64)
//! for float64. A right operand without leading dimensions is one product with all rows of the left one; otherwise there is
//! a product per leading index.
//!
//! Special values: rows and columns that hold NaN or infinities are left pending.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use std::borrow::Cow;
use ulpian_spec::ops::{linear::Linear, matmul::Matmul};
use ulpian_spec::{DType, HostTensor, Storage, TensorType};

use super::decide::Narrow;
use super::gemm::Matrix;
use super::product::{Bias, Out, Problem, certify};
use super::{Candidate, product_f64};

/// The elements of a float32, float16 or bfloat16 tensor as float32.
pub(super) fn as_f32(tensor: &HostTensor) -> Option<Cow<'_, [f32]>> {
    Some(match tensor.storage() {
        Storage::F32(v) => Cow::Borrowed(v),
        Storage::F16(v) => Cow::Owned(v.to_f32_vec()),
        Storage::BF16(v) => Cow::Owned(v.to_f32_vec()),
        _ => return None,
    })
}

/// Calls `$f::<T>` with the Rust type of a narrow float dtype; `None` for others.
macro_rules! with_narrow {
    ($dtype:expr, $f:ident ( $($arg:expr),* $(,)? )) => {
        match $dtype {
            DType::F32 => Some($f::<f32>($($arg),*)),
            DType::F16 => Some($f::<f16>($($arg),*)),
            DType::BF16 => Some($f::<bf16>($($arg),*)),
            _ => None,
        }
    };
}
pub(super) use with_narrow;

/// One product per leading index.
struct Batch {
    /// Start of the left operand, of the right one, in elements.
    starts: Vec<(usize, usize)>,
    rows: usize,
    columns: usize,
    terms: usize,
    /// Strides of the right operand.
    right: (usize, usize),
}

pub(super) fn matmul(op: &Matmul<&HostTensor>, ty: &TensorType) -> Option<Candidate> {
    let (x, y) = (op.input, op.other);
    if x.dtype() != ty.dtype || y.dtype() != ty.dtype {
        return None;
    }
    let batch = matmul_batch(x.shape(), y.shape())?;
    evaluate(x, y, None, &batch, ty)
}

pub(super) fn linear(op: &Linear<&HostTensor>, ty: &TensorType) -> Option<Candidate> {
    let (x, w) = (op.input, op.weight);
    let dtype = ty.dtype;
    if x.dtype() != dtype || w.dtype() != dtype || op.bias.is_some_and(|b| b.dtype() != dtype) {
        return None;
    }
    let terms = *x.shape().last()?;
    let columns = if w.shape().len() == 2 { w.shape()[0] } else { 1 };
    // A 0-dimensional bias for several columns is left to the general evaluation.
    if op.bias.is_some_and(|b| b.len() != columns) {
        return None;
    }
    let rows = x.shape()[..x.shape().len() - 1].iter().product();
    let batch = Batch { starts: vec![(0, 0)], rows, columns, terms, right: (1, terms) };
    evaluate(x, w, op.bias, &batch, ty)
}

fn matmul_batch(x: &[usize], y: &[usize]) -> Option<Batch> {
    let terms = *x.last()?;
    let (x_lead, rows) = match x.len() {
        1 => (&x[..0], 1),
        n => (&x[..n - 2], x[n - 2]),
    };
    let (y_lead, columns) = match y.len() {
        0 => return None,
        1 => (&y[..0], 1),
        n => (&y[..n - 2], y[n - 1]),
    };
    let right = (columns, 1);
    if y_lead.iter().product::<usize>() == 1 && y_lead.len() <= x_lead.len() {
        let rows = rows * x_lead.iter().product::<usize>();
        return Some(Batch { starts: vec![(0, 0)], rows, columns, terms, right });
    }
    let rank = x_lead.len().max(y_lead.len());
    let size = |lead: &[usize], d: usize| (d + lead.len()).checked_sub(rank).map_or(1, |d| lead[d]);
    let lead: Vec<usize> =
        (0..rank).map(|d| if size(x_lead, d) == 1 { size(y_lead, d) } else { size(x_lead, d) }).collect();
    let count = lead.iter().product();
    let offset = |index: &[usize], own: &[usize], step: usize| {
        let at = (0..rank).fold(0, |at, d| {
            let n = size(own, d);
            at * n + if n == 1 { 0 } else { index[d] }
        });
        at * step
    };
    let starts = (0..count)
        .map(|i| {
            let index = ulpian_spec::tensor::unravel(i, &lead);
            (offset(&index, x_lead, rows * terms), offset(&index, y_lead, terms * columns))
        })
        .collect();
    Some(Batch { starts, rows, columns, terms, right })
}

fn evaluate(
    x: &HostTensor,
    y: &HostTensor,
    bias: Option<&HostTensor>,
    batch: &Batch,
    ty: &TensorType,
) -> Option<Candidate> {
    if let (Storage::F64(x), Storage::F64(y)) = (x.storage(), y.storage()) {
        let bias = match bias.map(HostTensor::storage) {
            Some(Storage::F64(b)) => product_f64::Bias::Columns(b),
            Some(_) => return None,
            None => product_f64::Bias::None,
        };
        return Some(float64(x, y, bias, batch, ty));
    }
    let (x, y) = (as_f32(x)?, as_f32(y)?);
    let bias = match bias {
        Some(b) => Some(as_f32(b)?),
        None => None,
    };
    with_narrow!(ty.dtype, narrow(&x, &y, bias.as_deref(), batch, ty))
}

fn narrow<T: Narrow>(
    x: &[f32],
    y: &[f32],
    bias: Option<&[f32]>,
    batch: &Batch,
    ty: &TensorType,
) -> Candidate {
    let &Batch { rows, columns, terms, right, .. } = batch;
    let size = rows * columns;
    let len = size * batch.starts.len();
    let (mut center, mut radius, mut value) = (vec![0.0; len], vec![0.0; len], vec![T::default(); len]);
    // A 0-dimensional bias, that of a one-dimensional weight, is one column's.
    let bias = bias.map_or(Bias::None, Bias::Columns);
    let format = ty.dtype.float_format().expect("a float dtype");
    let bands = rayon::current_num_threads();
    let mut pending = Vec::new();
    for (i, &(x_start, y_start)) in batch.starts.iter().enumerate() {
        let a = Matrix { data: &x[x_start..], row_stride: terms, col_stride: 1 };
        let b = Matrix { data: &y[y_start..], row_stride: right.0, col_stride: right.1 };
        let few_bits = ty.dtype != DType::F32;
        let problem = Problem { a, b: &b, rows, columns, terms, bias, format, few_bits, bands };
        let part = i * size..(i + 1) * size;
        let out = Out {
            center: &mut center[part.clone()],
            radius: &mut radius[part.clone()],
            value: &mut value[part],
        };
        pending.extend(certify(&problem, out, i * size));
    }
    Candidate { ty: ty.clone(), center, low: Vec::new(), radius, value: T::into_storage(value), pending }
}

fn float64(x: &[f64], y: &[f64], bias: product_f64::Bias<'_>, batch: &Batch, ty: &TensorType) -> Candidate {
    let &Batch { rows, columns, terms, right, .. } = batch;
    let size = rows * columns;
    let mut out = product_f64::Results::new(size * batch.starts.len());
    for (i, &(x_start, y_start)) in batch.starts.iter().enumerate() {
        let a = Matrix { data: &x[x_start..], row_stride: terms, col_stride: 1 };
        let b = Matrix { data: &y[y_start..], row_stride: right.0, col_stride: right.1 };
        let problem = product_f64::Problem { a, b: &b, rows, columns, terms, bias };
        product_f64::certify(&problem, &mut out, i * size);
    }
    out.into_candidate(ty)
}

#[cfg(test)]
mod tests {
    use dashu_int::{IBig, UBig};
    use ulpian_spec::Op;

    use super::super::tests::{Data, KINDS, Random, assert_element, scaled, scaled_product, tensor};
    use super::*;
    use crate::Settings;

    fn run(op: Op<&HostTensor>, ty: TensorType) -> Candidate {
        super::super::try_evaluate(&op, &[ty], &Settings::default()).expect("handled").remove(0)
    }

    #[test]
    fn every_kind_of_data_encloses_and_rounds() {
        let mut random = Random(0x1234_5678_9abc_def1);
        for dtype in DType::FLOATS {
            for kind in KINDS {
                for (m, n, k) in [(7, 19, 33), (1, 1, 1), (5, 8, 300), (26, 9, 4), (2, 3, 0)] {
                    let x = tensor(&mut random, dtype, &[m, k], kind);
                    let w = tensor(&mut random, dtype, &[n, k], kind);
                    let bias = tensor(&mut random, dtype, &[n], if k % 2 == 0 { Data::Ties } else { kind });
                    let op = Linear { input: &x, weight: &w, bias: Some(&bias) };
                    let got = run(Op::Linear(op), TensorType::new(dtype, [m, n]));
                    let (x, w, bias) = (x.to_f64_vec(), w.to_f64_vec(), bias.to_f64_vec());
                    for i in 0..m * n {
                        let (row, col) = (i / n, i % n);
                        let sum: IBig = (0..k).map(|t| scaled_product(x[row * k + t], w[col * k + t])).sum();
                        assert_element(&got, i, &(sum + scaled(bias[col])), &UBig::ONE);
                    }
                    // Float64 products may fall below its range.
                    let beyond = dtype == DType::F64 && matches!(kind, Data::Wide | Data::Subnormal);
                    assert!(
                        beyond || got.pending.is_empty(),
                        "{dtype} {kind:?} {m} {n} {k}: {:?}",
                        got.pending
                    );
                }
            }
        }
    }

    #[test]
    fn batches_broadcast_and_vectors_stand_as_rows_and_columns() {
        let mut random = Random(99);
        for (xs, ys, zs) in [
            (&[3][..], &[3][..], &[][..]),
            (&[3], &[3, 4], &[4]),
            (&[2, 5, 3], &[3], &[2, 5]),
            (&[2, 5, 3], &[3, 4], &[2, 5, 4]),
            (&[2, 1, 5, 3], &[3, 3, 4], &[2, 3, 5, 4]),
            (&[3], &[2, 3, 4], &[2, 4]),
            (&[5, 3], &[1, 1, 3, 4], &[1, 1, 5, 4]),
            (&[0, 5, 3], &[3, 4], &[0, 5, 4]),
        ] {
            let x = tensor(&mut random, DType::F32, xs, Data::Plain);
            let y = tensor(&mut random, DType::F32, ys, Data::Plain);
            let got = run(Op::Matmul(Matmul { input: &x, other: &y }), TensorType::new(DType::F32, zs));
            assert_eq!(got.center.len(), zs.iter().product::<usize>());
            let full = |shape: &[usize], left: bool| match (shape.len(), left) {
                (1, true) => vec![1, shape[0]],
                (1, false) => vec![shape[0], 1],
                _ => shape.to_vec(),
            };
            let (xf, yf) = (full(xs, true), full(ys, false));
            let (m, k, n) = (xf[xf.len() - 2], xf[xf.len() - 1], yf[yf.len() - 1]);
            let lead: usize = got.center.len() / (m * n);
            let (xd, yd) = (x.to_f64_vec(), y.to_f64_vec());
            for b in 0..lead {
                // With two leading dimensions only [2, 1] against [3] occurs.
                let (bx, by) = match (xf.len(), yf.len()) {
                    (4, 3) => (b / 3, b % 3),
                    _ => (b % (xd.len() / (m * k)), b % (yd.len() / (k * n))),
                };
                for i in 0..m * n {
                    let sum: IBig = (0..k)
                        .map(|t| scaled_product(xd[(bx * m + i / n) * k + t], yd[(by * k + t) * n + i % n]))
                        .sum();
                    assert_element(&got, b * m * n + i, &sum, &UBig::ONE);
                }
            }
        }
    }

    #[test]
    fn rows_that_are_not_finite_are_left_pending() {
        let mut x = vec![1.0f32; 12];
        x[5] = f32::NAN;
        x[8] = f32::INFINITY;
        let (x, w) = (HostTensor::f32(&[3, 4], &x), HostTensor::f32(&[4, 2], &[1.0; 8]));
        let got = run(Op::Matmul(Matmul { input: &x, other: &w }), TensorType::new(DType::F32, [3, 2]));
        assert_eq!(got.pending, [2, 3, 4, 5]);
    }
}
