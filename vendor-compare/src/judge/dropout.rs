//! The mask of a dropout in training that has none of its own, read off a result.

use std::sync::Arc;

use ulpian_spec::ops::dropout::Dropout;
use ulpian_spec::{HostTensor, Storage};

/// Standard deviations that the kept fraction may be from 1 - p. Beyond 6, chance is one in 5e8.
const DEVIATIONS: f64 = 6.0;

/// What a result says about the mask behind it.
pub(super) struct Derived {
    /// Where the result is not 0 (of an infinity, not NaN), or the input is 0 or NaN and the two cannot be told apart.
    pub mask: Arc<HostTensor>,
    /// Why the kept fraction is not plausible.
    pub implausible: Option<String>,
}

/// Reads the mask off `got`; `None` where shape or dtype is not the input's.
pub(super) fn derive(args: &Dropout<Arc<HostTensor>>, got: &HostTensor) -> Option<Derived> {
    if args.input.tensor_type() != got.tensor_type() {
        return None;
    }
    let (mut tried, mut kept) = (0usize, 0usize);
    let mask = (0..got.len())
        .map(|i| {
            let (x, y) = (args.input.get_f64(i), got.get_f64(i));
            let cannot_tell = x == 0.0 || x.is_nan();
            // A dropped infinity is infinity times 0.
            let dropped = y == 0.0 || (x.is_infinite() && y.is_nan());
            let keep = cannot_tell || !dropped;
            if !cannot_tell {
                tried += 1;
                kept += usize::from(keep);
            }
            u8::from(keep)
        })
        .collect();
    let (n, q) = (tried as f64, 1.0 - args.p);
    // Half an element of continuity correction keeps small tensors plausible.
    let distance = ((kept as f64 - n * q).abs() - 0.5).max(0.0);
    let implausible = (distance > DEVIATIONS * (n * q * args.p).sqrt()).then(|| {
        format!(
            "{kept} of {tried} elements are kept where {:.0} are expected, more than {DEVIATIONS} standard deviations away",
            n * q
        )
    });
    let mask = HostTensor::new(got.shape(), Storage::Bool(mask))?;
    Some(Derived { mask: Arc::new(mask), implausible })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(input: HostTensor, p: f64) -> Dropout<Arc<HostTensor>> {
        Dropout { input: Arc::new(input), mask: None, p, training: true }
    }

    #[test]
    fn zeros_are_dropped_unless_the_input_is_zero() {
        let derived = derive(
            &args(HostTensor::f32(&[4], &[1.0, 0.0, 2.0, 3.0]), 0.5),
            &HostTensor::f32(&[4], &[2.0, 0.0, 0.0, f32::NAN]),
        )
        .expect("same type");
        assert_eq!(derived.mask.to_f64_vec(), [1.0, 1.0, 0.0, 1.0]);
        assert!(derived.implausible.is_none());
    }

    #[test]
    fn a_dropped_infinity_is_nan_and_nan_says_nothing() {
        let input = HostTensor::f32(&[3], &[f32::INFINITY, f32::NAN, f32::NEG_INFINITY]);
        let got = HostTensor::f32(&[3], &[f32::NAN, f32::NAN, f32::NEG_INFINITY]);
        let derived = derive(&args(input, 0.5), &got).expect("same type");
        assert_eq!(derived.mask.to_f64_vec(), [0.0, 1.0, 1.0]);
        assert!(derived.implausible.is_none());
        let input = HostTensor::f32(&[1], &[f32::INFINITY]);
        let all = derive(&args(input, 1.0), &HostTensor::f32(&[1], &[f32::NAN])).expect("same type");
        assert!(all.implausible.is_none());
    }

    #[test]
    fn a_fraction_kept_that_chance_does_not_give_is_told() {
        let ones = HostTensor::f32(&[1000], &[1.0; 1000]);
        let derived = derive(&args(ones, 0.5), &HostTensor::f32(&[1000], &[2.0; 1000])).expect("same type");
        assert!(derived.implausible.is_some_and(|w| w.contains("1000 of 1000") && w.contains("500")));
    }

    #[test]
    fn another_type_says_nothing() {
        assert!(derive(&args(HostTensor::f32(&[1], &[1.0]), 0.5), &HostTensor::f64(&[1], &[2.0])).is_none());
    }
}
