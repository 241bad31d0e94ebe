//! Certified products of float32 matrices (and of float16 and bfloat16 ones, which float32 holds).
//!
//! Formula: y_ij = sum_k a_ik b_kj (+ bias).
//!
//! Method, element by element until the rounding is unique:
//! 1. C = fl(A B) in float64 ([`gemm`](super::gemm)).
//! 2. Exactness: with 2^e the least set bit of row i of A and 2^f that of column j of B, every partial sum in every order is a
//!    multiple of 2^(e+f). If |a_i| |b_j| <= 2^53 2^(e+f) (Euclidean norms), all of them are float64 numbers, so every addition
//!    was exact and the radius is 0. Always tried for 16-bit data, where it mostly holds, and for float32 data where the next
//!    step leaves much undecided (data of few bits: ties, sums that cancel to zero).
//! 3. Radius gamma_K |a_i| |b_j| >= gamma_K sum_k |a_ik| |b_kj| >= |C - AB| (Cauchy-Schwarz).
//! 4. The single element in three float64 words ([`expansion`](super::expansion)).
//!
//! Error: products of float32 are exact in float64, so only additions round: K u / (1 - K u) with u = 2^-53 for any order. The
//! norms are computed with K + 2 roundings of relative size u and inflated by (1 + (K + 8) u); the radius, three more
//! roundings, by (1 + 2^-50). The bias is added by TwoSum, whose error joins the radius.
//!
//! Special values: a NaN or an infinity makes a norm NaN or infinite, and its row or column is left pending.

use std::sync::OnceLock;

use rayon::prelude::*;
use ulpian_spec::dtype::FloatFormat;

use super::decide::{Narrow, decide};
use super::expansion::refine;
use super::gemm::{Columns, Matrix, multiply};
use super::vectorize;
use crate::eft::two_sum;

/// Least rows of a band that is computed by one thread.
const LEAST_BAND: usize = 24;

/// What is known of each row of A or column of B.
pub(super) struct Norms {
    /// At least the Euclidean norm.
    pub norm: Vec<f64>,
    /// At least the Euclidean norm over the least set bit of any element; empty where not computed.
    pub scaled: Vec<f64>,
}

/// Added to every row of the product.
#[derive(Clone, Copy)]
pub(super) enum Bias<'a> {
    None,
    /// An element per column.
    Columns(&'a [f32]),
    /// An element per row.
    Rows(&'a [f32]),
}

/// One product: `rows` x `terms` by `terms` x `columns`.
pub(super) struct Problem<'a, B> {
    pub a: Matrix<'a, f32>,
    pub b: &'a B,
    pub rows: usize,
    pub columns: usize,
    pub terms: usize,
    pub bias: Bias<'a>,
    /// Of the result's dtype.
    pub format: FloatFormat,
    /// Try exactness at once.
    pub few_bits: bool,
    /// Split into this many bands of rows, at most, each packing the right operand for itself.
    pub bands: usize,
}

/// The right operand of a certified product.
pub(super) trait Operand: Columns {
    /// The norms of all columns.
    fn norms(&self, terms: usize, columns: usize, scaled: bool) -> Norms;
}

impl Operand for Matrix<'_, f32> {
    fn norms(&self, terms: usize, columns: usize, scaled: bool) -> Norms {
        let transposed = Matrix { data: self.data, row_stride: self.col_stride, col_stride: self.row_stride };
        row_norms(transposed, columns, terms, scaled)
    }
}

/// The value of the least set bit of a float32; infinity for 0.
#[inline(always)]
pub(super) fn least_bit(x: f32) -> f64 {
    let bits = x.to_bits();
    let field = (bits >> 23) & 0xff;
    let hidden = if field == 0 { 0 } else { 1 << 23 };
    let significand = (bits & 0x7f_ffff) | hidden;
    let lowest = f64::from((significand & significand.wrapping_neg()) as i32);
    // 2^(max(field, 1) - 150)
    let scale = f64::from_bits((u64::from(field.max(1)) + (1023 - 150)) << 52);
    if significand == 0 { f64::INFINITY } else { lowest * scale }
}

