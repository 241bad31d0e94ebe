//! Distances of a result from its truth: class before distance, and distances from the real value.
//!
//! The classes are NaN, +inf, -inf, finite, and for zeros their sign. Distances are taken over elements of the same class; a
//! result of another class is infinitely far. `max_ulp` counts in units of the last place of the result's dtype at the real
//! value ([`round::ulp`]), 1 for integers and bool. The real value lies within `radius` of `center + low`; an element that
//! equals the correctly rounded value is never more than half an ulp off, and a decided one that differs never less.

use rayon::prelude::*;
use ulpian_reference::round;
use ulpian_spec::tensor::unravel;
use ulpian_spec::verdict::Distance;
use ulpian_spec::{Enclosure, HostTensor, Storage};

/// Elements a task of the parallel pass handles.
const CHUNK: usize = 1 << 13;

/// An element and a figure: the greatest seen so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Peak {
    /// The figure.
    pub value: f64,
    /// Where.
    pub index: usize,
}

impl Peak {
    const NONE: Peak = Peak { value: 0.0, index: usize::MAX };

    fn raise(&mut self, value: f64, index: usize) {
        if self.index == usize::MAX || value > self.value {
            *self = Peak { value, index };
        }
    }

    /// As [`Peak::raise`] with `figure(numerator / denominator)`, for a figure that is no greater than the quotient. Where the numerator is
    /// below value times denominator by more than three roundings lose, the quotient cannot round above the value, and the
    /// division is saved.
    #[inline(always)]
    fn raise_to(&mut self, numerator: f64, denominator: f64, figure: impl Fn(f64) -> f64, index: usize) {
        let below = self.value * denominator * (1.0 - 8.0 * f64::EPSILON);
        // Far from where products underflow.
        if self.index != usize::MAX && numerator < below && below > 1e-280 {
            return;
        }
        self.raise(figure(numerator / denominator), index);
    }

    fn join(self, other: Peak) -> Peak {
        if other.index == usize::MAX || (self.index != usize::MAX && self.value >= other.value) {
            self
        } else {
            other
        }
    }
}

/// What separates a result from its truth.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Measured {
    /// Elements.
    pub len: usize,
    /// Shape or dtype differs: nothing else is measured.
    pub type_differs: bool,
    /// Elements of another class than the truth's.
    pub class_mismatches: usize,
    /// Those among them that are zeros of the other sign.
    pub sign_mismatches: usize,
    /// Those among them that the bound excuses: an infinity where the bound reaches beyond the greatest finite number, or
    /// anything where no bound holds.
    pub excused: usize,
    /// The first element whose class nothing excuses.
    pub first_fault: Option<usize>,
    /// Every element is the correctly rounded value.
    pub exact: bool,
    /// Elements certainly beyond the worst error of a correct implementation.
    pub beyond: usize,
    /// Elements of which the truth's radius leaves open whether they are beyond it.
    pub doubtful: usize,
    /// Elements beyond the usual error.
    pub unusual: usize,
    /// Worst error in ulp.
    pub ulp: Peak,
    /// Worst absolute error.
    pub abs: Peak,
    /// Worst relative error.
    pub rel: Peak,
    /// Worst share of the bound.
    pub ratio: Peak,
    /// Greatest |truth| over the finite elements.
    pub greatest: f64,
}

impl Measured {
    /// A result of another shape or dtype.
    fn of_another_type(len: usize) -> Measured {
        Measured { type_differs: true, class_mismatches: len.max(1), exact: false, ..Measured::empty(len) }
    }

    fn empty(len: usize) -> Measured {
        Measured {
            len,
            type_differs: false,
            class_mismatches: 0,
            sign_mismatches: 0,
            excused: 0,
            first_fault: None,
            exact: true,
            beyond: 0,
            doubtful: 0,
            unusual: 0,
            ulp: Peak::NONE,
            abs: Peak::NONE,
            rel: Peak::NONE,
            ratio: Peak::NONE,
            greatest: 0.0,
        }
    }

    fn join(self, other: Measured) -> Measured {
        Measured {
            len: self.len,
            type_differs: false,
            class_mismatches: self.class_mismatches + other.class_mismatches,
            sign_mismatches: self.sign_mismatches + other.sign_mismatches,
            excused: self.excused + other.excused,
            first_fault: match (self.first_fault, other.first_fault) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
            exact: self.exact && other.exact,
            beyond: self.beyond + other.beyond,
            doubtful: self.doubtful + other.doubtful,
            unusual: self.unusual + other.unusual,
            ulp: self.ulp.join(other.ulp),
            abs: self.abs.join(other.abs),
            rel: self.rel.join(other.rel),
            ratio: self.ratio.join(other.ratio),
            greatest: self.greatest.max(other.greatest),
        }
    }

