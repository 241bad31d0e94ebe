//! Operands as float64, with what is known of their error.

use std::borrow::Cow;

use ulpian_spec::ops::TensorOrScalar;
use ulpian_spec::{DType, HostTensor};

use super::Arithmetic;

/// A tensor operand of a call whose bound is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Operand<'a> {
    /// Sizes, outermost first.
    pub shape: &'a [usize],
    /// Element type.
    pub dtype: DType,
    /// Row-major values.
    pub values: Cow<'a, [f64]>,
    /// Bounds on the values' errors; `None` where they are exact.
    pub error: Option<Cow<'a, [f64]>>,
}

impl<'a> Operand<'a> {
    /// These very values.
    pub(crate) fn exact(tensor: &'a HostTensor) -> Operand<'a> {
        let values = match tensor.storage() {
            ulpian_spec::Storage::F64(v) => Cow::Borrowed(v.as_slice()),
            _ => Cow::Owned(tensor.to_f64_vec()),
        };
        Operand { shape: tensor.shape(), dtype: tensor.dtype(), values, error: None }
    }

    /// The bound on element `index`'s error.
    pub(crate) fn error_at(&self, index: usize) -> f64 {
        self.error.as_ref().map_or(0.0, |e| e[index])
    }

    /// Error of converting element `index` to the result's dtype; none where that is the operand's own.
    pub(super) fn conversion_at(&self, a: &Arithmetic, index: usize) -> f64 {
        if self.dtype.float_format() == a.out { 0.0 } else { a.conversion(self.values[index]) }
    }

    /// Number of elements.
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }
}

/// Positions in an operand that is broadcast to a result's shape.
pub(crate) struct Broadcast {
    /// Per result dimension: its size and the operand's step.
    steps: Vec<(usize, usize)>,
    same: bool,
    single: bool,
}

impl Broadcast {
    /// From an operand's shape to a result's that it broadcasts to.
    pub(crate) fn new(from: &[usize], to: &[usize]) -> Broadcast {
        let mut steps = vec![(1, 0); to.len()];
        let mut step = 1;
        for (k, &size) in from.iter().enumerate().rev() {
            let dim = k + to.len() - from.len();
            steps[dim] = (to[dim], if size == 1 { 0 } else { step });
            step *= size;
        }
        for (dim, s) in steps.iter_mut().enumerate() {
            s.0 = to[dim];
        }
        Broadcast { steps, same: from == to, single: from.iter().all(|&s| s == 1) }
    }

    /// The operand's position for result position `flat`.
    pub(crate) fn at(&self, flat: usize) -> usize {
        if self.same {
            return flat;
        }
        if self.single {
            return 0;
        }
        let (mut rest, mut position) = (flat, 0);
        for &(size, step) in self.steps.iter().rev() {
            position += rest % size.max(1) * step;
            rest /= size.max(1);
        }
        position
    }
}

/// The operands of an elementwise op of two, the second of which may be a number.
pub(super) struct Pair<'a> {
    left: &'a Operand<'a>,
    at_left: Broadcast,
    right: TensorOrScalar<(&'a Operand<'a>, Broadcast)>,
}

/// An operand's element.
pub(super) struct Element {
    /// Its value.
    pub value: f64,
    /// The bound on its error.
    pub error: f64,
    /// The error of its conversion to the result's dtype.
    pub converted: f64,
}

impl<'a> Pair<'a> {
    /// Both, broadcast to a result of shape `out`.
    pub(super) fn new(
        left: &'a Operand<'a>,
        right: TensorOrScalar<&'a Operand<'a>>,
        out: &[usize],
    ) -> Pair<'a> {
        let right = match right {
            TensorOrScalar::Tensor(t) => TensorOrScalar::Tensor((t, Broadcast::new(t.shape, out))),
            TensorOrScalar::Scalar(s) => TensorOrScalar::Scalar(s),
        };
        Pair { left, at_left: Broadcast::new(left.shape, out), right }
    }

    /// The elements that make result `i` in arithmetic `a`.
    pub(super) fn at(&self, a: &Arithmetic, i: usize) -> [Element; 2] {
        let of = |t: &Operand<'_>, at: usize| Element {
            value: t.values[at],
            error: t.error_at(at),
            converted: t.conversion_at(a, at),
        };
        let right = match &self.right {
            TensorOrScalar::Tensor((t, at)) => of(t, at.at(i)),
            TensorOrScalar::Scalar(s) => {
                Element { value: s.as_f64(), error: 0.0, converted: a.conversion(s.as_f64()) }
            }
        };
        [of(self.left, self.at_left.at(i)), right]
    }
}

/// An axis of a shape split into what is before, along and after it.
pub(super) struct Axis {
    /// Product of the sizes before.
    pub outer: usize,
    /// The size along it.
    pub size: usize,
    /// Product of the sizes after.
    pub inner: usize,
}

impl Axis {
    /// Dimension `dim` (negative counts from the end) of `shape`; a 0-dimensional tensor has one axis of size 1.
    pub(super) fn of(shape: &[usize], dim: i64) -> Axis {
        if shape.is_empty() {
            return Axis { outer: 1, size: 1, inner: 1 };
        }
        let dim = if dim < 0 { dim + shape.len() as i64 } else { dim } as usize;
        Axis {
            outer: shape[..dim].iter().product(),
            size: shape[dim],
            inner: shape[dim + 1..].iter().product(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broadcast_follows_the_trailing_dimensions() {
        let b = Broadcast::new(&[3, 1], &[2, 3, 4]);
        assert_eq!(
            (0..24).map(|i| b.at(i)).collect::<Vec<_>>(),
            [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2].repeat(2)
        );
        assert_eq!(Broadcast::new(&[], &[5]).at(3), 0);
        assert_eq!(Broadcast::new(&[2, 2], &[2, 2]).at(3), 3);
    }
}
