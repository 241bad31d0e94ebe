//! relu: max(x, 0).
//!
//! Radii: a ball of one sign stays or becomes 0; one that holds both keeps the hull [0, centre + radius]. Nothing is rounded but
//! that hull's centre. Minus infinity becomes 0; other unknown elements (NaN among them) stay unknown.

use ulpian_spec::ops::relu::Relu;

use super::ball::{Ball, UP};
use super::tensor::Balls;
use crate::dd::Dd;

pub(super) fn evaluate(args: &Relu<&Balls>) -> Balls {
    Balls::generate(
        args.input.shape(),
        #[inline(always)]
        |i| if args.input.is_minus_infinity(i) { Ball::ZERO } else { relu(args.input.get(i)) },
    )
}

#[inline(always)]
fn relu(x: Ball) -> Ball {
    let (size, spread) = (x.center.hi, x.radius * UP);
    if size.abs() * (2.0 - UP) >= spread {
        return if size < 0.0 { Ball::ZERO } else { x };
    }
    if !x.is_known() {
        return Ball::UNKNOWN;
    }
    // Moved up, for half of the least subnormal number is none.
    let half = ((size + spread).max(0.0) / 2.0 * UP).next_up();
    Ball { center: Dd::new(half), radius: half }.checked()
}
