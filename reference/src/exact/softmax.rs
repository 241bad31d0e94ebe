//! softmax: exp(x_i) / sum_j exp(x_j) along one dimension, computed as exp(x_i - m) / sum_j exp(x_j - m) with an exact m near the
//! maximum; the input converted to `dtype` exactly.
//!
//! Error: terms below 2^-(prec + 64) of the largest are enclosed by (0, that bound) without being computed.
//!
//! Special values, those of exp(x - max) / sum: -inf gives +0 beside a finite maximum; a row with NaN, with +inf, or of -inf
//! alone is NaN throughout. Where all numbers but -inf are equal the result 1/n is exact. At rational inputs that are not all
//! equal the result is irrational (Lindemann-Weierstrass: distinct exponentials of rationals are linearly independent over the
//! rationals), so it is no tie.

use dashu_base::Sign;
use ulpian_spec::ops::softmax::Softmax;

use super::ball::Ball;
use super::form::Function;
use super::ratio::Ratio;
use super::sum::Sum;
use super::{Context, Source, Value, functions, index};

pub(super) fn element(args: &Softmax<Source<'_>>, at: usize, cx: &Context<'_>) -> Value {
    let shape = cx.shape(&args.input);
    let (length, stride) = if shape.is_empty() {
        (1, 1)
    } else {
        let axis = index::axis(args.dim, shape.len());
        (shape[axis], shape[axis + 1..].iter().product())
    };
    let (outer, inner) = (at / (length * stride), at % stride);
    let first = outer * length * stride + inner;
    let row = outer * stride + inner;
    let shared = cx.shared(row, || {
        let values = (0..length).map(|k| cx.get(&args.input, first + k * stride));
        let reference = reference(values.clone(), cx.prec);
        let mut sum = Sum::new(cx.prec);
        values.for_each(|x| sum.push(&exp_difference(&x, &reference, cx.prec, true)));
        vec![reference, sum.finish()]
    });
    let [reference, sum] = &*shared else {
        return Value::Unknown;
    };
    exp_difference(&cx.get(&args.input, at), reference, cx.prec, false).div(sum, cx.prec)
}

/// NaN where the row is NaN throughout; otherwise an exact number (or zero) near its maximum.
fn reference(values: impl Iterator<Item = Value>, prec: usize) -> Value {
    let mut best = Value::Infinite(Sign::Negative);
    for v in values {
        match v {
            Value::Nan | Value::Infinite(Sign::Positive) => return Value::Nan,
            Value::Unknown => best = Value::Unknown,
            Value::Infinite(Sign::Negative) => {}
            // An expression cancels where it is subtracted from its like.
            Value::Ball(_, Some(_)) => best = larger(best, v, prec),
            Value::Ball(b, None) => {
                // The midpoint stands for the ball; any exact number will do as a reference.
                let mid = Ratio::dyadic(b.mid, b.exp).map_or(Value::ZERO, Value::Exact);
                best = larger(best, mid, prec);
            }
            v => best = larger(best, v, prec),
        }
    }
    if matches!(best, Value::Infinite(_)) { Value::Nan } else { best }
}

fn larger(a: Value, b: Value, prec: usize) -> Value {
    if a == Value::Unknown || b.compare(&a, prec) != Some(std::cmp::Ordering::Greater) { a } else { b }
}

/// exp(x - reference); in the `rough` form a term that is negligible beside 1 may be enclosed by (0, bound).
fn exp_difference(x: &Value, reference: &Value, prec: usize, rough: bool) -> Value {
    match x.sub(reference, prec + 64) {
        Value::Zero { .. } => Value::from_int(1),
        Value::Infinite(Sign::Negative) => Value::ZERO,
        difference => match difference.to_ball(prec + 64) {
            Some(d) => {
                let bits = (prec + 64) as i64;
                // exp(-t) < 2^-t.
                let bound = Value::from_int(-bits);
                let negligible =
                    Value::enclosed(d.clone()).compare(&bound, 64) == Some(std::cmp::Ordering::Less);
                if rough && negligible {
                    return Value::enclosed(Ball::tiny(Sign::Positive, -bits));
                }
                functions::exp(&d, prec)
                    .map_or(Value::Unknown, |y| Value::real(y, difference.applied(Function::Exp, prec)))
            }
            None if difference.is_nan() => Value::Nan,
            None => Value::Unknown,
        },
    }
}