/// An upper bound of the root of a sum of `terms` squares that was computed in any order in float64.
#[inline(always)]
pub(super) fn root_above(sum: f64, terms: usize) -> f64 {
    sum.sqrt() * (1.0 + (terms as f64 + 8.0) * f64::EPSILON / 2.0)
}

/// The norms of the rows of a matrix.
pub(super) fn row_norms(a: Matrix<'_, f32>, rows: usize, terms: usize, scaled: bool) -> Norms {
    let mut squares = vec![0.0; rows];
    let mut least = vec![f64::INFINITY; if scaled { rows } else { 0 }];
    vectorize(
        #[inline(always)]
        || {
            if a.col_stride == 1 {
                for (i, to) in squares.iter_mut().enumerate() {
                    let row = &a.data[i * a.row_stride..][..terms];
                    *to = sum_of_squares(row);
                    if let Some(least) = least.get_mut(i) {
                        *least = row.iter().fold(f64::INFINITY, |m, &x| m.min(least_bit(x)));
                    }
                }
            } else {
                for k in 0..terms {
                    let start = k * a.col_stride;
                    if a.row_stride == 1 {
                        let line = &a.data[start..][..rows];
                        for (to, &x) in squares.iter_mut().zip(line) {
                            *to += f64::from(x) * f64::from(x);
                        }
                        for (to, &x) in least.iter_mut().zip(line) {
                            *to = to.min(least_bit(x));
                        }
                    } else {
                        for (i, to) in squares.iter_mut().enumerate() {
                            let x = a.data[start + i * a.row_stride];
                            *to += f64::from(x) * f64::from(x);
                            if let Some(least) = least.get_mut(i) {
                                *least = least.min(least_bit(x));
                            }
                        }
                    }
                }
            }
        },
    );
    finish_norms(squares, least, terms)
}

/// Norms from sums of squares and least bits.
pub(super) fn finish_norms(mut squares: Vec<f64>, least: Vec<f64>, terms: usize) -> Norms {
    squares.iter_mut().for_each(|s| *s = root_above(*s, terms));
    // The least bit is a power of two from 2^-149 to 2^127: the quotient is exact, and 0 for a row of zeros.
    let scaled = least.iter().zip(&squares).map(|(&bit, &norm)| norm / bit).collect();
    Norms { norm: squares, scaled }
}

#[inline(always)]
fn sum_of_squares(row: &[f32]) -> f64 {
    let mut lanes = [0.0f64; 16];
    let (chunks, rest) = row.as_chunks::<16>();
    for chunk in chunks {
        for (s, &x) in lanes.iter_mut().zip(chunk) {
            *s += f64::from(x) * f64::from(x);
        }
    }
    lanes.iter().sum::<f64>() + rest.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>()
}

/// Where a product's results go: row-major, of the product's size.
pub(super) struct Out<'o, T> {
    pub center: &'o mut [f64],
    pub radius: &'o mut [f64],
    pub value: &'o mut [T],
}

/// Computes the product; returns the undecided positions, each plus `base`.
pub(super) fn certify<T: Narrow, B: Operand>(p: &Problem<'_, B>, out: Out<'_, T>, base: usize) -> Vec<usize> {
    if p.rows == 0 || p.columns == 0 {
        return Vec::new();
    }
    let norms = OnceLock::new();
    let scaled = OnceLock::new();
    let both = |scaled| (row_norms(p.a, p.rows, p.terms, scaled), p.b.norms(p.terms, p.columns, scaled));
    if p.few_bits {
        scaled.get_or_init(|| both(true));
    } else {
        norms.get_or_init(|| both(false));
    }
    let band = p.rows.div_ceil(p.bands.max(1)).max(LEAST_BAND);
    let size = band * p.columns;
    out.center
        .par_chunks_mut(size)
        .zip(out.radius.par_chunks_mut(size))
        .zip(out.value.par_chunks_mut(size))
        .enumerate()
        .flat_map_iter(|(t, ((center, radius), value))| {
            let first = t * band;
            let rows = center.len() / p.columns;
            multiply(
                p.a,
                #[inline(always)]
                |_, x| x,
                first..first + rows,
                p.columns,
                p.terms,
                p.b,
                center,
            );
            let mut pending = Vec::new();
            let mut sums = vec![0.0; p.columns];
            let lines = center.chunks_exact_mut(p.columns).zip(radius.chunks_exact_mut(p.columns));
            for (i, ((center, radius), value)) in lines.zip(value.chunks_exact_mut(p.columns)).enumerate() {
                let before = pending.len();
                let at = (first + i) * p.columns;
                sums.copy_from_slice(center);
                let known = scaled.get().or_else(|| norms.get()).expect("one of the two is set above");
                bound(p, first + i, known, center, radius);
                decide(center, radius, value, at, &mut pending);
                if known.0.scaled.is_empty() && pending.len() - before > p.columns / 128 {
                    pending.truncate(before);
                    center.copy_from_slice(&sums);
                    bound(p, first + i, scaled.get_or_init(|| both(true)), center, radius);
                    decide(center, radius, value, at, &mut pending);
                }
            }
            pending.retain(|&at| {
                let local = at - first * p.columns;
                !refine_element(p, at, &mut center[local], &mut radius[local], &mut value[local])
            });
            pending.into_iter().map(move |at| base + at)
        })
        .collect()
}