    /// Elements whose class nothing excuses; signs of zero are not counted.
    pub(super) fn class_faults(&self) -> usize {
        self.class_mismatches - self.sign_mismatches - self.excused
    }

    /// No class is wrong and no element certainly beyond the bound.
    pub(super) fn within(&self) -> bool {
        !self.type_differs && self.class_faults() == 0 && self.beyond == 0
    }

    /// The element that shows most: the first of a wrong class, otherwise that of the worst share of the bound where
    /// something is beyond it, otherwise that of the worst error in ulp.
    pub(super) fn shows_at(&self) -> usize {
        let peak = if self.beyond > 0 { self.ratio } else { self.ulp };
        self.first_fault.unwrap_or(if peak.index == usize::MAX { 0 } else { peak.index })
    }

    /// The worst error in ulp; infinite where a class or the type is wrong.
    pub(super) fn max_ulp(&self) -> f64 {
        if self.type_differs || self.class_faults() > 0 { f64::INFINITY } else { self.ulp.value }
    }

    /// The figures for machine output; `None` where the type differs or there is no element.
    pub(super) fn distance(&self, got: &HostTensor, truth: &Enclosure) -> Option<Distance> {
        if self.type_differs || truth.is_empty() {
            return None;
        }
        let index = match self.first_fault {
            Some(fault) => fault,
            None if self.ulp.index == usize::MAX => 0,
            None => self.ulp.index,
        };
        let far = |x: f64| if self.first_fault.is_some() { f64::INFINITY } else { x };
        Some(Distance {
            max_ulp: far(self.ulp.value),
            max_abs: far(self.abs.value),
            max_rel: far(self.rel.value),
            bound_ratio: far(self.ratio.value),
            index: unravel(index, truth.value.shape()),
            got: got.get_f64(index),
            truth: truth.value.get_f64(index),
        })
    }
}

/// Measures `got` against `truth`. `worst` and `usual` are the levels by element; where `widen` is set the truth need not be
/// representable in the result's dtype, and the rounding of the result is added to both.
pub(super) fn measure(
    got: &HostTensor,
    truth: &Enclosure,
    worst: &[f64],
    usual: &[f64],
    widen: bool,
) -> Measured {
    if got.tensor_type() != truth.tensor_type() {
        return Measured::of_another_type(truth.len());
    }
    match (got.storage(), truth.value.storage()) {
        (Storage::F32(g), Storage::F32(v)) => {
            measure_as(got, truth, [worst, usual], widen, |i| (f64::from(g[i]), f64::from(v[i])))
        }
        _ => measure_as(got, truth, [worst, usual], widen, |i| (got.get_f64(i), truth.value.get_f64(i))),
    }
}

