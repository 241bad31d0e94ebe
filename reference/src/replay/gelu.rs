//! gelu by the formulas that cancel: 0.5 x (1 + erf(x / sqrt 2)) and 0.5 x (1 + tanh(...)) in float32.
//!
//! Cost: 1 + erf(z) is a multiple of 2^-24 once erf(z) is below -1/2, so the result is off by up to |x| 2^-25 + ...: 0.16 %
//! at -4, 57 % at -5.5, everything below about -5.6. An infinity times 0 gives NaN at minus infinity.
//! Source: `aten/src/ATen/native/cpu/Activation.cpp` of PyTorch; oneDNN's `gelu_erf` uses the same form.
//!
//! erf and tanh are the correctly rounded ones. A library whose erf is off by an ulp somewhere gives other bits there; where
//! 1 + erf cancels, an ulp of erf is at most half a step of the sum, and the bits agree.

use ulpian_spec::ops::GeluApproximate;
use ulpian_spec::{DType, HostTensor, Op};

use super::lanes::{f32s, mul_add, store};

/// (x * 0.5) * (1 + erf(x * fl(1/sqrt 2))).
pub(super) fn one_plus_erf(op: &Op<&HostTensor>) -> Option<Vec<HostTensor>> {
    map(op, GeluApproximate::None, |x| x * 0.5 * (1.0 + core_math::erff(x * std::f32::consts::FRAC_1_SQRT_2)))
}

/// h + h erf(z) with h = x * 0.5, contracted: a 1 that is never formed, with the same cancellation in the last step.
pub(super) fn one_plus_erf_fma(op: &Op<&HostTensor>) -> Option<Vec<HostTensor>> {
    map(op, GeluApproximate::None, |x| {
        let half = x * 0.5;
        half.mul_add(core_math::erff(x * std::f32::consts::FRAC_1_SQRT_2), half)
    })
}

/// (x * 0.5) * (1 + erf), erf by the polynomial of PyTorch's vector builds; the last step contracted where `FMA`, as in
/// oneDNN.
pub(super) fn one_plus_erf_polynomial<const FMA: bool>(op: &Op<&HostTensor>) -> Option<Vec<HostTensor>> {
    map(op, GeluApproximate::None, |x| {
        let (half, erf) = (x * 0.5, erf_polynomial(x * std::f32::consts::FRAC_1_SQRT_2));
        if FMA { half.mul_add(erf, half) } else { half * (1.0 + erf) }
    })
}

/// The same in whole pairs of vectors of `PAIR` / 2 elements, with the rest by a scalar erf.
pub(super) fn one_plus_erf_vector<const PAIR: usize>(op: &Op<&HostTensor>) -> Option<Vec<HostTensor>> {
    let Op::Gelu(args) = op else { return None };
    // A pair holds half as many float32 as 16-bit elements.
    let pair = if args.input.dtype() == DType::F32 { PAIR } else { 2 * PAIR };
    let body = args.input.len() / pair * pair;
    if body == 0 {
        return None;
    }
    let (vector, scalar) = (one_plus_erf_polynomial::<false>(op)?, one_plus_erf(op)?);
    let (mut y, tail) = (f32s(&vector[0])?, f32s(&scalar[0])?);
    y[body..].copy_from_slice(&tail[body..]);
    Some(vec![store(args.input.dtype(), args.input.shape(), y)?])
}

/// erf by Abramowitz and Stegun 7.1.26 in float32: sign(z) (1 - (p5 t^5 + ... + p1 t) exp(-z^2)), t = 1 / (1 + p |z|);
/// absolute error 1.5e-7, that is 2.5 units in 2^-24.
fn erf_polynomial(z: f32) -> f32 {
    const P: [f32; 5] = [0.254_829_592, -0.284_496_736, 1.421_413_741, -1.453_152_027, 1.061_405_429];
    let t = 1.0 / 0.327_591_1f32.mul_add(z.abs(), 1.0);
    let r = P.iter().rev().skip(1).fold(P[4], |r, &p| r.mul_add(t, p));
    let e = core_math::expf(-(z * z));
    let magnitude = (-e * t).mul_add(r, 1.0);
    if z.is_sign_negative() { -magnitude } else { magnitude }
}

/// (0.5 * x) * (1 + tanh(beta * (x + kappa * ((x * x) * x)))), the inner sum contracted where `FMA`.
pub(super) fn one_plus_tanh<const FMA: bool>(op: &Op<&HostTensor>) -> Option<Vec<HostTensor>> {
    // sqrt(2/pi) and 0.044715, rounded to float32.
    const BETA: f32 = 0.797_884_6;
    const KAPPA: f32 = 0.044_715;
    map(op, GeluApproximate::Tanh, |x| {
        let inner = BETA * mul_add::<FMA>(KAPPA, x * x * x, x);
        0.5 * x * (1.0 + core_math::tanhf(inner))
    })
}

fn map(
    op: &Op<&HostTensor>,
    approximate: GeluApproximate,
    f: impl Fn(f32) -> f32,
) -> Option<Vec<HostTensor>> {
    let Op::Gelu(args) = op else { return None };
    if args.approximate != approximate {
        return None;
    }
    let y = f32s(args.input)?.into_iter().map(f).collect();
    Some(vec![store(args.input.dtype(), args.input.shape(), y)?])
}
