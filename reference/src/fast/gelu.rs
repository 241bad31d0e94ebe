//! gelu, both forms, for float32, float16 and bfloat16.
//!
//! Formula: x Phi(x) = max(x, 0) - H(|x|) with H(a) = a Q(a), Q the normal tail; the tanh form is x / (1 + exp(-s(x))) =
//! max(x, 0) - H(|x|) with H(a) = a exp(-s) / (1 + exp(-s)), s(a) = 2 sqrt(2 / pi) (a + 0.044715 a^3). Neither cancels: for x > 0
//! the difference is at least x / 2, for x < 0 it is -H alone.
//!
//! Method: H in float64 ([`normal_tail`], [`exp`]), vectorised.
//!
//! Bound, u = 2^-53: Q has 28 u, times a one more. For the tanh form: s has six roundings (0.044715, a^2 0.044715, 1 +, the
//! constant 2 sqrt(2 / pi), two products), so exp(-s) is off by 4 u + 7 u s; 1 + exp(-s), the quotient and the product add 3 u.
//! The last subtraction rounds by u |y| where x > 0. a is cut at [`TOP`] or 13, beyond which H decreases: there H lies in
//! (0, H(cut)], within 2 H(cut) of H(cut).
//!
//! What that leaves: x = -0 and |x| < 2^-60, where y = x / 2 + x^2 / sqrt(2 pi) (1 + d), |d| <= x^2 in either form; and x below the
//! cut, where y is negative and rounds to -0. Both are decided one by one; NaN and infinities are left pending.

use half::{bf16, f16};
use ulpian_spec::dtype::FloatFormat;
use ulpian_spec::ops::{GeluApproximate, gelu::Gelu};
use ulpian_spec::{DType, HostTensor, TensorType};

use super::Candidate;
use super::chunks::{self, CHUNK, Settled, Sign};
use super::decide::Narrow;
use super::matmul::{as_f32, with_narrow};
use crate::elementary::exp::{self, exp};
use crate::elementary::normal_tail::{self, TOP, normal_tail};
use crate::round::round_interval;

/// 2^-53.
const UNIT: f64 = f64::EPSILON / 2.0;

/// Where the tanh form's H is cut: H(13) < 2^-252.
const TANH_TOP: f64 = 13.0;

pub(super) fn gelu(op: &Gelu<&HostTensor>, ty: &TensorType) -> Option<Candidate> {
    if op.input.dtype() != ty.dtype {
        return None;
    }
    let x = as_f32(op.input)?;
    with_narrow!(ty.dtype, evaluate(&x, op.approximate, ty))
}

fn evaluate<T: Narrow>(x: &[f32], form: GeluApproximate, ty: &TensorType) -> Candidate {
    let format = ty.dtype.float_format().expect("a float dtype");
    chunks::evaluate::<T, ()>(
        x,
        CHUNK,
        ty,
        Sign::Any,
        #[inline(always)]
        |_, x, center, radius| match form {
            GeluApproximate::None => fill::<Erf>(x, center, radius),
            GeluApproximate::Tanh => fill::<Tanh>(x, center, radius),
        },
        |(), _, _, x| special(x, form, format),
    )
}

#[inline(always)]
fn fill<F: Tail>(x: &[f32], center: &mut [f64], radius: &mut [f64]) {
    for ((&x, c), r) in x.iter().zip(center).zip(radius) {
        (*c, *r) = element::<F>(f64::from(x));
    }
}

/// One of the two forms.
pub(crate) trait Tail {
    /// Beyond this H is cut.
    const TOP: f64;

    /// H(a) for a >= 0 of at most 26 bits, and a bound of its relative error. Of any other a it is 0.51 u a^2 more in the one form,
    /// u s(a) in the other: a^2 is rounded.
    fn tail(a: f64) -> (f64, f64);
}

pub(crate) struct Erf;

pub(crate) struct Tanh;

/// Centre and radius; the radius is infinite or NaN where this does not apply.
#[inline(always)]
fn element<F: Tail>(x: f64) -> (f64, f64) {
    let (h, relative) = F::tail(x.abs());
    let positive = if x > 0.0 { x } else { 0.0 };
    let y = positive - h;
    let r = (h * relative + positive * UNIT) * (1.0 + 1e-6);
    // NaN for NaN and infinities.
    let r = r + x * 0.0;
    (y, if x.to_bits() == 1 << 63 { f64::INFINITY } else { r })
}

