//! batch_norm for float32, float16 and bfloat16.
//!
//! Formula: y = (x - mean) / sqrt(var + eps) * weight + bias per channel, with the running statistics or, in training, the
//! batch's; then also running' = (1 - momentum) running + momentum batch, the batch's variance unbiased (n / (n - 1)).
//!
//! Method and bound: [`moments`](super::moments); running statistics are exact inputs, with no error of their own. What float64
//! leaves open, and the updates of the running statistics, are computed in two words ([`Ball`]).
//!
//! Cost: training reads 4 bytes per element three times (sum, squares, results) and writes 20; the sums take 9 and 19 float64
//! operations per element, the results about 20.
//!
//! Special values: a batch in training that holds no value is left to the balls; channels with NaN or infinities, and those
//! whose var + eps is not positive, are left pending.

use half::{bf16, f16};
use rayon::prelude::*;
use ulpian_spec::ops::batch_norm::BatchNorm;
use ulpian_spec::{DType, HostTensor, TensorType};

use super::chunks::{self, CHUNK, Sign, settled};
use super::decide::Narrow;
use super::matmul::{as_f32, with_narrow};
use super::moments::{Affine, Moments, Scale, moments};
use super::{Candidate, vectorize};
use crate::balls::Ball;
use crate::dd::Dd;

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
    let exact = |x: f32| Ball::exact(f64::from(x));
    let statistics: Vec<Moments> = (0..channels)
        .into_par_iter()
        .map(|c| match &running {
            [Some(mean), Some(var)] if !op.training => {
                Moments { mean: exact(mean[c]), variance: exact(var[c]) }
            }
            _ => vectorize(
                #[inline(always)]
                || {
                    let pieces = (0..samples).map(|n| &x[(n * channels + c) * inner..][..inner]);
                    moments(pieces, samples * inner)
                },
            ),
        })
        .collect();
    let affine: Option<Vec<Affine>> = (weight.is_some() || bias.is_some()).then(|| {
        let of = |c| Affine {
            weight: weight.as_ref().map_or(1.0, |w| w[c]),
            bias: bias.as_ref().map_or(0.0, |b| b[c]),
        };
        (0..channels).map(of).collect()
    });
    let scales: Vec<Option<Scale>> = statistics.iter().map(|&m| Scale::new(m, op.eps)).collect();
    let mut results =
        vec![with_narrow!(types[0].dtype, normalize(&x, inner, &scales, affine.as_deref(), &types[0]))?];
    let count = (samples * inner) as f64;
    // Results 1 and 2, in this order, where the running statistics were given.
    for (ty, (old, is_variance)) in types[1..].iter().zip(running.iter().zip([false, true])) {
        let old = old.as_ref()?;
        let unbiased = Ball::exact(count).div(Ball::exact(count - 1.0));
        let kept = Ball::new(Dd::sum(1.0, -op.momentum), 0.0);
        let updated = statistics.iter().zip(old).map(|(m, &old)| {
            let batch = if is_variance { m.variance.mul(unbiased) } else { m.mean };
            kept.mul(exact(old)).add(Ball::exact(op.momentum).mul(batch))
        });
        let updated: Vec<Ball> = updated.collect();
        results.push(with_narrow!(ty.dtype, round(&updated, ty))?);
    }
    Some(results)
}

fn normalize<T: Narrow>(
    x: &[f32],
    inner: usize,
    scales: &[Option<Scale>],
    affine: Option<&[Affine]>,
    ty: &TensorType,
) -> Candidate {
    let format = ty.dtype.float_format().expect("a float dtype");
    chunks::evaluate::<T, ()>(
        x,
        CHUNK,
        ty,
        Sign::Any,
        #[inline(always)]
        |first, x, center, radius| {
            let mut done = 0;
            while done < x.len() {
                let (plane, at) = ((first + done) / inner, (first + done) % inner);
                let end = (done + inner - at).min(x.len());
                let channel = plane % scales.len();
                let elements = x[done..end].iter().zip(&mut center[done..end]).zip(&mut radius[done..end]);
                match (&scales[channel], affine.map(|a| a[channel])) {
                    (Some(scale), None) => elements.for_each(|((&x, c), r)| (*c, *r) = scale.apply(x)),
                    (Some(scale), Some(affine)) => {
                        elements.for_each(|((&x, c), r)| (*c, *r) = affine.apply(scale.apply(x)));
                    }
                    (None, _) => radius[done..end].fill(f64::NAN),
                }
                done = end;
            }
        },
        |(), first, i, x| {
            let channel = (first + i) / inner % scales.len();
            let z = scales[channel].as_ref()?.ball(x);
            settled(format, affine.map_or(z, |a| a[channel].ball(z)))
        },
    )
}

/// A few balls, rounded.
fn round<T: Narrow>(balls: &[Ball], ty: &TensorType) -> Candidate {
    let format = ty.dtype.float_format().expect("a float dtype");
    let (mut center, mut radius) = (vec![0.0; balls.len()], vec![0.0; balls.len()]);
    let (mut value, mut pending) = (vec![T::default(); balls.len()], Vec::new());
    for (i, &ball) in balls.iter().enumerate() {
        let Some((c, r, v)) = settled(format, ball) else {
            pending.push(i);
            continue;
        };
        (center[i], radius[i]) = (c, r);
        T::narrow(&[v], &mut value[i..=i]);
    }
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

    /// Nothing of ordinary data is left to arbitrary precision, whose statistics would cost far more than all else.
    #[test]
    fn a_batch_of_ordinary_data_is_decided_here() {
        let mut random = Random(0xb417_0000_2222);
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            let x = tensor(&mut random, dtype, &[8, 2, 40, 33], Data::Plain);
            let c = [2];
            let mut parameter = || tensor(&mut random, dtype, &c, Data::Plain);
            let (weight, bias, mean) = (parameter(), parameter(), parameter());
            let op = BatchNorm {
                input: &x,
                running_mean: Some(&mean),
                running_var: Some(&mean),
                weight: Some(&weight),
                bias: Some(&bias),
                training: true,
                momentum: 0.1,
                eps: 1e-5,
            };
            let types = [x.tensor_type(), TensorType::new(dtype, c), TensorType::new(dtype, c)];
            assert_eq!(assert_agrees(&Op::BatchNorm(op), &types), 0);
        }
    }
}
