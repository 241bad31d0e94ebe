//! Sums of products: |A| |B| and what inexact operands add to it, shared by matmul, linear and conv2d.

use ndarray::{ArrayView2, ArrayViewMut2, linalg::general_mat_mul};
use rayon::prelude::*;
use ulpian_spec::Enclosure;

use super::{Arithmetic, Levels};

/// A matrix of magnitudes and one of error bounds, row-major; `transposed` reads (n, k) storage as (k, n).
#[derive(Clone, Copy)]
pub(super) struct Matrix<'a> {
    pub magnitude: &'a [f64],
    pub error: Option<&'a [f64]>,
    pub rows: usize,
    pub columns: usize,
    pub transposed: bool,
}

impl Matrix<'_> {
    fn view<'b>(&self, data: &'b [f64]) -> ArrayView2<'b, f64> {
        let (stored_rows, stored_columns) =
            if self.transposed { (self.columns, self.rows) } else { (self.rows, self.columns) };
        let view = ArrayView2::from_shape((stored_rows, stored_columns), data)
            .expect("the slice holds rows times columns elements");
        if self.transposed { view.reversed_axes() } else { view }
    }
}

/// Adds |A| |B| to `scale` and |A| dB + dA |B| + dA dB to `carried`, both (rows of A, columns of B) and row-major.
pub(super) fn accumulate(a: Matrix<'_>, b: Matrix<'_>, scale: &mut [f64], carried: Option<&mut [f64]>) {
    let shape = (a.rows, b.columns);
    if shape.0 == 0 || shape.1 == 0 || a.columns == 0 {
        return;
    }
    let add = |x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>, to: &mut [f64]| {
        let mut to =
            ArrayViewMut2::from_shape(shape, to).expect("the slice holds rows times columns elements");
        general_mat_mul(1.0, &x, &y, 1.0, &mut to);
    };
    add(a.view(a.magnitude), b.view(b.magnitude), scale);
    if let Some(carried) = carried {
        if let Some(error) = b.error {
            add(a.view(a.magnitude), b.view(error), carried);
        }
        if let Some(error) = a.error {
            add(a.view(error), b.view(b.magnitude), carried);
            if let Some(other) = b.error {
                add(a.view(error), b.view(other), carried);
            }
        }
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
        return Levels { worst: vec![0.0; y.len()], usual: vec![0.0; y.len()], scale, terms };
    }
    let gamma = a.gamma(terms + f64::from(u8::from(biased)));
    let sqrt = 4.0 * a.u * (terms + 1.0).sqrt();
    let (worst, usual) = (0..y.len())
        .into_par_iter()
        .map(|i| {
            let carried = carried.as_ref().map_or(0.0, |c| c[i]) * (1.0 + gamma);
            if scale[i] * (1.0 + gamma) >= a.max {
                let worst = if y.center[i].is_finite() { f64::INFINITY } else { 0.0 };
                return (worst, worst);
            }
            let underflow = terms * a.eta;
            let worst = gamma * scale[i] + underflow + carried;
            let usual = (sqrt * scale[i] + a.u * y.center[i].abs() + underflow + carried).min(worst);
            (a.stored(y.center[i], worst), a.stored(y.center[i], usual))
        })
        .unzip();
    Levels { worst, usual, scale, terms }
}

/// |x| of every element.
pub(super) fn magnitudes(values: &[f64]) -> Vec<f64> {
    values.par_iter().map(|x| x.abs()).collect()
}
