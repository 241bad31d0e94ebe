//! Extended real numbers as IEEE 754 knows them: NaN, infinities, signed zeros, and real numbers exact or enclosed.
//!
//! Arithmetic is that of the reals; where an operand or the result is not a real other than zero, IEEE 754's rules for
//! special values hold. A rational number stays exact while its size allows ([`ratio::EXACT_BITS`](super::ratio)), so ties
//! are seen as ties.

use std::cmp::Ordering;
use std::sync::Arc;

use dashu_base::Sign;
use dashu_int::IBig;
use ulpian_spec::ops::Scalar;
use ulpian_spec::{DType, HostTensor, Storage};

use super::ball::{Ball, Mag};
use super::form::{FORM_PRECISION, Form, Function};
use super::ratio::Ratio;

/// A value of an element, at some working precision.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// Not a number.
    Nan,
    /// An infinity.
    Infinite(Sign),
    /// Zero; `free` where IEEE leaves its sign to the order of operations.
    Zero { sign: Sign, free: bool },
    /// A rational number other than zero.
    Exact(Ratio),
    /// A real number within a ball, and its exact expression where one is kept. It may be zero where the ball does not exclude
    /// it.
    Ball(Ball, Option<Arc<Form>>),
    /// Nothing is known at this precision.
    Unknown,
}

use Value::{Exact, Infinite, Nan, Unknown, Zero};

impl Value {
    /// +0.
    pub(super) const ZERO: Value = Zero { sign: Sign::Positive, free: false };
    /// The zero of a sum of several terms.
    pub(super) const FREE_ZERO: Value = Zero { sign: Sign::Positive, free: true };

    pub(super) fn from_f64(x: f64) -> Value {
        let sign = if x.is_sign_negative() { Sign::Negative } else { Sign::Positive };
        if x.is_nan() {
            Nan
        } else if x.is_infinite() {
            Infinite(sign)
        } else {
            Ratio::from_f64(x).map_or(Zero { sign, free: false }, Exact)
        }
    }

    pub(super) fn from_int(n: i64) -> Value {
        Ratio::from_int(n).map_or(Value::ZERO, Exact)
    }

    pub(super) fn from_scalar(s: Scalar) -> Value {
        match s {
            Scalar::Bool(b) => Value::from_int(i64::from(b)),
            Scalar::Int(n) => Value::from_int(n),
            Scalar::Float(x) => Value::from_f64(x),
        }
    }

    /// Element `index` of a tensor, exactly.
    pub(super) fn from_tensor(t: &HostTensor, index: usize) -> Value {
        match t.storage() {
            Storage::F64(v) => Value::from_f64(v[index]),
            Storage::F32(_) | Storage::F16(_) | Storage::BF16(_) => Value::from_f64(t.get_f64(index)),
            _ => Value::from_int(t.get_i64(index).expect("the dtype is no floating-point one")),
        }
    }

    /// The sum: `None` for zero.
    pub(super) fn from_ratio(x: Option<Ratio>) -> Value {
        x.map_or(Value::FREE_ZERO, Exact)
    }

    /// A value that is an exact integer (or zero).
    pub(super) fn as_integer(&self) -> Option<IBig> {
        match self {
            Zero { .. } => Some(IBig::ZERO),
            Exact(r) if r.is_dyadic() && r.exp >= 0 => Some(&r.num << usize::try_from(r.exp).ok()?),
            _ => None,
        }
    }

    /// The exact integer reduced to the dtype: modulo 2^n, or for bool whether it is other than zero.
    pub(super) fn wrapped(self, dtype: DType) -> Value {
        match self.as_integer() {
            Some(n) => Value::from_int(wrap(&n, dtype)),
            None => self,
        }
    }

    /// The sign, where it is known; `None` for NaN and for what may be zero.
    pub(super) fn sign(&self) -> Option<Sign> {
        match self {
            Nan | Unknown => None,
            Infinite(s) | Zero { sign: s, .. } => Some(*s),
            Exact(r) => Some(if r.is_negative() { Sign::Negative } else { Sign::Positive }),
            Value::Ball(b, _) => b.sign(),
        }
    }

    pub(super) fn is_nan(&self) -> bool {
        matches!(self, Nan)
    }

    pub(super) fn is_zero(&self) -> bool {
        matches!(self, Zero { .. })
    }

    /// A real number, zero included, as a ball; `None` for the rest.
    pub(super) fn to_ball(&self, prec: usize) -> Option<Ball> {
        match self {
            Zero { .. } => Some(Ball::new(IBig::ZERO, 0, Mag::ZERO)),
            Exact(r) => Some(Ball::from_ratio(r, prec)),
            Value::Ball(b, _) => Some(b.clone()),
            _ => None,
        }
    }

