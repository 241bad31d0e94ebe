//! Operands as float64, with what is known of their error.

use std::borrow::Cow;

use ulpian_spec::ops::TensorOrScalar;
use ulpian_spec::{DType, HostTensor};

use super::Arithmetic;
use super::parts::{From, by_run, each, put};

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

    /// Number of elements.
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }
}

/// Positions in an operand that is broadcast to a result's shape.
pub(crate) struct Broadcast {
    /// Result dimensions, innermost first, each with its size and the operand's step; dimensions that a single step goes
    /// through are one.
    steps: Vec<(usize, usize)>,
}

/// Consecutive elements of the result and the operand's positions for them.
pub(super) struct Run {
    /// The operand's position for the first.
    pub at: usize,
    /// From one to the next.
    pub step: usize,
    /// How many.
    pub len: usize,
}

impl Broadcast {
    /// From an operand's shape to a result's that it broadcasts to.
    pub(crate) fn new(from: &[usize], to: &[usize]) -> Broadcast {
        let mut steps: Vec<(usize, usize)> = Vec::with_capacity(to.len());
        let mut stride = 1;
        for (k, &size) in to.iter().rev().enumerate() {
            let own = from.len().checked_sub(k + 1).map_or(1, |dim| from[dim]);
            let step = if own == 1 { 0 } else { stride };
            stride *= own;
            match steps.last_mut() {
                _ if size == 1 => {}
                Some(inner) if inner.0 * inner.1 == step => inner.0 *= size,
                _ => steps.push((size, step)),
            }
        }
        Broadcast { steps }
    }

    /// The operand's position for result position `flat`.
    pub(crate) fn at(&self, flat: usize) -> usize {
        match self.steps[..] {
            [] | [(_, 0)] => 0,
            [(_, 1)] => flat,
            _ => self.run(flat).at,
        }
    }

    /// The run that begins at result position `flat`.
    fn run(&self, flat: usize) -> Run {
        let Some(&(size, step)) = self.steps.first() else {
            return Run { at: 0, step: 0, len: usize::MAX };
        };
        let (mut rest, mut at) = (flat, 0);
        for &(size, step) in &self.steps {
            at += rest % size.max(1) * step;
            rest /= size.max(1);
        }
        Run { at, step, len: size.max(1) - flat % size.max(1) }
    }
}

/// The operands of an elementwise op of two, the second of which may be a number.
pub(super) struct Pair<'a>([Side<'a>; 2]);

/// One of them.
struct Side<'a> {
    values: Cow<'a, [f64]>,
    error: Option<&'a [f64]>,
    /// The arithmetic whose result dtype it is converted to, where it has another.
    converts: Option<Arithmetic>,
    at: Broadcast,
}

/// An operand's element.
#[derive(Clone, Copy)]
pub(super) struct Element {
    /// Its value.
    pub value: f64,
    /// The bound on its error.
    pub error: f64,
    /// The error of its conversion to the result's dtype.
    pub converted: f64,
}

impl<'a> Side<'a> {
    fn tensor(a: &Arithmetic, t: &'a Operand<'_>, out: &[usize]) -> Side<'a> {
        Side {
            values: Cow::Borrowed(&t.values),
            error: t.error.as_deref(),
            converts: (t.dtype.float_format() != a.out).then_some(*a),
            at: Broadcast::new(t.shape, out),
        }
    }

    /// Values, errors and errors of conversion along a run, where they lie there as they are.
    fn run(&self, run: &Run, count: usize) -> Option<[From<'_>; 3]> {
        if run.step == 0 {
            let Element { value, error, converted } = self.element(run.at);
            return Some([From::All(value), From::All(error), From::All(converted)]);
        }
        (run.step == 1 && self.converts.is_none()).then(|| {
            let errors = From::or_zero(self.error);
            [From::Each(&self.values), errors, From::All(0.0)].map(|from| from.part(run.at, count))
        })
    }

    #[inline(always)]
    fn element(&self, at: usize) -> Element {
        let value = self.values[at];
        Element {
            value,
            error: self.error.map_or(0.0, |e| e[at]),
            converted: self.converts.as_ref().map_or(0.0, |a| a.conversion(value)),
        }
    }
}

impl<'a> Pair<'a> {
    /// Both, broadcast to a result of shape `out` in arithmetic `a`.
    pub(super) fn new(
        a: &Arithmetic,
        left: &'a Operand<'_>,
        right: TensorOrScalar<&'a Operand<'_>>,
        out: &[usize],
    ) -> Pair<'a> {
        let right = match right {
            TensorOrScalar::Tensor(t) => Side::tensor(a, t, out),
            TensorOrScalar::Scalar(s) => Side {
                values: Cow::Owned(vec![s.as_f64()]),
                error: None,
                converts: Some(*a),
                at: Broadcast::new(&[], out),
            },
        };
        Pair([Side::tensor(a, left, out), right])
    }

    /// The figures of all results, whose exact values are `y`, each from its own and its operands' elements. `figures` must be
    /// `#[inline(always)]`.
    pub(super) fn each<const N: usize>(
        &self,
        y: &[f64],
        figures: impl Fn(f64, Element, Element) -> [f64; N] + Sync,
    ) -> [Vec<f64>; N] {
        let [left, right] = &self.0;
        by_run(y.len(), usize::MAX, |_, start, mut part: [&mut [f64]; N]| {
            let (mut done, all) = (0, part.first().map_or(0, |p| p.len()));
            while done < all {
                let (l, r) = (left.at.run(start + done), right.at.run(start + done));
                let count = l.len.min(r.len).min(all - done);
                if let (Some([lv, le, lc]), Some([rv, re, rc])) = (left.run(&l, count), right.run(&r, count))
                {
                    let y = From::Each(&y[start + done..][..count]);
                    let part = part.each_mut().map(|slice| &mut slice[done..done + count]);
                    each(
                        [y, lv, le, lc, rv, re, rc],
                        part,
                        #[inline(always)]
                        |[y, lv, le, lc, rv, re, rc]| {
                            let left = Element { value: lv, error: le, converted: lc };
                            figures(y, left, Element { value: rv, error: re, converted: rc })
                        },
                    );
                    done += count;
                    continue;
                }
                let (l_first, r_first) = (left.element(l.at), right.element(r.at));
                for k in 0..count {
                    let x = if l.step == 0 { l_first } else { left.element(l.at + k * l.step) };
                    let other = if r.step == 0 { r_first } else { right.element(r.at + k * r.step) };
                    put(&mut part, done + k, figures(y[start + done + k], x, other));
                }
                done += count;
            }
        })
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

    #[test]
    fn positions_are_those_of_the_indices() {
        let to = [2, 1, 3, 4, 5];
        for from in [&[5][..], &[4, 1], &[3, 4, 5], &[2, 1, 1, 4, 5], &[2, 1, 3, 1, 1], &[1, 1, 1], &to] {
            let broadcast = Broadcast::new(from, &to);
            for flat in 0..120 {
                let index = ulpian_spec::tensor::unravel(flat, &to);
                let position = from
                    .iter()
                    .zip(&index[to.len() - from.len()..])
                    .fold(0, |at, (&size, &i)| at * size + if size == 1 { 0 } else { i });
                assert_eq!(broadcast.at(flat), position, "{from:?} at {flat}");
                let run = broadcast.run(flat);
                for k in 0..run.len.min(120 - flat) {
                    assert_eq!(run.at + k * run.step, broadcast.at(flat + k), "{from:?} at {flat} + {k}");
                }
            }
        }
    }
}
