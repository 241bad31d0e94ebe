//! batch_norm for float32, float16 and bfloat16.
//!
//! Formula: y = (x - mean) / sqrt(var + eps) * weight + bias per channel, with the running statistics or, in training, the
//! batch's; then also running' = (1 - momentum) running + momentum batch, the batch's variance unbiased (n / (n - 1)).
//!
//! Method and bound: [`moments`](super::moments); running statistics are exact inputs, with no error of their own. The
//! updates: 1 - momentum = h + l by TwoSum; two products, a sum, and for the variance a factor, round by fewer than 8 u of the
//! terms' magnitudes, |l running| and momentum times the batch's error are added.
//!
//! Special values: a batch in training that holds no value is left to the balls; channels with NaN or infinities, and those
//! whose var + eps is not positive, are left pending.

use half::{bf16, f16};
use rayon::prelude::*;
use ulpian_spec::ops::batch_norm::BatchNorm;
use ulpian_spec::{DType, HostTensor, TensorType};

use super::decide::{Narrow, decide, decide_inline};
use super::matmul::{as_f32, with_narrow};
use super::moments::{Affine, Moments, Scale, moments};
use super::{Candidate, vectorize};
use crate::eft::two_sum;

pub(super) fn batch_norm(op: &BatchNorm<&HostTensor>, types: &[TensorType]) -> Option<Vec<Candidate>> {
    let x = as_f32(op.input)?;
    let (&samples, &channels) = (op.input.shape().first()?, op.input.shape().get(1)?);
    let inner: usize = op.input.shape()[2..].iter().product();
    if op.training && samples * inner == 0 {
        return None;
    }
    let parameter = |t: Option<&'_ HostTensor>| match t {
        Some(t) => as_f32(t).map(|t| Some(t.into_owned())),
        None => Some(None),
    };
    let (weight, bias) = (parameter(op.weight)?, parameter(op.bias)?);
    let running = [parameter(op.running_mean)?, parameter(op.running_var)?];
    let statistics: Vec<Moments> = (0..channels)
        .into_par_iter()
        .map(|c| match &running {
            [Some(mean), Some(var)] if !op.training => Moments {
                mean: f64::from(mean[c]),
                mean_error: 0.0,
                variance: f64::from(var[c]),
                variance_error: 0.0,
            },
            _ => vectorize(
                #[inline(always)]
                || {
                    let pieces = (0..samples).map(|n| &x[(n * channels + c) * inner..][..inner]);
                    moments(pieces, samples * inner)
                },
            ),
        })
        .collect();
    let affine: Vec<Option<Affine>> = (0..channels)
        .map(|c| {
            (weight.is_some() || bias.is_some()).then(|| Affine {
                weight: weight.as_ref().map_or(1.0, |w| w[c]),
                bias: bias.as_ref().map_or(0.0, |b| b[c]),
            })
        })
        .collect();
    let scales: Vec<Option<Scale>> = statistics.iter().map(|&m| Scale::new(m, op.eps)).collect();
    let mut results = vec![with_narrow!(types[0].dtype, normalize(&x, inner, &scales, &affine, &types[0]))?];
    let count = (samples * inner) as f64;
    // Results 1 and 2, in this order, where the running statistics were given.
    for (ty, (old, is_variance)) in types[1..].iter().zip(running.iter().zip([false, true])) {
        let old = old.as_ref()?;
        let batch = statistics.iter().map(|m| {
            let factor = count / (count - 1.0);
            if is_variance {
                (m.variance * factor, m.variance_error * factor)
            } else {
                (m.mean, m.mean_error)
            }
        });
        let batch: Vec<(f64, f64)> = batch.collect();
        results.push(with_narrow!(ty.dtype, update(old, &batch, op.momentum, ty))?);
    }
    Some(results)
}