    pub(super) fn neg(self) -> Value {
        match self {
            Infinite(s) => Infinite(-s),
            Zero { sign, free } => Zero { sign: -sign, free },
            Exact(r) => Exact(r.neg()),
            Value::Ball(b, form) => {
                Value::Ball(b.neg(), form.map(|f| Arc::new(Arc::unwrap_or_clone(f).neg())))
            }
            other => other,
        }
    }

    /// A real number of which a ball is all that is known.
    pub(super) fn enclosed(ball: Ball) -> Value {
        Value::Ball(ball, None)
    }

    /// A real number within the ball, whose expression is this one: exact where that is a rational number.
    pub(super) fn real(ball: Ball, form: Option<Form>) -> Value {
        match form.as_ref().map(Form::as_rational) {
            Some(Some(x)) => x.cloned().map_or(Value::ZERO, Exact),
            _ => Value::Ball(ball, form.map(Arc::new)),
        }
    }

    /// The expression of a real number, where one is kept.
    fn form(&self) -> Option<Form> {
        match self {
            Zero { .. } => Some(Form::ZERO),
            Exact(r) => Some(Form::rational(r.clone())),
            Value::Ball(_, form) => form.as_deref().cloned(),
            _ => None,
        }
    }

    fn combined(&self, other: &Value, by: impl Fn(&Form, &Form) -> Option<Form>) -> Option<Form> {
        by(&self.form()?, &other.form()?)
    }

    /// The expression of a function of this number, where the precision is one at which expressions are kept.
    pub(super) fn applied(&self, function: Function, prec: usize) -> Option<Form> {
        if prec < FORM_PRECISION { None } else { self.form()?.apply(function) }
    }

    /// self + other; x + (-x) = +0, and zeros of like sign keep it.
    pub(super) fn add(&self, other: &Value, prec: usize) -> Value {
        match (self, other) {
            (Nan, _) | (_, Nan) => Nan,
            (Unknown, _) | (_, Unknown) => Unknown,
            (Infinite(s), Infinite(t)) => {
                if s == t {
                    Infinite(*s)
                } else {
                    Nan
                }
            }
            (Infinite(s), _) | (_, Infinite(s)) => Infinite(*s),
            (Zero { sign: s, free: f }, Zero { sign: t, free: g }) => {
                // A zero known to be +0 makes the sum +0.
                let positive = (*s == Sign::Positive && !f) || (*t == Sign::Positive && !g);
                let sign = if *s == Sign::Negative && *t == Sign::Negative { *s } else { Sign::Positive };
                Zero { sign, free: !positive && (*f || *g) }
            }
            (Zero { .. }, x) | (x, Zero { .. }) => x.clone(),
            (Exact(a), Exact(b)) => match a.add(b) {
                Ok(sum) => sum.map_or(Value::ZERO, Exact),
                Err(_) => Value::enclosed(Ball::from_ratio(a, prec).add(&Ball::from_ratio(b, prec), prec)),
            },
            (a, b) => match (a.to_ball(prec), b.to_ball(prec)) {
                (Some(x), Some(y)) => Value::real(x.add(&y, prec), a.combined(b, Form::add)),
                _ => Unknown,
            },
        }
    }

    pub(super) fn sub(&self, other: &Value, prec: usize) -> Value {
        self.add(&other.clone().neg(), prec)
    }

    /// self * other; the sign of a zero is the product of the signs.
    pub(super) fn mul(&self, other: &Value, prec: usize) -> Value {
        let sign = || self.sign().zip(other.sign()).map(|(s, t)| s * t);
        match (self, other) {
            (Nan, _) | (_, Nan) | (Infinite(_), Zero { .. }) | (Zero { .. }, Infinite(_)) => Nan,
            (Unknown, _) | (_, Unknown) => Unknown,
            (Infinite(_), _) | (_, Infinite(_)) => sign().map_or(Unknown, Infinite),
            (Zero { free, .. }, x) | (x, Zero { free, .. }) => {
                let other_free = matches!(x, Zero { free: true, .. });
                match sign() {
                    Some(sign) => Zero { sign, free: *free || other_free },
                    None => Value::FREE_ZERO,
                }
            }
            (Exact(a), Exact(b)) => match a.mul(b) {
                Ok(product) => Exact(product),
                Err(_) => Value::enclosed(Ball::from_ratio(a, prec).mul(&Ball::from_ratio(b, prec), prec)),
            },
            (a, b) => match (a.to_ball(prec), b.to_ball(prec)) {
                (Some(x), Some(y)) => Value::real(x.mul(&y, prec), a.combined(b, Form::mul)),
                _ => Unknown,
            },
        }
    }

