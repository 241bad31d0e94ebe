//! What layer_norm and batch_norm share: mean and variance, and (x - mean) / sqrt(var + eps) * weight + bias.
//!
//! Method: of exact values the variance is (sum x^2 - (sum x)^2 / n) / n, exactly; otherwise sum (x - mean)^2 / n. sqrt(var +
//! eps) is rational only for a square of a rational, and then exact; otherwise a result with x other than the mean and a weight
//! other than zero is irrational, so it is no tie.
//!
//! Special values: a NaN or an infinity among the values makes the variance NaN (infinity - infinity). With var + eps = 0 the
//! quotient is that by +0, below zero it is NaN. A zero result has a free sign.

use super::Value;
use super::sum::Sum;

/// Mean and biased variance of `count` values, and the unbiased variance.
pub(super) fn statistics(
    values: impl Iterator<Item = Value> + Clone,
    count: usize,
    prec: usize,
) -> [Value; 3] {
    let n = Value::from_int(count as i64);
    let (mut sum, mut squares) = (Sum::new(prec), Sum::new(prec));
    let mut exact = true;
    for v in values.clone() {
        sum.push(&v);
        exact &= matches!(v, Value::Exact(_) | Value::Zero { .. });
        if exact {
            squares.push_product(&v, &v);
        }
    }
    let total = sum.finish();
    let mean = total.div(&n, prec);
    let mut deviation = Value::Unknown;
    if exact {
        deviation = squares.finish().sub(&total.mul(&mean, prec), prec);
    }
    // A total or a sum of squares too large to be kept exactly would cancel.
    if !matches!(deviation, Value::Exact(_) | Value::Zero { .. }) {
        let mut sum = Sum::new(prec);
        for v in values {
            let d = v.sub(&mean, prec);
            sum.push_product(&d, &d);
        }
        deviation = sum.finish();
    }
    let unbiased = deviation.div(&Value::from_int(count as i64 - 1), prec);
    [mean, deviation.div(&n, prec), unbiased]
}

/// sqrt(var + eps), a zero as +0.
pub(super) fn deviation(var: &Value, eps: f64, prec: usize) -> Value {
    match var.add(&Value::from_f64(eps), prec).sqrt(prec) {
        Value::Zero { .. } => Value::ZERO,
        root => root,
    }
}

/// (x - mean) / deviation * weight + bias.
pub(super) fn normalized(
    x: &Value,
    [mean, deviation]: [&Value; 2],
    weight: Option<Value>,
    bias: Option<Value>,
    prec: usize,
) -> Value {
    let mut y = x.sub(mean, prec).div(deviation, prec);
    if let Some(w) = weight {
        y = y.mul(&w, prec);
    }
    if let Some(b) = bias {
        y = y.add(&b, prec);
    }
    match y {
        Value::Zero { sign, .. } => Value::Zero { sign, free: true },
        y => y,
    }
}
