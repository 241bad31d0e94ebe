//! gelu by the formulas that cancel: 0.5 x (1 + erf(x / sqrt 2)) and 0.5 x (1 + tanh(...)) in float32.
//!
//! Cost: 1 + erf(z) is a multiple of 2^-24 once erf(z) is below -1/2, so the result is off by up to |x| 2^-25 + ...: 0.16 %
//! at -4, 57 % at -5.5, everything below about -5.6. An infinity times 0 gives NaN at minus infinity.
//! Source: `aten/src/ATen/native/cpu/Activation.cpp` of PyTorch; oneDNN's `gelu_erf` uses the same form.
//!
//! erf and tanh are the correctly rounded ones. A library whose erf is off by an ulp somewhere gives other bits there; where
//! 1 + erf cancels, an ulp of erf is at most half a step of the sum, and the bits agree.

use ulpian_spec::ops::GeluApproximate;
use ulpian_spec::{HostTensor, Op};

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