    /// self / other; x / 0 is an infinity, 0 / 0 and infinity / infinity are NaN.
    pub(super) fn div(&self, other: &Value, prec: usize) -> Value {
        let sign = || self.sign().zip(other.sign()).map(|(s, t)| s * t);
        match (self, other) {
            (Nan, _) | (_, Nan) | (Infinite(_), Infinite(_)) | (Zero { .. }, Zero { .. }) => Nan,
            (Unknown, _) | (_, Unknown) => Unknown,
            (Infinite(_), _) => sign().map_or(Unknown, Infinite),
            (Zero { free, .. }, Value::Ball(b, _)) => match b.sign() {
                Some(_) => Zero { sign: sign().unwrap_or(Sign::Positive), free: *free },
                None => Unknown,
            },
            (Zero { free, .. }, _) => Zero { sign: sign().unwrap_or(Sign::Positive), free: *free },
            (_, Infinite(_)) => match sign() {
                Some(sign) => Zero { sign, free: false },
                None => Value::FREE_ZERO,
            },
            (_, Zero { .. }) => sign().map_or(Unknown, Infinite),
            (Exact(a), Exact(b)) => match a.div(b) {
                Ok(quotient) => Exact(quotient),
                Err(_) => Ball::from_ratio(a, prec)
                    .div(&Ball::from_ratio(b, prec), prec)
                    .map_or(Unknown, Value::enclosed),
            },
            (a, b) => match (a.to_ball(prec), b.to_ball(prec)) {
                (Some(x), Some(y)) => x.div(&y, prec).map_or(Unknown, |quotient| {
                    Value::real(quotient, a.combined(b, |f, g| f.mul(&g.inverse()?)))
                }),
                _ => Unknown,
            },
        }
    }

    /// The square root; NaN below zero, a zero keeps its sign.
    pub(super) fn sqrt(&self, prec: usize) -> Value {
        match self {
            Nan | Infinite(Sign::Negative) => Nan,
            Zero { .. } | Infinite(Sign::Positive) | Unknown => self.clone(),
            Exact(r) if r.is_negative() => Nan,
            Exact(r) => match r.sqrt() {
                Some(root) => Exact(root),
                None => Ball::from_ratio(r, prec + 8)
                    .sqrt(prec)
                    .map_or(Unknown, |root| Value::real(root, self.applied(Function::Root, prec))),
            },
            Value::Ball(b, _) => match b.sign() {
                Some(Sign::Negative) => Nan,
                _ => {
                    b.sqrt(prec).map_or(Unknown, |root| Value::real(root, self.applied(Function::Root, prec)))
                }
            },
        }
    }

    /// Order of the extended reals (both zeros equal); `None` with NaN, or where the balls overlap.
    pub(super) fn compare(&self, other: &Value, prec: usize) -> Option<Ordering> {
        match (self, other) {
            (Nan | Unknown, _) | (_, Nan | Unknown) => None,
            (Zero { .. }, Zero { .. }) => Some(Ordering::Equal),
            (Infinite(s), Infinite(t)) if s == t => Some(Ordering::Equal),
            (Infinite(Sign::Negative), _) | (_, Infinite(Sign::Positive)) => Some(Ordering::Less),
            (Infinite(Sign::Positive), _) | (_, Infinite(Sign::Negative)) => Some(Ordering::Greater),
            (Exact(a), Exact(b)) => Some(a.cmp(b)),
            (a, b) => match a.sub(b, prec) {
                Zero { .. } => Some(Ordering::Equal),
                difference => difference.sign().map(|s| match s {
                    Sign::Positive => Ordering::Greater,
                    Sign::Negative => Ordering::Less,
                }),
            },
        }
    }
}

/// An integer reduced to the dtype: modulo 2^n into its range, or for bool whether it is other than zero.
pub(super) fn wrap(n: &IBig, dtype: DType) -> i64 {
    if dtype == DType::Bool {
        return i64::from(!n.is_zero());
    }
    let low = n & IBig::from(u64::MAX);
    let low = u64::try_from(&low).expect("64 bits, not negative");
    match dtype {
        DType::I32 => i64::from(low as i32),
        DType::I16 => i64::from(low as i16),
        DType::I8 => i64::from(low as i8),
        DType::U8 => i64::from(low as u8),
        _ => low as i64,
    }
}
