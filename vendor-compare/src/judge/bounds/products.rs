//! Sums of products: |A| |B| and what inexact operands add to it, shared by matmul, linear and conv2d.
//!
//! Where the op computes in float32 so are these sums, as upper bounds (u = 2^-24 here). Factors are rounded up, so that only
//! the sum loses: a product in float32 is at least (1 - u) of the exact one, less 2^-150 where it underflows; a sum of k terms that
//! are not negative takes each through at most k additions in any order, and an addition loses no more than (1 - u), nothing
//! where it is subnormal; with FMA there are fewer roundings. Hence exact <= (computed + k 2^-150) / (1 - u)^(k+1), and the
//! quotient is below 1 + (k + 6) 1.01 u for the k <= 2^12 that are summed at a time; those sums are added in float64.
//! - The bound exceeds the exact sum by at most (2 k + 10) u of itself, below 5e-4, and by 2^-149 k.
//! - 2^-150 k is left out where no product can underflow, so that a sum of zeros is zero. Where it is not, it is what `figures`
//!   adds for the op's own products in any case.
//! - Errors are multiplied by 2^24 first: those of zeros are 2^-150, which is no float32.
//! - Where the greatest factors could overflow float32, and where something is no number, the sums are float64's.
//!
//! Every element's sum has one order, whatever part of the result it is computed with: the parts, which are chosen by the
//! shapes alone, divide rows and columns only.

use std::borrow::Cow;

use ndarray::linalg::{general_mat_mul, general_mat_vec_mul};
use ndarray::{ArrayView2, ArrayViewMut2, Axis, LinalgScalar};
use rayon::prelude::*;
use ulpian_spec::{DType, Enclosure};

use super::parts::{From, by_run, each};
use super::{Arithmetic, Levels, Operand};

/// Terms that are summed in float32 at a time.
pub(super) const TERMS: usize = 1 << 12;

/// Elements of a part of a product, and multiplications in it.
const AREA: usize = 1 << 17;
const WORK: usize = 1 << 27;

/// What error bounds are multiplied by in float32.
const ERROR_UNIT: f64 = (1 << 24) as f64;

/// The precision that magnitudes are multiplied in.
pub(super) trait Precision: LinalgScalar + Send + Sync {
    /// |A| dB + dA |B| + dA dB is summed as |A| |B| is, and as two products where both are inexact.
    const SINGLE: bool;

    /// |x| of every element.
    fn magnitudes(values: &[f64]) -> Vec<Self>;

    /// Bounds on errors, in the unit that sums of kind [`Kind::Carried`] expect.
    fn errors(errors: &[f64]) -> Cow<'_, [Self]>;

    /// The bound on a sum of up to [`TERMS`] terms that was computed as `self`.
    fn settle(self, terms: usize, kind: Kind) -> f64;

    /// Adds the product of `x` and `y` to `to`.
    fn multiply(x: ArrayView2<'_, Self>, y: ArrayView2<'_, Self>, to: ArrayViewMut2<'_, f64>, kind: Kind);
}

/// What is summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Products of magnitudes; `exact` where none can underflow.
    Magnitudes { exact: bool },
    /// Products with an error.
    Carried,
}

/// 2^-150: what a float32 product may lose by underflow.
const LEAST_HALF: f64 = f64::from_bits((1023 - 150) << 52);

impl Precision for f64 {
    const SINGLE: bool = false;

    fn magnitudes(values: &[f64]) -> Vec<f64> {
        values.par_iter().map(|x| x.abs()).collect()
    }

    fn errors(errors: &[f64]) -> Cow<'_, [f64]> {
        Cow::Borrowed(errors)
    }

    fn settle(self, _: usize, _: Kind) -> f64 {
        self
    }

    fn multiply(x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>, mut to: ArrayViewMut2<'_, f64>, _: Kind) {
        general_mat_mul(1.0, &x, &y, 1.0, &mut to);
    }
}

impl Precision for f32 {
    const SINGLE: bool = true;

    fn magnitudes(values: &[f64]) -> Vec<f32> {
        values.par_iter().map(|x| at_least(x.abs())).collect()
    }