fn normalize<T: Narrow>(
    x: &[f32],
    inner: usize,
    scales: &[Option<Scale>],
    affine: &[Option<Affine>],
    ty: &TensorType,
) -> Candidate {
    let (mut center, mut radius, mut value) =
        (vec![0.0; x.len()], vec![0.0; x.len()], vec![T::default(); x.len()]);
    let sample = (inner * scales.len()).max(1);
    let pending = x
        .par_chunks(sample)
        .zip(center.par_chunks_mut(sample))
        .zip(radius.par_chunks_mut(sample))
        .zip(value.par_chunks_mut(sample))
        .enumerate()
        .flat_map_iter(|(t, (((x, center), radius), value))| {
            let mut pending = Vec::new();
            vectorize(
                #[inline(always)]
                || {
                    let planes = x.chunks(inner).zip(center.chunks_mut(inner)).zip(radius.chunks_mut(inner));
                    for (((x, c), r), (scale, affine)) in planes.zip(scales.iter().zip(affine)) {
                        let elements = x.iter().zip(c).zip(r.iter_mut());
                        match (scale, affine) {
                            (Some(scale), None) => {
                                elements.for_each(|((&x, c), r)| (*c, *r) = scale.apply(x))
                            }
                            (Some(scale), Some(affine)) => {
                                elements.for_each(|((&x, c), r)| (*c, *r) = affine.apply(scale.apply(x)));
                            }
                            (None, _) => r.fill(f64::NAN),
                        }
                    }
                    decide_inline(center, radius, value, t * sample, &mut pending);
                },
            );
            pending
        })
        .collect();
    Candidate { ty: ty.clone(), center, low: Vec::new(), radius, value: T::into_storage(value), pending }
}

fn update<T: Narrow>(old: &[f32], batch: &[(f64, f64)], momentum: f64, ty: &TensorType) -> Candidate {
    let (kept, rest) = two_sum(1.0, -momentum);
    let (center, radius): (Vec<f64>, Vec<f64>) = old
        .iter()
        .zip(batch)
        .map(|(&old, &(new, error))| {
            let old = f64::from(old);
            let (a, b) = (kept * old, momentum * new);
            let radius =
                (a.abs() + b.abs()) * 4.0 * f64::EPSILON + (rest * old).abs() + momentum.abs() * error * 1.01;
            (a + b, radius * (1.0 + 1e-6) + f64::MIN_POSITIVE)
        })
        .unzip();
    let mut value = vec![T::default(); center.len()];
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
    fn both_modes_with_and_without_parameters() {
        let mut random = Random(0xb417_0000_1111);
        let (mut pending, mut elements) = (0, 0);
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            for kind in KINDS {
                for shape in [&[3, 4, 5, 6][..], &[9, 3], &[2, 2, 33]] {
                    let x = tensor(&mut random, dtype, shape, kind);
                    let c = [shape[1]];
                    let parameters: Vec<HostTensor> =
                        (0..3).map(|_| tensor(&mut random, dtype, &c, Data::Plain)).collect();
                    let var = HostTensor::f32(&c, &vec![0.75; c[0]]);
                    let var = if dtype == DType::F32 {
                        var
                    } else {
                        tensor(&mut random, dtype, &c, Data::Integers)
                    };
                    for round in 0..4 {
                        let training = round % 2 == 0;
                        let op = BatchNorm {
                            input: &x,
                            running_mean: (round < 3).then_some(&parameters[0]),
                            running_var: (round < 3).then_some(&var),
                            weight: (round > 0).then_some(&parameters[1]),
                            bias: (round > 1).then_some(&parameters[2]),
                            training: training || round == 3,
                            momentum: 0.1,
                            eps: 1e-5,
                        };
                        let mut types = vec![x.tensor_type()];
                        if training {
                            types.extend([TensorType::new(dtype, c), TensorType::new(dtype, c)]);
                        }
                        let open = assert_agrees(&Op::BatchNorm(op), &types);
                        if kind == Data::Plain {
                            pending += open;
                            elements += x.len();
                        }
                    }
                }
            }
        }
        // Negative running variances of the 16-bit data leave whole channels.
        assert!(pending * 3 < elements, "{pending} of {elements}");
    }
}
