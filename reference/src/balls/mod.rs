//! Chains in double-double with a float64 radius.
//!
//! A chain's intermediate results are real numbers; here each is a ball ([`ball::Ball`]): a double-double centre, and a
//! float64 radius that holds everything that was lost so far. Inputs are exact, so a radius starts at 0. Each op has a file
//! with its formula, how radii go through it, and the bound of its own rounding. At about 2^-100 a step, seven ops and an
//! amplification of 1e5 leave more than 40 bits beyond float32's 24.
//!
//! Where only results of 32 or 16 bits are measured, sums of products and gelu may be wider ([`Width::Wide`]), in a fraction of the time.
//!
//! Where no finite ball can be given (NaN, infinities, overflow, division by a ball that holds zero, a choice that the balls
//! leave open) the element is unknown, and so is what depends on it; the exact evaluator decides such elements, and the
//! driver puts its answer back ([`Balls::set`]), so that an unknown element does not spread.
//!
//! Results do not depend on the number of threads nor on the instruction set: every element has a fixed sequence of operations,
//! and fused multiply-adds are fused everywhere.

mod ball;
mod broadcast;
mod constants;
mod dot;
mod exp;
mod normal;
mod tensor;
mod wide;

mod adaptive_avg_pool2d;
mod add;
mod batch_norm;
mod conv2d;
mod div;
mod dropout;
mod flatten;
mod gelu;
mod layer_norm;
mod linear;
mod matmul;
mod max_pool2d;
mod mul;
mod relu;
mod softmax;

#[cfg(test)]
mod tests;

use ulpian_spec::{Op, TensorType};

pub(crate) use ball::Ball;
pub(crate) use tensor::Balls;

/// How wide the balls of sums of products and of gelu may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    /// Some 2^-100 of the terms.
    Narrow,
    /// Some 2^-50 of the terms, in a fraction of the time ([`wide`]).
    Wide,
}

/// Balls of every result of `op`, whose inferred types are `types`; `None` where balls cannot say: results of an integer dtype,
/// and dropout in training without a mask (unless p = 1).
pub(crate) fn evaluate(op: &Op<&Balls>, types: &[TensorType], width: Width) -> Option<Vec<Balls>> {
    let shape = &types[0].shape;
    if !types[0].dtype.is_float() {
        return match op {
            Op::Flatten(args) => Some(vec![flatten::evaluate(args, shape)]),
            _ => None,
        };
    }
    Some(match op {
        Op::AdaptiveAvgPool2d(args) => vec![adaptive_avg_pool2d::evaluate(args, shape)],
        Op::Add(args) => vec![add::evaluate(args, shape)],
        Op::BatchNorm(args) => batch_norm::evaluate(args, types.len()),
        Op::Conv2d(args) => vec![conv2d::evaluate(args, shape, width)],
        Op::Div(args) => vec![div::evaluate(args, shape)],
        Op::Dropout(args) => vec![dropout::evaluate(args)?],
        Op::Flatten(args) => vec![flatten::evaluate(args, shape)],
        Op::Gelu(args) => vec![gelu::evaluate(args, width)],
        Op::LayerNorm(args) => vec![layer_norm::evaluate(args)],
        Op::Linear(args) => vec![linear::evaluate(args, shape, width)],
        Op::Matmul(args) => vec![matmul::evaluate(args, shape, width)],
        Op::MaxPool2d(args) => max_pool2d::evaluate(args, shape),
        Op::Mul(args) => vec![mul::evaluate(args, shape)],
        Op::Relu(args) => vec![relu::evaluate(args)],
        Op::Softmax(args) => vec![softmax::evaluate(args)],
    })
}
