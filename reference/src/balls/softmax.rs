//! softmax: exp(x_i) / sum of exp(x_j) along a dimension.
//!
//! Formula: e_j = exp(x_j - m) with m the greatest centre (any number is right); y_i = e_i / sum of e_j.
//! Radii: a radius r of x widens e by e (r + r^2), and so y_i by about y_i (r_i + sum of p_j r_j); exp's and the sum's rounding
//! are added step by step.
//! Special values: an element known to be minus infinity has e = 0 while the lane has a finite one; any other unknown element
//! leaves its lane unknown. Where x_j - m < -650 the ball is [0, 2^-928], which every format but float64 rounds to +0.

use ulpian_spec::ops::softmax::Softmax;

use super::ball::Ball;
use super::exp::{TABLE, exp_ball};
use super::tensor::{Balls, lanes};
use crate::dd::Dd;
use crate::round::exp2i;

pub(super) fn evaluate(args: &Softmax<&Balls>) -> Balls {
    let x = args.input;
    let shape = x.shape();
    let dim = if args.dim < 0 { args.dim + shape.len().max(1) as i64 } else { args.dim } as usize;
    let size = shape.get(dim).copied().unwrap_or(1);
    let inner: usize = shape.iter().skip(dim + 1).product();
    if x.len() == 0 {
        return x.clone();
    }
    let count = x.len() / size;
    let first = |lane: usize| lane / inner * size * inner + lane % inner;
    let lane_of = |i: usize| i / (size * inner) * inner + i % inner;
    let maxima = lanes(
        count,
        #[inline(always)]
        |lane| {
            let centres = (0..size).map(|j| x.get(first(lane) + j * inner)).filter(|ball| ball.is_known());
            centres.map(|ball| ball.center).reduce(|a, b| if a.lt(b) { b } else { a })
        },
    );
    let table = &*TABLE;
    let powers = Balls::generate(
        shape,
        #[inline(always)]
        |i| {
            let Some(greatest) = maxima[lane_of(i)] else { return Ball::UNKNOWN };
            if x.is_minus_infinity(i) {
                return Ball::ZERO;
            }
            let shifted = x.get(i).sub(Ball { center: greatest, radius: 0.0 });
            if shifted.is_known() && shifted.center.hi < -650.0 && shifted.radius < 1.0 {
                // exp(-649) < 2^-930
                Ball { center: Dd::new(exp2i(-931)), radius: exp2i(-931) }
            } else {
                exp_ball(table, shifted)
            }
        },
    );
    let sums = lanes(
        count,
        #[inline(always)]
        |lane| (0..size).fold(Ball::ZERO, |sum, j| sum.add(powers.get(first(lane) + j * inner))),
    );
    Balls::generate(
        shape,
        #[inline(always)]
        |i| {
            let (power, sum) = (powers.get(i), sums[lane_of(i)]);
            if power.center.hi == exp2i(-931) && sum.is_known() {
                // The sum holds exp of the greatest centre's ball, at least exp(-1) > 1/4.
                Ball { center: Dd::new(exp2i(-929)), radius: exp2i(-929) }
            } else {
                power.div(sum)
            }
        },
    )
}
