//! Single ops over exact inputs in float64 with a proved radius.
//!
//! A fast path answers element by element: a centre, a radius that contains the error of its own computation, and the
//! correctly rounded value wherever that interval has one rounding. What it cannot decide it lists as pending; what it does
//! not handle at all (a dtype, a promotion, an attribute) it declines with `None`. Both go to the arbitrary-precision
//! evaluator, whose meaning of every op this layer must agree with.
//!
//! Speed comes from autovectorised loops under [`vectorize`]. No result depends on the instruction set in a way
//! that matters: the radii hold for every order of summation and with or without contraction to FMA.

// Loops without a branch let NaN and infinities spread by `x - x` and by comparisons that are false for NaN; and a function
// given by its name instead of a closure is not inlined into a dispatched loop, which then loses its vector instructions.
#![allow(clippy::eq_op, clippy::neg_cmp_op_on_partial_ord, clippy::redundant_closure)]

mod adaptive_avg_pool2d;
mod add;
mod batch_norm;
mod chunks;
pub(crate) mod conv2d;
mod decide;
mod div;
mod expansion;
pub(crate) mod gelu;
pub(crate) mod gemm;
mod layer_norm;
mod matmul;
mod max_pool2d;
mod moments;
mod mul;
mod pointwise;
mod product;
mod product_f64;
mod relu;
mod softmax;
#[cfg(test)]
mod tests;

use ulpian_spec::{HostTensor, Op, Storage, TensorType};

use crate::{Settings, vectorize};

/// One result of a fast path. All vectors are row-major and of the result's size, but `low`, which may be empty (zeros).
///
/// Element i's real value lies within `radius[i]` of `center[i] + low[i]`, and `value[i]` is its correct rounding, for every
/// i that `pending` does not list. At a pending position centre, radius and value mean nothing.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    /// Dtype and shape.
    pub ty: TensorType,
    /// Centres. NaN or an infinity, with radius 0, where the exact result is not a finite real number.
    pub center: Vec<f64>,
    /// The part of the centres below float64's last place; empty where zero throughout.
    pub low: Vec<f64>,
    /// Radii, their own rounding included.
    pub radius: Vec<f64>,
    /// The correctly rounded values, of `ty.dtype`.
    pub value: Storage,
    /// Positions that are not decided, ascending.
    pub pending: Vec<usize>,
}

/// The results of `op`, whose inferred types are `result_types`; `None` where no fast path applies.
pub(crate) fn try_evaluate(
    op: &Op<&HostTensor>,
    result_types: &[TensorType],
    settings: &Settings,
) -> Option<Vec<Candidate>> {
    let _ = settings;
    let ty = result_types.first()?;
    let single = |candidate: Candidate| vec![candidate];
    match op {
        Op::Matmul(op) => matmul::matmul(op, ty).map(single),
        Op::Linear(op) => matmul::linear(op, ty).map(single),
        Op::Conv2d(op) => conv2d::conv2d(op, ty).map(single),
        Op::Gelu(op) => gelu::gelu(op, ty).map(single),
        Op::Softmax(op) => softmax::softmax(op, ty).map(single),
        Op::LayerNorm(op) => layer_norm::layer_norm(op, ty).map(single),
        Op::Add(op) => add::add(op, ty).map(single),
        Op::Mul(op) => mul::mul(op, ty).map(single),
        Op::Div(op) => div::div(op, ty).map(single),
        Op::Relu(op) => relu::relu(op, ty).map(single),
        Op::AdaptiveAvgPool2d(op) => adaptive_avg_pool2d::adaptive_avg_pool2d(op, ty).map(single),
        Op::BatchNorm(op) => batch_norm::batch_norm(op, result_types),
        Op::MaxPool2d(op) => max_pool2d::max_pool2d(op, result_types),
        // What flatten and dropout do not change is copied by the driver; dropout in training is left to the balls.
        Op::Flatten(_) | Op::Dropout(_) => None,
    }
}