impl Tail for Erf {
    const TOP: f64 = TOP;

    #[inline(always)]
    fn tail(a: f64) -> (f64, f64) {
        let cut = if a < TOP { a } else { TOP };
        (cut * normal_tail(cut), if a > TOP { 2.0 } else { normal_tail::RELATIVE + UNIT })
    }
}

impl Tail for Tanh {
    const TOP: f64 = TANH_TOP;

    #[inline(always)]
    fn tail(a: f64) -> (f64, f64) {
        /// 2 sqrt(2 / pi) = 1.5957691216057308, rounded.
        const SLOPE: f64 = f64::from_bits(0x3ff9_8845_33d4_3651);
        let cut = if a < TANH_TOP { a } else { TANH_TOP };
        let s = SLOPE * cut * (1.0 + 0.044715 * (cut * cut));
        let e = exp(-s);
        let h = cut * (e / (1.0 + e));
        (h, if a > TANH_TOP { 2.0 } else { exp::RELATIVE + UNIT * (4.0 + 8.0 * s) })
    }
}

/// Centre, radius and value where they need other means.
fn special(x: f32, form: GeluApproximate, format: FloatFormat) -> Option<Settled> {
    let wide = f64::from(x);
    if x == 0.0 {
        return Some((0.0, 0.0, x));
    }
    // 2^-60
    if wide.abs() < f64::from_bits((1023 - 60) << 52) {
        // 1 / sqrt(2 pi) to 2^-50, and x^2 within 2^-298 and 2^-120.
        let second = wide * wide * f64::from_bits(0x3fd9_8845_33d4_3651);
        let radius = second * f64::from_bits((1023 - 40) << 52);
        let value = round_interval(format, wide / 2.0, second, radius)?;
        return Some((wide / 2.0, second * 1.001, value as f32));
    }
    let (top, tail) = match form {
        GeluApproximate::None => (TOP, Erf::tail(TOP).0),
        GeluApproximate::Tanh => (TANH_TOP, Tanh::tail(TANH_TOP).0),
    };
    // -H(top) is nearer to zero than half of the least number of every narrow dtype, 2^-150.
    (wide < -top && wide.is_finite()).then_some((-tail / 2.0, tail / 2.0 * 1.001, -0.0))
}

#[cfg(test)]
mod tests {
    use ulpian_spec::Op;

    use super::super::tests::{KINDS, Random, all_patterns, assert_agrees, tensor};
    use super::*;

    const FORMS: [GeluApproximate; 2] = [GeluApproximate::None, GeluApproximate::Tanh];

    #[test]
    fn every_float16_and_bfloat16() {
        for dtype in [DType::F16, DType::BF16] {
            let x = all_patterns(dtype);
            for approximate in FORMS {
                let op = Op::Gelu(Gelu { input: &x, approximate });
                let pending = assert_agrees(&op, &[x.tensor_type()]);
                // NaN and infinities.
                let special = x.to_f64_vec().iter().filter(|x| !x.is_finite()).count();
                assert_eq!(pending, special, "{dtype} {approximate:?}");
            }
        }
    }

    #[test]
    fn float32_of_every_kind() {
        let mut random = Random(0x5151_7777_0001);
        for approximate in FORMS {
            let mut pending = 0;
            for kind in KINDS {
                let x = tensor(&mut random, DType::F32, &[4000], kind);
                pending += assert_agrees(&Op::Gelu(Gelu { input: &x, approximate }), &[x.tensor_type()]);
            }
            let mut edges: Vec<f32> = (0..8000).map(|i| -16.0 + i as f32 * 0.004).collect();
            edges.extend([0.0, -0.0, 1e-45, -1e-45, 3e-45, -3e-45, 1e-38, -1e-38, 3e38, -3e38, -15.0, -13.0]);
            let x = HostTensor::f32(&[edges.len()], &edges);
            pending += assert_agrees(&Op::Gelu(Gelu { input: &x, approximate }), &[x.tensor_type()]);
            assert!(pending <= 1, "{pending}");
        }
    }
}
