//! batch_norm by PyTorch's CPU kernel: scale and shift folded into one multiply and add.
//!
//! Formula: alpha = weight * invstd, beta = bias - mean * alpha, y = x * alpha + beta, where invstd = 1 / sqrt(var + eps).
//! Cost: alpha and beta are rounded before x meets the mean, so y loses about 4u(|x| + |mean|)|weight| invstd, where
//! subtracting first loses 4u|y|; for bfloat16 parameters the statistics themselves are rounded to 8 bits.
//! Source: `aten/src/ATen/native/cpu/batch_norm_kernel.cpp` (contiguous paths) and `Normalization.cpp` of PyTorch.
//!
//! What the kernel computes in which type:
//! - float32, training: the sum in float64, mean rounded to float32; squares (x - mean)^2 in float32 (they overflow from
//!   |x - mean| = 1.8e19 on), added in float64, rounded to float32, divided by n in float32; invstd in float64, then float32.
//! - float16 and bfloat16, training: sums in 8 float32 lanes, two vectors of 8 a step, with a scalar tail; mean and invstd are
//!   rounded to the parameters' dtype, and so are the sum of squares and its quotient by n where that is bfloat16. Parameters are those of `running_mean`,
//!   or of `weight`, or of the input where neither is given.
//! - evaluation: invstd = 1 / sqrt(running_var + eps) in float32.
//! - `beta` and `y` are contracted to FMA by builds for AVX2 and AVX-512 and not by the default one.

use ulpian_spec::ops::batch_norm::BatchNorm;
use ulpian_spec::{DType, HostTensor, Op};

use super::lanes::{f32s, mul_add, round_to, store};

/// The folded form, contracted where `FMA`.
pub(super) fn fold_scale_shift<const FMA: bool>(op: &Op<&HostTensor>) -> Option<Vec<HostTensor>> {
    let Op::BatchNorm(args) = op else { return None };
    normalise(args, statistics::<FMA>, |x, s| {
        let alpha = s.invstd * s.weight;
        let beta = mul_add::<FMA>(-s.mean, alpha, s.bias);
        mul_add::<FMA>(x, alpha, beta)
    })
}

/// Subtract first, then scale: ((x - mean) * invstd) * weight + bias with the kernel's statistics. Sound.
pub(super) fn subtract_then_scale(op: &Op<&HostTensor>) -> Option<Vec<HostTensor>> {
    let Op::BatchNorm(args) = op else { return None };
    normalise(args, statistics::<false>, |x, s| ((x - s.mean) * s.invstd) * s.weight + s.bias)
}

/// Variance as E[x^2] - E[x]^2, both in float32 (a negative one counts as 0), then subtract and scale. The difference loses
/// about n kappa^2 u, kappa^2 = 1 + mean^2 / var.
pub(super) fn one_pass_variance(op: &Op<&HostTensor>) -> Option<Vec<HostTensor>> {
    let Op::BatchNorm(args) = op else { return None };
    if !args.training {
        return None;
    }
    normalise(
        args,
        |x, _, eps| {
            let n = x.len() as f32;
            let mean = x.iter().fold(0.0f32, |s, &v| s + v) / n;
            let squares = x.iter().fold(0.0f32, |s, &v| s + v * v) / n;
            let variance = (squares - mean * mean).max(0.0);
            let invstd = 1.0 / (variance + eps as f32).sqrt();
            Moments { mean, invstd, squares: variance * n, raw_mean: mean }
        },
        |x, s| ((x - s.mean) * s.invstd) * s.weight + s.bias,
    )
}

/// The affine map of one channel.
struct Channel {
    mean: f32,
    invstd: f32,
    weight: f32,
    bias: f32,
}

/// A channel's statistics in training.
struct Moments {
    /// Rounded to the parameters' dtype.
    mean: f32,
    /// Rounded to the parameters' dtype.
    invstd: f32,
    /// The sum of squared deviations.
    squares: f32,
    /// The mean before its last rounding.
    raw_mean: f32,
}

/// The statistics of a channel's values, given the parameters' dtype and eps.
type Statistics = fn(&ChannelValues<'_>, DType, f64) -> Moments;

/// The running statistics' update, momentum * new + (1 - momentum) * old: in float32 for float32 parameters (the variance's
/// contracted to FMA where the input is float32 too), in float64 with one rounding for float16, and with momentum, its
/// complement and the products rounded to 8 bits for bfloat16 (the variance's new part excepted).
struct Update {
    dtype: DType,
    parameters: DType,
    momentum: f64,
}

impl Update {
    fn mean(&self, rounded: f32, raw: f32, old: f32) -> f32 {
        let (share, rest) = self.shares();
        match self.parameters {
            DType::F16 => self.once(raw, old),
            DType::BF16 => round_to(DType::BF16, share * rounded) + round_to(DType::BF16, rest * old),
            _ => share * rounded + rest * old,
        }
    }

    fn variance(&self, new: f32, old: f32) -> f32 {
        let (share, rest) = self.shares();
        match self.parameters {
            DType::F16 => self.once(new, old),
            DType::BF16 => share * round_to(DType::BF16, new) + round_to(DType::BF16, rest * old),
            _ if self.dtype == DType::F32 => share.mul_add(new, rest * old),
            _ => share * new + rest * old,
        }
    }

    fn shares(&self) -> (f32, f32) {
        let share = round_to(self.parameters, self.momentum as f32);
        (share, round_to(self.parameters, 1.0 - share))
    }

    fn once(&self, new: f32, old: f32) -> f32 {
        (self.momentum * f64::from(new) + (1.0 - self.momentum) * f64::from(old)) as f32
    }
}

/// A channel's values, batch by batch.
struct ChannelValues<'a> {
    dtype: DType,
    planes: Vec<&'a [f32]>,
}

