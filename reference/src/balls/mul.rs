//! mul: input * other.
//!
//! Radii: |x| ry + rx |y| + rx ry and the product's rounding, which is 0 for two float64. The sign of an exact zero is IEEE's.

use ulpian_spec::ops::mul::Mul;

use super::add::pointwise;
use super::tensor::Balls;

pub(super) fn evaluate(args: &Mul<&Balls>, shape: &[usize]) -> Balls {
    pointwise(
        args.input,
        &args.other,
        shape,
        #[inline(always)]
        |x, y| x.mul(y),
    )
}