/// [`measure`] of results of one type. `at` gives an element of both as float64.
fn measure_as(
    got: &HostTensor,
    truth: &Enclosure,
    [worst, usual]: [&[f64]; 2],
    widen: bool,
    at: impl Fn(usize) -> (f64, f64) + Sync,
) -> Measured {
    let format = truth.value.dtype().float_format();
    let (u, eta) = match format {
        Some(f) if widen => (f.unit_roundoff(), round::exp2i(i64::from(f.least_exponent()) - 1)),
        _ => (0.0, 0.0),
    };
    let chunks = truth.len().div_ceil(CHUNK);
    let element = |m: &mut Measured, i: usize| {
        if format.is_none() {
            // Integers and bool: compared as integers; float64 may not tell neighbours apart.
            let (g, t) = (got.get_i64(i), truth.value.get_i64(i));
            let distance = match (g, t) {
                (Some(g), Some(t)) => g.abs_diff(t) as f64,
                _ => f64::INFINITY,
            };
            let allowed = worst[i];
            m.greatest = m.greatest.max(truth.center[i].abs());
            m.ulp.raise(distance, i);
            m.abs.raise(distance, i);
            if truth.center[i] != 0.0 {
                m.rel.raise(distance / truth.center[i].abs(), i);
            }
            m.ratio.raise(share(distance, allowed), i);
            m.exact &= distance == 0.0;
            m.beyond += usize::from(distance > allowed);
            m.unusual += usize::from(distance > usual[i].max(allowed));
            return;
        }
        let (g, v) = at(i);
        let center = truth.center[i];
        let (worst, usual) = if center.is_finite() {
            (worst[i] + u * center.abs() + eta, usual[i] + u * center.abs() + eta)
        } else {
            (0.0, 0.0)
        };
        if center.is_finite() {
            m.greatest = m.greatest.max(center.abs());
        }
        let same = g == v || (g.is_nan() && v.is_nan());
        if same && g.is_sign_negative() != v.is_sign_negative() && g == 0.0 {
            if !truth.zero_sign_is_free {
                m.class_mismatches += 1;
                m.sign_mismatches += 1;
                m.exact = false;
            }
        } else if !same {
            m.exact = false;
            if g.is_nan() || v.is_nan() || g.is_infinite() || v.is_infinite() {
                m.class_mismatches += 1;
                // The real value is finite, and the bound reaches the other class.
                let reaches = match format {
                    Some(f) => center.is_finite() && center.abs() + worst >= round::max_finite(f),
                    None => false,
                };
                let excused = worst == f64::INFINITY
                    || (reaches && !g.is_nan() && g.is_sign_negative() == center.is_sign_negative());
                if excused {
                    m.excused += 1;
                } else {
                    m.first_fault = Some(m.first_fault.map_or(i, |f| f.min(i)));
                }
                return;
            }
        }
        if !g.is_finite() || !center.is_finite() {
            return;
        }
        let error = ((g - center) - truth.low_at(i)).abs();
        let unit = format.map_or(1.0, |f| round::ulp(f, center));
        let decided = same || truth.undecided.binary_search(&i).is_err();
        m.abs.raise(error, i);
        if center != 0.0 {
            m.rel.raise_to(error, center.abs(), |rel| rel, i);
        }
        if same {
            m.ulp.raise_to(error, unit, |ulp| ulp.min(0.5), i);
            match error {
                0.0 => m.ratio.raise(0.0, i),
                _ => m.ratio.raise_to(error, worst, |share| share.min(1.0), i),
            }
            return;
        }
        m.ulp.raise(if decided { (error / unit).max(0.5) } else { error / unit }, i);
        m.ratio.raise(share(error, worst), i);
        let (least, most) =
            ((error - truth.radius[i]) * (1.0 - 1e-15), (error + truth.radius[i]) * (1.0 + 1e-15));
        if least > worst {
            m.beyond += 1;
        } else if most > worst {
            m.doubtful += 1;
        }
        m.unusual += usize::from(least > usual);
    };
    (0..chunks)
        .into_par_iter()
        .map(|c| {
            let mut m = Measured::empty(truth.len());
            (c * CHUNK..((c + 1) * CHUNK).min(truth.len())).for_each(|i| element(&mut m, i));
            m
        })
        .reduce(|| Measured::empty(truth.len()), Measured::join)
}