impl ChannelValues<'_> {
    fn iter(&self) -> impl Iterator<Item = &f32> {
        self.planes.iter().flat_map(|p| p.iter())
    }

    fn len(&self) -> usize {
        self.planes.iter().map(|p| p.len()).sum()
    }
}

fn statistics<const FMA: bool>(x: &ChannelValues<'_>, parameters: DType, eps: f64) -> Moments {
    let n = x.len();
    if x.dtype == DType::F32 {
        let mean = (x.iter().map(|&v| f64::from(v)).sum::<f64>() / n as f64) as f32;
        let squares: f64 = x.iter().map(|&v| f64::from((v - mean) * (v - mean))).sum();
        let squares = squares as f32;
        let invstd = 1.0 / (f64::from(squares / n as f32) + eps).sqrt();
        return Moments { mean, invstd: invstd as f32, squares, raw_mean: mean };
    }
    let mean = lane_sum(x, |s, v| s + v) / n as f32;
    let squares = lane_sum(x, |s, v| mul_add::<FMA>(v - mean, v - mean, s));
    let early = if parameters == DType::F16 { DType::F32 } else { parameters };
    let squares = round_to(early, squares);
    let variance = round_to(early, squares / n as f32);
    let invstd = 1.0 / (f64::from(variance) + eps).sqrt();
    let (raw_mean, invstd) = (mean, round_to(parameters, invstd as f32));
    Moments { mean: round_to(parameters, mean), invstd, squares, raw_mean }
}

/// Eight lanes over whole vectors of 16 values of each plane, a scalar tail, and the lanes joined left to right.
fn lane_sum(x: &ChannelValues<'_>, add: impl Fn(f32, f32) -> f32) -> f32 {
    let (mut lanes, mut tail) = ([0.0f32; 8], 0.0f32);
    for plane in &x.planes {
        let (vectors, rest) = plane.split_at(plane.len() / 16 * 16);
        for vector in vectors.chunks_exact(8) {
            for (lane, &v) in lanes.iter_mut().zip(vector) {
                *lane = add(*lane, v);
            }
        }
        tail = rest.iter().fold(tail, |s, &v| add(s, v));
    }
    tail + lanes.iter().skip(1).fold(lanes[0], |s, &v| s + v)
}

fn normalise(
    args: &BatchNorm<&HostTensor>,
    statistics: Statistics,
    affine: impl Fn(f32, &Channel) -> f32,
) -> Option<Vec<HostTensor>> {
    let dtype = args.input.dtype();
    let x = f32s(args.input)?;
    let shape = args.input.shape();
    let (batch, channels) = (*shape.first()?, *shape.get(1)?);
    let plane: usize = shape[2..].iter().product();
    if x.is_empty() {
        return None;
    }
    let optional = |t: Option<&HostTensor>| match t {
        Some(t) => f32s(t).map(Some),
        None => Some(None),
    };
    let (weight, bias) = (optional(args.weight)?, optional(args.bias)?);
    let (running_mean, running_var) = (optional(args.running_mean)?, optional(args.running_var)?);
    let parameters = args.running_mean.or(args.weight).map_or(dtype, HostTensor::dtype);

    let mut y = vec![0.0f32; x.len()];
    let (mut means, mut variances) = (Vec::new(), Vec::new());
    for c in 0..channels {
        let planes: Vec<&[f32]> =
            (0..batch).map(|n| &x[(n * channels + c) * plane..(n * channels + c + 1) * plane]).collect();
        let Moments { mean, invstd, squares, raw_mean } = if args.training {
            statistics(&ChannelValues { dtype, planes }, parameters, args.eps)
        } else {
            let variance = running_var.as_ref()?[c];
            let (mean, invstd) = (running_mean.as_ref()?[c], 1.0 / (variance + args.eps as f32).sqrt());
            Moments { mean, invstd, squares: 0.0, raw_mean: mean }
        };
        if args.training {
            let n = (batch * plane) as f32;
            let unbiased = squares / (n - 1.0);
            let update = Update { dtype, parameters, momentum: args.momentum };
            means.extend(running_mean.as_ref().map(|r| update.mean(mean, raw_mean, r[c])));
            variances.extend(running_var.as_ref().map(|r| update.variance(unbiased, r[c])));
        }
        let channel = Channel {
            mean,
            invstd,
            weight: weight.as_ref().map_or(1.0, |w| w[c]),
            bias: bias.as_ref().map_or(0.0, |b| b[c]),
        };
        for n in 0..batch {
            let range = (n * channels + c) * plane..(n * channels + c + 1) * plane;
            for (y, &x) in y[range.clone()].iter_mut().zip(&x[range]) {
                *y = affine(x, &channel);
            }
        }
    }
    let mut results = vec![store(dtype, shape, y)?];
    if args.training && running_mean.is_some() && running_var.is_some() {
        results.push(store(parameters, &[channels], means)?);
        results.push(store(parameters, &[channels], variances)?);
    }
    Some(results)
}
