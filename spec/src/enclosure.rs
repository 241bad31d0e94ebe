//! What the reference returns: a proved interval and the correctly rounded value for every element.

use crate::{HostTensor, TensorType};

/// The certified result of one node output.
///
/// Element `i`'s real value lies within `radius[i]` of `center[i] + low[i]` (`low` counts as 0 where absent). Where the
/// exact result is not a finite real number, `center[i]` is NaN or an infinity and `radius[i]` is 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Enclosure {
    /// The result rounded to nearest, ties to even, in the result's dtype and shape. Where an element is undecided, the
    /// rounding of the centre.
    pub value: HostTensor,
    /// Row-major centres.
    pub center: Vec<f64>,
    /// The part of the centre below float64's last place; empty where not needed.
    pub low: Vec<f64>,
    /// Radii, not negative, already including the error of their own computation.
    pub radius: Vec<f64>,
    /// Positions whose rounding could not be pinned down within the precision limit, ascending.
    pub undecided: Vec<usize>,
    /// For a zero result of a sum of several terms IEEE leaves the sign to the order of operations. Where this is true, the
    /// sign of a zero in `value` is one of several right answers.
    pub zero_sign_is_free: bool,
}

impl Enclosure {
    /// Dtype and shape of the result.
    pub fn tensor_type(&self) -> TensorType {
        self.value.tensor_type()
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.center.len()
    }

    /// Is there no element?
    pub fn is_empty(&self) -> bool {
        self.center.is_empty()
    }

    /// The low part of centre `index`.
    pub fn low_at(&self, index: usize) -> f64 {
        self.low.get(index).copied().unwrap_or(0.0)
    }
}