    fn errors(errors: &[f64]) -> Cow<'_, [f32]> {
        Cow::Owned(errors.par_iter().map(|e| at_least(e * ERROR_UNIT)).collect())
    }

    #[inline(always)]
    fn settle(self, terms: usize, kind: Kind) -> f64 {
        let u = 1.0 / (1 << 24) as f64;
        let terms = terms as f64;
        let unit = if kind == Kind::Carried { 1.0 / ERROR_UNIT } else { 1.0 };
        let lost = if kind == (Kind::Magnitudes { exact: true }) { 0.0 } else { terms * LEAST_HALF };
        (f64::from(self) + lost) * ((1.0 + (terms + 6.0) * 1.01 * u) * unit)
    }

    fn multiply(x: ArrayView2<'_, f32>, y: ArrayView2<'_, f32>, mut to: ArrayViewMut2<'_, f64>, kind: Kind) {
        let (rows, columns) = to.dim();
        let mut sums = vec![0.0f32; rows * columns];
        for start in (0..x.ncols()).step_by(TERMS) {
            let range = start..x.ncols().min(start + TERMS);
            let terms = range.len();
            let (x, y) = (x.slice_axis(Axis(1), range.clone().into()), y.slice_axis(Axis(0), range.into()));
            let mut sums = ArrayViewMut2::from_shape((rows, columns), &mut sums)
                .expect("the vector was made of rows times columns elements");
            if rows == 1 && (y.strides()[0] == 1 || terms == 1) {
                general_mat_vec_mul(1.0, &y.t(), &x.row(0), 0.0, &mut sums.row_mut(0));
            } else {
                general_mat_mul(1.0, &x, &y, 0.0, &mut sums);
            }
            to.zip_mut_with(&sums, |to, &sum| *to += sum.settle(terms, kind));
        }
    }
}

/// The least float32 that is not below x >= 0.
#[inline(always)]
fn at_least(x: f64) -> f32 {
    let nearest = x as f32;
    f32::from_bits(nearest.to_bits() + u32::from(f64::from(nearest) < x))
}

/// Two operands of products as magnitudes and error bounds.
pub(super) struct Factors<'a, T: Precision> {
    pub left: Factor<'a, T>,
    pub right: Factor<'a, T>,
    /// |A| + dA in place of |A| by dB, where that makes dA dB superfluous.
    reach: Option<Vec<T>>,
    exact: bool,
}

/// One of them.
pub(super) struct Factor<'a, T: Precision> {
    pub magnitude: Vec<T>,
    pub error: Option<Cow<'a, [T]>>,
}

impl<T: Precision> Factor<'_, T> {
    /// Its magnitudes, or its errors where `erring`.
    pub(super) fn storage(&self, erring: bool) -> &[T] {
        self.error.as_deref().filter(|_| erring).unwrap_or(&self.magnitude)
    }
}

impl<'a, T: Precision> Factors<'a, T> {
    /// `exact` is what [`suits_single`] says.
    pub(super) fn new(left: &'a Operand<'_>, right: &'a Operand<'_>, exact: bool) -> Factors<'a, T> {
        let of = |t: &'a Operand<'_>| Factor {
            magnitude: T::magnitudes(&t.values),
            error: t.error.as_deref().map(T::errors),
        };
        let reach = match (&left.error, &right.error) {
            (Some(e), Some(_)) if T::SINGLE => {
                let sums: Vec<f64> = left.values.par_iter().zip(&e[..]).map(|(x, e)| x.abs() + e).collect();
                Some(T::magnitudes(&sums))
            }
            _ => None,
        };
        Factors { left: of(left), right: of(right), reach, exact }
    }

    /// Of which kind sums of magnitudes are.
    pub(super) fn kind(&self) -> Kind {
        Kind::Magnitudes { exact: self.exact }
    }

    /// The sums that make the two figures: of which kind, by which storage of the left operand, and whether with the errors
    /// of the right one.
    pub(super) fn sums(&self) -> impl Iterator<Item = (Kind, &[T], bool)> {
        let (left, inexact) = (&self.left, self.right.error.is_some());
        let magnitude = &left.magnitude[..];
        let error = left.error.as_deref();
        [
            Some((self.kind(), magnitude, false)),
            inexact.then(|| (Kind::Carried, self.reach.as_deref().unwrap_or(magnitude), true)),
            error.map(|e| (Kind::Carried, e, false)),
            error.filter(|_| inexact && self.reach.is_none()).map(|e| (Kind::Carried, e, true)),
        ]
        .into_iter()
        .flatten()
    }
}

/// Do sums of up to `terms` products of the operands' magnitudes and errors stay within float32, in an op whose results are of
/// dtype `result` and so computed in float32? If so, is it certain that no product of magnitudes underflows?
pub(super) fn suits_single(
    result: DType,
    left: &Operand<'_>,
    right: &Operand<'_>,
    terms: usize,
) -> Option<bool> {
    if result == DType::F64 || result.float_format().is_none() {
        return None;
    }
    let of = |t: &Operand<'_>| {
        let (greatest, least) = extent(&t.values)?;
        let (error, _) = t.error.as_ref().map_or(Some((0.0, 0.0)), |e| extent(e))?;
        Some((greatest + error * ERROR_UNIT, least))
    };
    // A factor of two below float32's greatest number for the roundings.
    let limit = f64::from(f32::MAX) / 2.0;
    let ((l, l_least), (r, r_least)) = (of(left)?, of(right)?);
    let fits = l < limit && r < limit && l * r * (terms as f64) < limit;
    fits.then_some(l_least * r_least >= f64::from(f32::MIN_POSITIVE))
}

