//! Sums of many values and of products of values.
//!
//! Dyadic terms are gathered in one integer, other fractions in a fraction and balls in a ball, so that a sum of exact
//! terms is exact whatever their order. IEEE's rules hold for special values: NaN wins, and infinities of both signs are
//! NaN. The zero of a sum is [`Value::FREE_ZERO`].

use dashu_base::{BitTest, Sign};
use dashu_int::IBig;

use super::ball::Ball;
use super::form::Form;
use super::ratio::{EXACT_BITS, Ratio};
use super::value::Value;

/// A running sum.
pub(super) struct Sum {
    prec: usize,
    dyadic: IBig,
    exp: i64,
    fraction: Option<Ratio>,
    ball: Option<Ball>,
    /// The sum of the balls' expressions, where all of them are known.
    form: Option<Form>,
    nan: bool,
    unknown: bool,
    infinite: [bool; 2],
}

impl Sum {
    pub(super) fn new(prec: usize) -> Sum {
        Sum {
            prec,
            dyadic: IBig::ZERO,
            exp: 0,
            fraction: None,
            ball: None,
            form: Some(Form::ZERO),
            nan: false,
            unknown: false,
            infinite: [false; 2],
        }
    }

    pub(super) fn push(&mut self, x: &Value) {
        match x {
            Value::Nan => self.nan = true,
            Value::Unknown => self.unknown = true,
            Value::Infinite(s) => self.infinite[usize::from(*s == Sign::Negative)] = true,
            Value::Zero { .. } => {}
            Value::Exact(r) if r.is_dyadic() => self.push_dyadic(r.num.clone(), r.exp),
            Value::Exact(r) => match &self.fraction {
                None => self.fraction = Some(r.clone()),
                Some(f) => match f.add(r) {
                    Ok(sum) => self.fraction = sum,
                    Err(_) => self.push_ball(&Ball::from_ratio(r, self.prec), None),
                },
            },
            Value::Ball(b, form) => self.push_ball(b, form.as_deref()),
        }
    }

    pub(super) fn push_product(&mut self, a: &Value, b: &Value) {
        match (a, b) {
            (Value::Exact(a), Value::Exact(b)) if a.is_dyadic() && b.is_dyadic() => {
                if a.bits() + b.bits() <= EXACT_BITS {
                    self.push_dyadic(&a.num * &b.num, a.exp + b.exp);
                } else {
                    self.push_ball(
                        &Ball::from_ratio(a, self.prec).mul(&Ball::from_ratio(b, self.prec), self.prec),
                        None,
                    );
                }
            }
            _ => self.push(&a.mul(b, self.prec)),
        }
    }

    fn push_dyadic(&mut self, num: IBig, exp: i64) {
        if self.dyadic.is_zero() {
            (self.dyadic, self.exp) = (num, exp);
            return;
        }
        let gap = exp - self.exp;
        if gap.unsigned_abs() as usize + self.dyadic.bit_len() + num.bit_len() > EXACT_BITS {
            self.push_ball(&Ball::new(num, exp, super::ball::Mag::ZERO).rounded(self.prec), None);
        } else if gap >= 0 {
            self.dyadic += num << gap as usize;
        } else {
            self.dyadic <<= gap.unsigned_abs() as usize;
            self.dyadic += num;
            self.exp = exp;
        }
    }

    fn push_ball(&mut self, b: &Ball, form: Option<&Form>) {
        self.form = match (self.form.take(), form) {
            (Some(sum), Some(form)) => sum.add(form),
            _ => None,
        };
        self.ball = Some(match &self.ball {
            None => b.clone(),
            Some(sum) => sum.add(b, self.prec),
        });
    }

    pub(super) fn finish(self) -> Value {
        let prec = self.prec;
        if self.nan || self.infinite == [true; 2] {
            return Value::Nan;
        }
        if self.unknown {
            return Value::Unknown;
        }
        match self.infinite {
            [true, false] => return Value::Infinite(Sign::Positive),
            [false, true] => return Value::Infinite(Sign::Negative),
            _ => {}
        }
        let mut total = Value::from_ratio(Ratio::dyadic(self.dyadic, self.exp));
        if let Some(f) = self.fraction {
            total = match total.add(&Value::Exact(f), prec) {
                Value::Zero { .. } => Value::FREE_ZERO,
                sum => sum,
            };
        }
        match self.ball {
            Some(b) => match total.add(&Value::real(b, self.form), prec) {
                Value::Zero { .. } => Value::FREE_ZERO,
                sum => sum,
            },
            None => total,
        }
    }
}
