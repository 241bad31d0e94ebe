//! The criteria that other methods find errors by: two executors' results side by side, without a truth.
//!
//! `sort`: SORT (section III-D) counts an execution whose outputs differ by more than 1e-3 anywhere. `assert_close`:
//! `torch.testing.assert_close` with its defaults: |a - b| <= atol + rtol |b| everywhere, with tolerances by dtype
//! (torch/testing/_comparison.py), dtypes and shapes equal, NaN equal to nothing. Both are computed in float64 here. A NaN on
//! one side only, infinities of other signs, and an infinity beside a finite number are infinitely far apart.

use ulpian_spec::{DType, HostTensor, Storage};

/// SORT's threshold.
pub const SORT_THRESHOLD: f64 = 1e-3;

/// How far one tensor is from another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// Worst |a - b|; NaN on both sides counts as equal.
    pub worst: f64,
    /// Mean |a - b| over elements where both are finite; 0 where there are none.
    pub mean: f64,
    /// Worst |a - b| / (atol + rtol |b|).
    pub close_ratio: f64,
}

impl Difference {
    /// No difference.
    pub const NONE: Difference = Difference { worst: 0.0, mean: 0.0, close_ratio: 0.0 };

    /// Another dtype or shape.
    const TYPES: Difference =
        Difference { worst: f64::INFINITY, mean: f64::INFINITY, close_ratio: f64::INFINITY };

    /// The worse figures of two results.
    #[must_use]
    pub fn join(self, other: Difference) -> Difference {
        Difference {
            worst: self.worst.max(other.worst),
            mean: self.mean.max(other.mean),
            close_ratio: self.close_ratio.max(other.close_ratio),
        }
    }
}

/// The difference of `actual` from `expected`.
pub fn difference(actual: &HostTensor, expected: &HostTensor) -> Difference {
    if actual.tensor_type() != expected.tensor_type() {
        return Difference::TYPES;
    }
    if actual.same_bits(expected) && !actual.holds_nan() {
        return Difference::NONE;
    }
    let tolerances = tolerances(actual.dtype());
    macro_rules! typed {
        ($(($($variant:ident)|+, $to_f64:expr)),*) => {
            match (actual.storage(), expected.storage()) {
                $($((Storage::$variant(a), Storage::$variant(b)))|+ => {
                    of_pairs(a.iter().zip(b).map(|(&a, &b)| ($to_f64(a), $to_f64(b))), tolerances)
                })*
                _ => Difference::TYPES,
            }
        };
    }
    typed!(
        (F64, f64::from),
        (F32, f64::from),
        (F16, f64::from),
        (BF16, f64::from),
        (I64, |x| x as f64),
        (I32, f64::from),
        (I16, f64::from),
        (I8, f64::from),
        (U8 | Bool, f64::from)
    )
}

fn of_pairs(pairs: impl Iterator<Item = (f64, f64)>, (rtol, atol): (f64, f64)) -> Difference {
    let (mut worst, mut ratio, mut sum, mut finite) = (0.0f64, 0.0f64, 0.0, 0usize);
    for (a, b) in pairs {
        if a.is_finite() && b.is_finite() {
            let apart = (a - b).abs();
            finite += 1;
            sum += apart;
            worst = worst.max(apart);
            if apart > 0.0 {
                ratio = ratio.max(apart / (atol + rtol * b.abs()));
            }
        } else if a.is_nan() && b.is_nan() {
            ratio = f64::INFINITY;
        } else if a != b {
            (worst, ratio) = (f64::INFINITY, f64::INFINITY);
        }
    }
    let mean = if finite == 0 { 0.0 } else { sum / finite as f64 };
    Difference { worst, mean, close_ratio: ratio }
}

/// (rtol, atol) of `torch.testing.assert_close` for a dtype.
const fn tolerances(dtype: DType) -> (f64, f64) {
    match dtype {
        DType::F16 => (1e-3, 1e-5),
        DType::BF16 => (1.6e-2, 1e-5),
        DType::F32 => (1.3e-6, 1e-5),
        DType::F64 => (1e-7, 1e-7),
        _ => (0.0, 0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_pytorchs() {
        let one = |x: f32| HostTensor::f32(&[1], &[x]);
        // torch.testing.assert_close accepts 1.00001 beside 1, and refuses 1.00002.
        assert!(difference(&one(1.00001), &one(1.0)).close_ratio < 1.0);
        assert!(difference(&one(1.00002), &one(1.0)).close_ratio > 1.0);
        assert_eq!(difference(&one(2.5), &one(1.0)).worst, 1.5);
        let far = difference(&one(f32::NAN), &one(1.0));
        assert_eq!((far.worst, far.close_ratio), (f64::INFINITY, f64::INFINITY));
        let both = difference(&one(f32::NAN), &one(f32::NAN));
        assert_eq!((both.worst, both.close_ratio), (0.0, f64::INFINITY));
        assert_eq!(difference(&one(f32::INFINITY), &one(f32::INFINITY)), Difference::NONE);
        assert_eq!(difference(&one(f32::INFINITY), &one(-f32::INFINITY)).worst, f64::INFINITY);
        assert_eq!(difference(&one(0.0), &HostTensor::f64(&[1], &[0.0])), Difference::TYPES);
    }

    #[test]
    fn the_mean_is_over_finite_pairs() {
        let a = HostTensor::f32(&[3], &[1.0, 2.0, f32::INFINITY]);
        let b = HostTensor::f32(&[3], &[1.0, 4.0, f32::INFINITY]);
        let d = difference(&a, &b);
        assert_eq!((d.mean, d.worst), (1.0, 2.0));
    }

    #[test]
    fn integers_have_no_tolerance() {
        let int = |x| HostTensor::new([1], ulpian_spec::Storage::I32(vec![x])).unwrap();
        assert_eq!(difference(&int(3), &int(4)).close_ratio, f64::INFINITY);
        assert_eq!(difference(&int(3), &int(3)), Difference::NONE);
    }

    #[test]
    fn every_dtype_is_compared() {
        for dtype in DType::ALL {
            let of = |x: i64| match dtype {
                DType::F64 => Storage::F64(vec![x as f64]),
                DType::F32 => Storage::F32(vec![x as f32]),
                DType::F16 => Storage::F16(vec![half::f16::from_f32(x as f32)]),
                DType::BF16 => Storage::BF16(vec![half::bf16::from_f32(x as f32)]),
                DType::I64 => Storage::I64(vec![x]),
                DType::I32 => Storage::I32(vec![x as i32]),
                DType::I16 => Storage::I16(vec![x as i16]),
                DType::I8 => Storage::I8(vec![x as i8]),
                DType::U8 => Storage::U8(vec![x as u8]),
                DType::Bool => Storage::Bool(vec![x as u8]),
            };
            let one = |x| HostTensor::new([1], of(x)).unwrap();
            assert_eq!(difference(&one(0), &one(1)).mean, 1.0, "{dtype}");
        }
    }
}