/// The greatest magnitude and the least that is not 0 (infinite without one); `None` where there is a NaN or an infinity.
fn extent(values: &[f64]) -> Option<(f64, f64)> {
    // The bits of magnitudes are ordered as they are; those of 0, less 1, are the greatest integer.
    let (greatest, least) = values
        .par_chunks(1 << 14)
        .map(|chunk| {
            chunk.iter().fold((0, u64::MAX), |(greatest, least): (u64, u64), x| {
                let bits = x.abs().to_bits();
                (greatest.max(bits), least.min(bits.wrapping_sub(1)))
            })
        })
        .reduce(|| (0, u64::MAX), |a, b| (a.0.max(b.0), a.1.min(b.1)));
    let greatest = f64::from_bits(greatest);
    let least = if least == u64::MAX { f64::INFINITY } else { f64::from_bits(least + 1) };
    greatest.is_finite().then_some((greatest, least))
}

/// A matrix in memory, row-major.
pub(super) fn matrix<T>(data: &[T], rows: usize, columns: usize) -> ArrayView2<'_, T> {
    ArrayView2::from_shape((rows, columns), data).expect("the slice holds rows times columns elements")
}

/// Adds the product of `x` and `y` to `to`, which is row-major, in parts.
pub(super) fn accumulate<T: Precision>(
    x: ArrayView2<'_, T>,
    y: ArrayView2<'_, T>,
    to: &mut [f64],
    kind: Kind,
) {
    let to = ArrayViewMut2::from_shape((x.nrows(), y.ncols()), to)
        .expect("the slice holds rows times columns elements");
    in_parts(x, y, to, kind, &|rows, columns, terms| rows * columns > AREA || rows * columns * terms > WORK);
}

fn in_parts<T: Precision>(
    x: ArrayView2<'_, T>,
    y: ArrayView2<'_, T>,
    to: ArrayViewMut2<'_, f64>,
    kind: Kind,
    too_large: &(impl Fn(usize, usize, usize) -> bool + Sync),
) {
    let ((rows, terms), columns) = (x.dim(), y.ncols());
    if rows == 0 || columns == 0 || terms == 0 {
        return;
    }
    // Of whole register tiles, and never a single row, which is multiplied in another order.
    let half = rows.max(columns) / 32 * 16;
    if half == 0 || !too_large(rows, columns, terms) {
        T::multiply(x, y, to, kind);
    } else if rows > columns {
        let ((above, below), (to_above, to_below)) = (x.split_at(Axis(0), half), to.split_at(Axis(0), half));
        rayon::join(
            || in_parts(above, y, to_above, kind, too_large),
            || in_parts(below, y, to_below, kind, too_large),
        );
    } else {
        let ((left, right), (to_left, to_right)) = (y.split_at(Axis(1), half), to.split_at(Axis(1), half));
        rayon::join(
            || in_parts(x, left, to_left, kind, too_large),
            || in_parts(x, right, to_right, kind, too_large),
        );
    }
}

/// The figures of sums of `terms` products with the given sum of magnitudes (a bias counted in) by element.
///
/// Where the magnitudes together exceed the arithmetic's greatest number, a partial sum may overflow in one order and not in
/// another: nothing bounds the loss.
pub(super) fn figures(
    y: &Enclosure,
    scale: Vec<f64>,
    carried: Option<Vec<f64>>,
    terms: f64,
    biased: bool,
) -> Levels {
    let a = Arithmetic::of(y.value.dtype());
    if a.out.is_none() {
        return Levels { worst: vec![0.0; y.len()], usual: None, scale, terms };
    }
    let gamma = a.gamma(terms + f64::from(u8::from(biased)));
    let sqrt = 4.0 * a.u * (terms + 1.0).sqrt();
    let underflow = terms * a.eta;
    let from = [From::Each(&y.center), From::Each(&scale), From::or_zero(carried.as_deref())];
    let [worst, usual] = by_run(y.len(), usize::MAX, |_, at, part| {
        let count = part[0].len();
        each(
            from.map(|from| from.part(at, count)),
            part,
            #[inline(always)]
            |[y, scale, carried]| {
                let carried = carried * (1.0 + gamma);
                if scale * (1.0 + gamma) >= a.max {
                    let worst = if y.is_finite() { f64::INFINITY } else { 0.0 };
                    return [worst, worst];
                }
                let worst = gamma * scale + underflow + carried;
                let usual = (sqrt * scale + a.u * y.abs() + underflow + carried).min(worst);
                [a.stored(y, worst), a.stored(y, usual)]
            },
        );
    });
    Levels { worst, usual: Some(usual), scale, terms }
}

#[cfg(test)]
mod tests;
