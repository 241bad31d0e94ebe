//! The one table of hypotheses.

use ulpian_spec::OpKind::{
    self, AdaptiveAvgPool2d, Add, BatchNorm, Conv2d, Div, Gelu, LayerNorm, Linear, Matmul, Mul, Softmax,
};

use super::Blame::{Framework, Hardware, Nobody};
use super::{
    Contraction, Hypothesis, accumulate, adaptive_avg_pool2d, batch_norm, elementwise, gelu, layer_norm,
    softmax, tensor_core,
};

const DOTS: &[OpKind] = &[Matmul, Linear, Conv2d];

macro_rules! whole {
    ($name:literal, $blame:expr, $ops:expr, $run:expr, $what:literal) => {
        Hypothesis { name: $name, what: $what, blame: $blame, ops: $ops, run: $run, sample: None }
    };
}

macro_rules! dots {
    ($name:literal, $blame:expr, $($path:ident)::+, $what:literal) => {
        Hypothesis {
            name: $name,
            what: $what,
            blame: $blame,
            ops: DOTS,
            run: $($path)::+::run,
            sample: Some($($path)::+::sample),
        }
    };
    (bias first, $name:literal, $blame:expr, $($path:ident)::+, $what:literal) => {
        Hypothesis {
            name: $name,
            what: $what,
            blame: $blame,
            ops: DOTS,
            run: $($path)::+::run_bias_first,
            sample: Some($($path)::+::sample_bias_first),
        }
    };
}

