//! What layer_norm and batch_norm share: mean and variance, and (x - mean) / sqrt(var + eps) * weight + bias.
//!
//! Method: of exact values the variance is (n sum x^2 - (sum x)^2) / n^2, exactly; otherwise sum (x - mean)^2 / n. sqrt(var +
//! eps) is rational only for a square of a rational, and then exact; otherwise a result with x other than the mean and a weight
//! other than zero is irrational, so it is no tie.
//!
//! Every element over a tensor is decided: n sum x^2 and (sum x)^2 are dyadic and of less than 2 (2098 + 64) bits, so the variance of any
//! finite numbers stays exact. Either y = q1 + q2 sqrt(r) is rational and a tie is seen, or y is no midpoint m: then
//! |y - m| |q1 - q2 sqrt(r) - m| = |(q1 - m)^2 - q2^2 r| is a rational number other than zero, whose denominator's bits bound |y - m| from
//! below, well above 2^-16384 for the sizes above. (Unless y = 0, which is exact too.)
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
        let scaled = squares.finish().mul(&n, prec).sub(&total.mul(&total, prec), prec);
        deviation = scaled.div(&n, prec);
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

#[cfg(test)]
mod tests {
    use ulpian_spec::ops::layer_norm::LayerNorm;
    use ulpian_spec::{Enclosure, HostTensor, Op};

    use super::*;
    use crate::{Settings, evaluate};

    #[test]
    fn statistics_of_any_finite_numbers_stay_exact() {
        for values in [[f64::MAX, f64::from_bits(1), 3.0], [1e300, -1e-300, 7.0], [5e-324, 1.5, -1.5]] {
            let values = values.map(Value::from_f64);
            for value in statistics(values.iter().cloned(), 3, 128) {
                assert!(matches!(value, Value::Exact(_)), "{value:?}");
            }
        }
    }

    fn layer_norm(x: &HostTensor, weight: &HostTensor, bias: &HostTensor, eps: f64) -> Enclosure {
        let op = LayerNorm {
            input: x,
            weight: Some(weight),
            bias: Some(bias),
            normalized_shape: vec![x.len() as i64],
            eps,
        };
        let y = evaluate(&Op::LayerNorm(op), &Settings::default()).expect("a valid call").remove(0);
        assert!(y.undecided.is_empty());
        y
    }

    /// With eps = 0 a row of +t and -t becomes +1 and -1, and weight and bias put the results on midpoints.
    #[test]
    fn exact_ties_go_to_even() {
        let pattern = [1.0, -1.0, -1.0, 1.0, 1.0, -1.0];
        let weight = [1.0, 1.0, 3.0, 3.0, 5.0, 5.0];
        // 2^p and over it odd numbers: 1, -1, -3, 3, 5, -5; below 2^p the last place is half as much.
        for (precision, t) in [(24, 0.375), (24, 3e-30), (53, 1.0 / 3.0), (53, 1e200)] {
            let base = f64::from(precision).exp2();
            let (x, b) = (pattern.map(|s| s * t), [base; 6]);
            let (x, w, b) = if precision == 24 {
                let narrow = |v: [f64; 6]| HostTensor::f32(&[6], &v.map(|x| x as f32));
                (narrow(x), narrow(weight), narrow(b))
            } else {
                let wide = |v: [f64; 6]| HostTensor::f64(&[6], &v);
                (wide(x), wide(weight), wide(b))
            };
            let y = layer_norm(&x, &w, &b, 0.0);
            let over: Vec<f64> = (0..6).map(|i| y.value.get_f64(i) - base).collect();
            assert_eq!(over, [0.0, -1.0, -3.0, 4.0, 4.0, -5.0]);
        }
    }

    /// The deviation is irrational, the difference from the mean exact and far smaller: sqrt(12) 2^-60 and, in float64, 2^-600.
    #[test]
    fn small_differences_over_an_irrational_deviation() {
        for (power, precision) in [(-60, 24), (-600, 53)] {
            let small = 3.0 * f64::from(power).exp2();
            let x = [1.0, -1.0, small, -small];
            let (one, zero) = ([1.0; 4], [0.0; 4]);
            let tensor = |v: [f64; 4]| {
                if precision == 24 {
                    HostTensor::f32(&[4], &v.map(|x| x as f32))
                } else {
                    HostTensor::f64(&[4], &v)
                }
            };
            let y = layer_norm(&tensor(x), &tensor(one), &tensor(zero), 0.25);
            // var + eps = 3 / 4 + 2^(2 power) 9 / 2, so y is 2 sqrt(3) 2^power but for a factor of 1 - 2^-117.
            let root = 3.464_101_615_137_754_6;
            let want = if precision == 24 { f64::from(root as f32) } else { root };
            assert_eq!(y.value.get_f64(2), want * f64::from(power).exp2());
            assert_eq!(y.value.get_f64(3), -want * f64::from(power).exp2());
        }
    }
}