/// `error / bound`; 0 for no error.
fn share(error: f64, bound: f64) -> f64 {
    if error == 0.0 { 0.0 } else { error / bound }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enclosure(value: HostTensor, center: &[f64]) -> Enclosure {
        Enclosure {
            value,
            center: center.to_vec(),
            low: vec![],
            radius: vec![0.0; center.len()],
            undecided: vec![],
            zero_sign_is_free: false,
        }
    }

    fn against(got: &[f32], truth: &[f32], center: &[f64], worst: f64) -> Measured {
        let truth = enclosure(HostTensor::f32(&[truth.len()], truth), center);
        let levels = vec![worst; got.len()];
        measure(&HostTensor::f32(&[got.len()], got), &truth, &levels, &levels, false)
    }

    /// Numerators one or a few steps of float64 around the value times the denominator, of every size, zeros and infinities.
    #[test]
    fn a_saved_division_changes_no_peak() {
        let mut bits = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = || {
            bits ^= bits << 13;
            bits ^= bits >> 7;
            bits ^= bits << 17;
            bits
        };
        let (mut plain, mut saving) = (Peak::NONE, Peak::NONE);
        for n in 0..400_000 {
            if n % 50 == 0 {
                (plain, saving) = (Peak::NONE, Peak::NONE);
            }
            let denominator = match next() % 40 {
                0 => 0.0,
                1 => f64::INFINITY,
                _ => f64::from_bits(next() >> 1).min(f64::MAX),
            };
            let near = f64::from_bits((plain.value * denominator).to_bits().wrapping_add(next() % 9));
            let numerator = if next() % 3 == 0 { f64::from_bits(next() >> 1) } else { near };
            plain.raise((numerator / denominator).min(0.5), n);
            saving.raise_to(numerator, denominator, |q| q.min(0.5), n);
            assert_eq!((plain.value.to_bits(), plain.index), (saving.value.to_bits(), saving.index));
            let (numerator, denominator) = (numerator.abs(), denominator.abs());
            plain.raise(numerator / denominator, n);
            saving.raise_to(numerator, denominator, |q| q, n);
            assert_eq!((plain.value.to_bits(), plain.index), (saving.value.to_bits(), saving.index));
        }
    }

    #[test]
    fn the_correctly_rounded_value_is_within_half_an_ulp() {
        let m = against(&[1.0, 0.1], &[1.0, 0.1], &[1.0 + 5.9e-8, 0.1], 1e-9);
        assert!(m.exact && m.within());
        assert!(m.ulp.value <= 0.5 && m.ulp.value > 0.4, "{}", m.ulp.value);
        assert!(m.ratio.value <= 1.0);
    }

    #[test]
    fn a_neighbour_is_measured_from_the_real_value() {
        let m = against(&[1.0 + f32::EPSILON], &[1.0], &[1.0 + 5.9e-8], 1e-9);
        assert!(!m.exact);
        assert!((m.ulp.value - 0.505).abs() < 0.01, "{}", m.ulp.value);
        assert_eq!((m.beyond, m.unusual), (1, 1));
    }

    #[test]
    fn class_comes_before_distance() {
        let nan = f32::NAN;
        let m = against(
            &[nan, 1.0, f32::INFINITY],
            &[1.0, nan, f32::NEG_INFINITY],
            &[1.0, f64::NAN, f64::NEG_INFINITY],
            1e9,
        );
        assert_eq!((m.class_mismatches, m.class_faults(), m.first_fault), (3, 3, Some(0)));
        assert_eq!(m.max_ulp(), f64::INFINITY);
        assert!(!m.within());
    }

    #[test]
    fn a_zero_has_a_sign_unless_the_truth_leaves_it_open() {
        let m = against(&[-0.0], &[0.0], &[0.0], 0.0);
        assert_eq!((m.class_mismatches, m.sign_mismatches, m.class_faults()), (1, 1, 0));
        let mut truth = enclosure(HostTensor::f32(&[1], &[0.0]), &[0.0]);
        truth.zero_sign_is_free = true;
        assert!(measure(&HostTensor::f32(&[1], &[-0.0]), &truth, &[0.0], &[0.0], false).exact);
    }

    #[test]
    fn infinity_is_excused_where_the_bound_reaches_it() {
        let top = f64::from(f32::MAX);
        let m = against(&[f32::INFINITY], &[f32::MAX], &[top], 1e30);
        assert_eq!((m.class_mismatches, m.class_faults()), (1, 0));
        let m = against(&[f32::INFINITY], &[3e38], &[3e38], 1e30);
        assert_eq!(m.class_faults(), 1);
        // A real value beyond the greatest number: the infinity is right.
        assert!(against(&[f32::INFINITY], &[f32::INFINITY], &[1e39], 0.0).exact);
    }

    #[test]
    fn another_shape_or_dtype_counts_every_element() {
        let truth = enclosure(HostTensor::f32(&[2, 2], &[1.0; 4]), &[1.0; 4]);
        for got in [HostTensor::f32(&[4], &[1.0; 4]), HostTensor::f64(&[2, 2], &[1.0; 4])] {
            let m = measure(&got, &truth, &[0.0; 4], &[0.0; 4], false);
            assert_eq!((m.class_mismatches, m.within()), (4, false));
            assert!(m.distance(&got, &truth).is_none());
        }
    }

    #[test]
    fn no_element_is_no_error() {
        let truth = enclosure(HostTensor::f32(&[0, 3], &[]), &[]);
        let m = measure(&HostTensor::f32(&[0, 3], &[]), &truth, &[], &[], false);
        assert!(m.exact && m.within());
    }

    #[test]
    fn integers_beyond_float64_are_told_apart() {
        let big = (1i64 << 60) + 1;
        let value = HostTensor::new([1], Storage::I64(vec![big])).expect("one element");
        let truth = enclosure(value, &[big as f64]);
        let got = HostTensor::new([1], Storage::I64(vec![big - 1])).expect("one element");
        let m = measure(&got, &truth, &[0.0], &[0.0], false);
        assert_eq!((m.ulp.value, m.beyond), (1.0, 1));
        assert_eq!(m.ratio.value, f64::INFINITY);
    }

    #[test]
    fn float64_is_measured_with_the_low_part() {
        let mut truth = enclosure(HostTensor::f64(&[1], &[1.0]), &[1.0]);
        truth.low = vec![1.1e-16];
        let m = measure(&HostTensor::f64(&[1], &[1.0]), &truth, &[1e-15], &[1e-15], false);
        assert!((m.ulp.value - 0.495).abs() < 0.01, "{}", m.ulp.value);
        let m = measure(&HostTensor::f64(&[1], &[1.0 + f64::EPSILON]), &truth, &[1e-17], &[1e-17], false);
        assert!((m.ulp.value - 0.505).abs() < 0.01);
        assert_eq!(m.beyond, 1);
    }
}
