//! add: input + alpha other.
//!
//! Radii: those of the product and the sum ([`Ball`]); exact where both terms are float64 and the sum is a double-double, which it
//! always is. Special values are unknown here; the sign of an exact zero is IEEE's.

use ulpian_spec::ops::add::Add;
use ulpian_spec::ops::{Scalar, TensorOrScalar};

use super::ball::Ball;
use super::broadcast::Broadcast;
use super::tensor::Balls;
use crate::dd::Dd;

pub(super) fn evaluate(args: &Add<&Balls>, shape: &[usize]) -> Balls {
    let alpha = scalar(args.alpha);
    let unit = alpha.radius == 0.0 && alpha.center == Dd::new(1.0);
    pointwise(
        args.input,
        &args.other,
        shape,
        #[inline(always)]
        |x, y| if unit { x.add(y) } else { x.add(alpha.mul(y)) },
    )
}

/// A Python scalar, exactly.
pub(super) fn scalar(value: Scalar) -> Ball {
    match value {
        Scalar::Int(i) => {
            let hi = i as f64;
            Ball::new(Dd { hi, lo: (i128::from(i) - hi as i128) as f64 }, 0.0)
        }
        other => Ball::exact(other.as_f64()),
    }
}

/// `f` of the broadcast operands, elementwise.
pub(super) fn pointwise(
    input: &Balls,
    other: &TensorOrScalar<&Balls>,
    shape: &[usize],
    f: impl Fn(Ball, Ball) -> Ball + Sync,
) -> Balls {
    let of_input = Broadcast::new(shape, input.shape());
    match other {
        TensorOrScalar::Scalar(s) => {
            let y = scalar(*s);
            Balls::generate(
                shape,
                #[inline(always)]
                |i| f(input.get(of_input.index(i)), y),
            )
        }
        TensorOrScalar::Tensor(other) => {
            let of_other = Broadcast::new(shape, other.shape());
            Balls::generate(
                shape,
                #[inline(always)]
                |i| f(input.get(of_input.index(i)), other.get(of_other.index(i))),
            )
        }
    }
}
