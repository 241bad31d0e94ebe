//! mul: input * other.
//!
//! Radii: |x| ry + rx |y| + rx ry and the product's rounding, which is 0 for two float64. The sign of an exact zero is IEEE's;
//! where the other factor's ball does not tell its sign, the product stays unknown.

use ulpian_spec::ops::mul::Mul;

use super::add::pointwise;
use super::ball::Ball;
use super::tensor::Balls;

pub(super) fn evaluate(args: &Mul<&Balls>, shape: &[usize]) -> Balls {
    pointwise(
        args.input,
        &args.other,
        shape,
        #[inline(always)]
        |x, y| {
            let product = x.mul(y);
            if product.is_zero() && !(tells_sign(x) && tells_sign(y)) { Ball::UNKNOWN } else { product }
        },
    )
}

#[inline(always)]
fn tells_sign(x: Ball) -> bool {
    x.is_zero() || x.mignitude() > 0.0
}
