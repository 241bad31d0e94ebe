//! Distances of a result from its truth: class before distance, and distances from the real value.
//!
//! The classes are NaN, +inf, -inf, finite, and for zeros their sign. Distances are taken over elements of the same class; a
//! result of another class is infinitely far. `max_ulp` counts in units of the last place of the result's dtype at the real
//! value ([`ulp`](ulpian_reference::round::ulp)), 1 for integers and bool. The real value lies within `radius` of
//! `center + low`; an element that equals the correctly rounded value is never more than half an ulp off, and a decided one
//! that differs never less.
//!
//! [`element`] says what an element adds; [`block`] adds many at once where nothing among them is special, with the same figures.

mod block;
mod element;

use std::ops::Range;

use rayon::prelude::*;
use ulpian_spec::tensor::unravel;
use ulpian_spec::verdict::Distance;
use ulpian_spec::{Enclosure, HostTensor};

use element::Comparison;

/// Elements a task of the parallel pass handles.
const CHUNK: usize = 1 << 15;

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
    let Some(format) = truth.value.dtype().float_format() else {
        return in_chunks(truth.len(), |m, elements| {
            elements.for_each(|i| element::of_integers(m, got, truth, [worst, usual], i));
        });
    };
    let comparison = Comparison::new(truth, [worst, usual], format, widen);
    in_chunks(truth.len(), |m, elements| block::of_floats(m, &comparison, got, elements))
}

/// `pass` over all elements in parallel, in ranges of [`CHUNK`].
fn in_chunks(len: usize, pass: impl Fn(&mut Measured, Range<usize>) + Sync) -> Measured {
    (0..len.div_ceil(CHUNK))
        .into_par_iter()
        .map(|c| {
            let mut m = Measured::empty(len);
            pass(&mut m, c * CHUNK..((c + 1) * CHUNK).min(len));
            m
        })
        .reduce(|| Measured::empty(len), Measured::join)
}

#[cfg(test)]
mod tests;