#[rustfmt::skip]
pub(super) const HYPOTHESES: &[Hypothesis] = &[
    // Sound: only the order or the number of roundings differs.
    dots!("sequential-fma", Nobody, accumulate::sequential_fma, "a float32 FMA chain in ascending order"),
    dots!(bias first, "sequential-fma-bias-first", Nobody, accumulate::sequential_fma, "a float32 FMA chain that starts from the bias"),
    dots!("multiply-then-add", Nobody, accumulate::multiply_then_add, "float32 products, each rounded and then added in ascending order"),
    dots!(bias first, "multiply-then-add-bias-first", Nobody, accumulate::multiply_then_add, "rounded float32 products added to the bias in ascending order"),
    dots!("lanes-8-fma", Nobody, accumulate::lanes_8_fma, "8 float32 FMA lanes joined by halves"),
    dots!("lanes-16-fma", Nobody, accumulate::lanes_16_fma, "16 float32 FMA lanes joined by halves"),
    dots!("pairwise-sum", Nobody, accumulate::pairwise_sum, "a balanced tree over rounded float32 products"),
    dots!("float64-accumulator", Nobody, accumulate::float64_accumulator, "exact products summed in float64"),
    whole!("add-alpha", Nobody, &[Add], elementwise::add_alpha::<false>, "a float32 product, rounded and then added"),
    whole!("add-alpha-fma", Nobody, &[Add], elementwise::add_alpha::<true>, "a float32 FMA of alpha and the other operand"),
    whole!("sequential-mean", Nobody, &[AdaptiveAvgPool2d], adaptive_avg_pool2d::sequential_mean, "a sequential float32 sum divided by the window's height and width"),
    whole!("welford-8", Nobody, &[LayerNorm], layer_norm::welford::<8, false>, "Welford's recurrence in 8 float32 lanes"),
    whole!("welford-8-fma", Nobody, &[LayerNorm], layer_norm::welford::<8, true>, "Welford's recurrence in 8 float32 FMA lanes"),
    whole!("welford-16-fma", Nobody, &[LayerNorm], layer_norm::welford::<16, true>, "Welford's recurrence in 16 float32 FMA lanes"),
    whole!("two-pass-variance", Nobody, &[LayerNorm], layer_norm::two_pass, "a two-pass float32 variance"),
    whole!("subtract-then-scale", Nobody, &[BatchNorm], batch_norm::subtract_then_scale, "subtracting the mean before scaling"),
    whole!("shifted-softmax", Nobody, &[Softmax], softmax::shifted, "exp of the shifted inputs over their float32 sum"),

    // The framework's formulas and defaults.
    whole!("fold-scale-shift", Framework, &[BatchNorm], batch_norm::fold_scale_shift::<false>, "scale and shift folded into x * alpha + beta"),
    whole!("fold-scale-shift-fma", Framework, &[BatchNorm], batch_norm::fold_scale_shift::<true>, "scale and shift folded into fma(x, alpha, beta)"),
    whole!("one-pass-variance", Framework, &[BatchNorm], batch_norm::one_pass_variance, "a variance computed as E[x^2] - E[x]^2"),
    whole!("one-pass-variance-rows", Framework, &[LayerNorm], layer_norm::one_pass_variance, "a variance computed as E[x^2] - E[x]^2"),
    whole!("squares-overflow", Framework, &[LayerNorm], layer_norm::squares_overflow::<8, false>, "squared deviations that overflow float32"),
    whole!("squares-overflow-fma", Framework, &[LayerNorm], layer_norm::squares_overflow::<8, true>, "squared deviations that overflow float32"),
    whole!("squares-overflow-16-fma", Framework, &[LayerNorm], layer_norm::squares_overflow::<16, true>, "squared deviations that overflow float32"),
    whole!("one-plus-erf", Framework, &[Gelu], gelu::one_plus_erf, "0.5 x (1 + erf(x / sqrt 2)) in float32"),
    whole!("one-plus-erf-fma", Framework, &[Gelu], gelu::one_plus_erf_fma, "0.5 x + 0.5 x erf(x / sqrt 2) in float32"),
    whole!("one-plus-erf-vector-8", Framework, &[Gelu], gelu::one_plus_erf_vector::<16>, "0.5 x (1 + erf(x / sqrt 2)) in vectors of 8 float32, erf by a polynomial"),
    whole!("one-plus-erf-vector-16", Framework, &[Gelu], gelu::one_plus_erf_vector::<32>, "0.5 x (1 + erf(x / sqrt 2)) in vectors of 16 float32, erf by a polynomial"),
    whole!("one-plus-erf-polynomial", Framework, &[Gelu], gelu::one_plus_erf_polynomial::<false>, "0.5 x (1 + erf(x / sqrt 2)) in float32, erf by a polynomial"),
    whole!("one-plus-erf-polynomial-fma", Framework, &[Gelu], gelu::one_plus_erf_polynomial::<true>, "0.5 x + 0.5 x erf(x / sqrt 2) in float32, erf by a polynomial"),
    whole!("one-plus-tanh", Framework, &[Gelu], gelu::one_plus_tanh::<false>, "0.5 x (1 + tanh) in float32"),
    whole!("one-plus-tanh-fma", Framework, &[Gelu], gelu::one_plus_tanh::<true>, "0.5 x (1 + tanh) in float32 with a contracted argument"),
    whole!("reciprocal-multiply", Framework, &[Div], elementwise::reciprocal_multiply, "a product with the rounded reciprocal of the divisor"),
    whole!("product-16bit", Framework, &[Add], elementwise::product_16bit, "a product with alpha that is rounded to 16 bits before the sum"),
    whole!("product-16bit-tail", Framework, &[Add], elementwise::product_16bit_tail, "a product with alpha that is rounded to 16 bits before the sum in the last elements"),
    whole!("sum-then-divide", Framework, &[AdaptiveAvgPool2d], adaptive_avg_pool2d::sum_then_divide, "a sum that overflows before it is divided"),
    whole!("unshifted-softmax", Framework, &[Softmax], softmax::unshifted, "exp of the inputs without subtracting their maximum"),

    // The arithmetic of the hardware.
    dots!("tf32-rna", Hardware, accumulate::tf32_rna, "TF32 operands rounded to nearest, ties away, with a float32 FMA chain"),
    dots!("tf32-rne", Hardware, accumulate::tf32_rne, "TF32 operands rounded to nearest, ties to even, with a float32 FMA chain"),
    dots!("tf32-rz", Hardware, accumulate::tf32_rz, "truncated TF32 operands with a float32 FMA chain"),
    dots!("tf32-exact-rna", Hardware, accumulate::tf32_exact_rna, "TF32 operands rounded to nearest, ties away, summed exactly"),
    dots!("tf32-exact-rne", Hardware, accumulate::tf32_exact_rne, "TF32 operands rounded to nearest, ties to even, summed exactly"),
    dots!("tf32-exact-rz", Hardware, accumulate::tf32_exact_rz, "truncated TF32 operands summed exactly"),
    dots!("accumulator-16bit", Hardware, accumulate::accumulator_16bit, "an accumulator of 16 bits"),
    dots!("tensor-core-volta", Hardware, tensor_core::volta, "a Volta tensor core's truncating sums"),
    dots!("tensor-core-turing", Hardware, tensor_core::turing, "a Turing tensor core's truncating sums"),
    dots!("tensor-core-ampere", Hardware, tensor_core::ampere, "an Ampere tensor core's truncating sums"),
    dots!("tensor-core-hopper", Hardware, tensor_core::hopper, "a Hopper tensor core's truncating sums"),
    whole!("flush-subnormals", Hardware, &[Add, Mul, Div], elementwise::flush_subnormals::<false>, "results below the least normal number flushed to 0"),
    whole!("flush-subnormal-operands", Hardware, &[Add, Mul, Div], elementwise::flush_subnormals::<true>, "operands and results below the least normal number flushed to 0"),
];

pub(super) const CONTRACTIONS: &[Contraction] = &[Contraction {
    name: "fma-contraction",
    what: "a product and a sum contracted into one operation, the product not rounded between",
    blame: Hardware,
    run: elementwise::contract,
}];
