//! layer_norm for float32, float16 and bfloat16.
//!
//! Formula: y_i = (x_i - mean) / sqrt(var + eps) * weight_i + bias_i over rows of n elements, var = sum (x_i - mean)^2 / n.
//!
//! Method and bound: [`moments`](super::moments) for mean and variance; the affine part is [`Affine`]'s. What float64
//! leaves open is computed in two words.
//!
//! Special values: rows with NaN or infinities, and rows whose var + eps is not positive, are left pending.

use half::{bf16, f16};
use ulpian_spec::ops::layer_norm::LayerNorm;
use ulpian_spec::{DType, HostTensor, TensorType};

use super::Candidate;
use super::chunks::{self, Sign, settled};
use super::decide::Narrow;
use super::matmul::{as_f32, with_narrow};
use super::moments::{Affine, Scale, moments};

pub(super) fn layer_norm(op: &LayerNorm<&HostTensor>, ty: &TensorType) -> Option<Candidate> {
    let x = as_f32(op.input)?;
    let length = op.normalized_shape.iter().map(|&n| n as usize).product();
    let parameter = |t: Option<&'_ HostTensor>| match t {
        Some(t) => as_f32(t).map(|t| Some(t.into_owned())),
        None => Some(None),
    };
    let (weight, bias) = (parameter(op.weight)?, parameter(op.bias)?);
    let affine = (weight.is_some() || bias.is_some())
        .then(|| (weight.unwrap_or_else(|| vec![1.0; length]), bias.unwrap_or_else(|| vec![0.0; length])));
    with_narrow!(ty.dtype, evaluate(&x, length, affine.as_ref(), op.eps, ty))
}

fn evaluate<T: Narrow>(
    x: &[f32],
    length: usize,
    affine: Option<&(Vec<f32>, Vec<f32>)>,
    eps: f64,
    ty: &TensorType,
) -> Candidate {
    let format = ty.dtype.float_format().expect("a float dtype");
    let row = length.max(1);
    chunks::evaluate::<T, Vec<Option<Scale>>>(
        x,
        chunks::rows(row),
        ty,
        Sign::Any,
        #[inline(always)]
        |_, x, center, radius| {
            let mut scales = Vec::with_capacity(x.len() / row);
            let rows = x.chunks(row).zip(center.chunks_mut(row));
            for ((x, c), r) in rows.zip(radius.chunks_mut(row)) {
                let scale = Scale::new(moments(std::iter::once(x), x.len()), eps);
                scales.push(scale);
                let Some(scale) = scale else {
                    r.fill(f64::NAN);
                    continue;
                };
                match affine {
                    None => {
                        for ((&x, c), r) in x.iter().zip(c).zip(r) {
                            (*c, *r) = scale.apply(x);
                        }
                    }
                    Some((weight, bias)) => {
                        let parameters = weight.iter().zip(bias);
                        for (((&x, c), r), (&weight, &bias)) in x.iter().zip(c).zip(r).zip(parameters) {
                            (*c, *r) = Affine { weight, bias }.apply(scale.apply(x));
                        }
                    }
                }
            }
            scales
        },
        |scales, _, i, x| {
            let z = scales[i / row].as_ref()?.ball(x);
            let at = i % row;
            let of = |(weight, bias): &(Vec<f32>, Vec<f32>)| Affine { weight: weight[at], bias: bias[at] };
            settled(format, affine.map_or(z, |parameters| of(parameters).ball(z)))
        },
    )
}

#[cfg(test)]
mod tests {
    use ulpian_spec::Op;

    use super::super::tests::{Data, KINDS, Random, assert_agrees, tensor};
    use super::*;

    #[test]
    fn every_kind_of_data_with_and_without_parameters() {
        let mut random = Random(0x77aa_77aa);
        let (mut pending, mut elements) = (0, 0);
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            for kind in KINDS {
                for (round, shape) in [[6, 5, 8], [3, 1, 57], [2, 4, 1]].iter().enumerate() {
                    let x = tensor(&mut random, dtype, shape, kind);
                    let normalized: Vec<i64> = shape[1 + round % 2..].iter().map(|&n| n as i64).collect();
                    let sizes: Vec<usize> = normalized.iter().map(|&n| n as usize).collect();
                    let weight = tensor(&mut random, dtype, &sizes, Data::Integers);
                    let bias = tensor(&mut random, dtype, &sizes, Data::Plain);
                    for parameters in 0..4 {
                        let op = Op::LayerNorm(LayerNorm {
                            input: &x,
                            weight: (parameters & 1 != 0).then_some(&weight),
                            bias: (parameters & 2 != 0).then_some(&bias),
                            normalized_shape: normalized.clone(),
                            eps: [1e-5, 1e-12][round % 2],
                        });
                        let open = assert_agrees(&op, &[x.tensor_type()]);
                        elements += x.len();
                        // Zeros behind an inexact mean, and means beyond float64's precision of the spread.
                        if kind == Data::Plain {
                            pending += open;
                        }
                    }
                }
            }
        }
        assert!(pending * 1000 < elements, "{pending} of {elements}");
        let x = HostTensor::f32(&[2, 2], &[f32::NAN, 1.0, f32::INFINITY, 0.0]);
        let op = LayerNorm { input: &x, weight: None, bias: None, normalized_shape: vec![2], eps: 0.0 };
        assert_eq!(assert_agrees(&Op::LayerNorm(op), &[x.tensor_type()]), 4);
    }
}