/// Adds the bias to row `i` of the sums and bounds the error.
fn bound<B>(p: &Problem<'_, B>, i: usize, norms: &(Norms, Norms), center: &mut [f64], radius: &mut [f64]) {
    let (rows, columns) = norms;
    let ku = p.terms as f64 * (f64::EPSILON / 2.0);
    // 1.0 / (1 - ku), its roundings and those below within 1 + 2^-50; infinite where the bound does not hold.
    let gamma = if ku < 0.5 { ku / (1.0 - ku) * (1.0 + f64::EPSILON * 4.0) } else { f64::INFINITY };
    let factor = gamma * rows.norm[i];
    vectorize(
        #[inline(always)]
        || {
            if let Some(&scaled) = rows.scaled.get(i) {
                // 2^53 less the rounding of the product.
                let limit = 9007199254740992.0 * (1.0 - f64::EPSILON);
                for ((r, &norm), &other) in radius.iter_mut().zip(&columns.norm).zip(&columns.scaled) {
                    *r = if scaled * other <= limit { 0.0 } else { factor * norm };
                }
            } else {
                for (r, &norm) in radius.iter_mut().zip(&columns.norm) {
                    *r = factor * norm;
                }
            }
            match p.bias {
                Bias::None => {}
                Bias::Columns(bias) => {
                    for ((c, r), &b) in center.iter_mut().zip(radius.iter_mut()).zip(bias) {
                        (*c, *r) = add_bias(*c, *r, b);
                    }
                }
                Bias::Rows(bias) => {
                    let b = bias[i];
                    for (c, r) in center.iter_mut().zip(radius.iter_mut()) {
                        (*c, *r) = add_bias(*c, *r, b);
                    }
                }
            }
        },
    );
}

#[inline(always)]
fn add_bias(center: f64, radius: f64, bias: f32) -> (f64, f64) {
    let (s, e) = two_sum(center, f64::from(bias));
    (s, if e == 0.0 { radius } else { (radius + e.abs()) * (1.0 + f64::EPSILON) })
}

/// The element at row-major position `at` in three words; false where that does not decide it either.
fn refine_element<T: Narrow, B: Operand>(
    p: &Problem<'_, B>,
    at: usize,
    center: &mut f64,
    radius: &mut f64,
    value: &mut T,
) -> bool {
    let (i, j) = (at / p.columns, at % p.columns);
    let bias = match p.bias {
        Bias::None => 0.0,
        Bias::Columns(bias) => f64::from(bias[j]),
        Bias::Rows(bias) => f64::from(bias[i]),
    };
    let products = (0..p.terms).map(|k| p.a.get(i, k) * p.b.get(k, j));
    let refined = refine(p.format, products.chain([bias]));
    *center = refined.center;
    *radius = (refined.low.abs() + refined.radius) * (1.0 + f64::EPSILON);
    let Some(rounded) = refined.value else { return false };
    T::narrow(&[rounded as f32], std::slice::from_mut(value));
    true
}
