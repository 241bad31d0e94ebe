//! Products of matrices of balls in float64 alone: what takes the least time where wide balls will do.
//!
//! Formula: C[i, j] = sum over k of A[i, k] B[k, j] (+ bias).
//! Method: the high parts' product in float64 ([`multiply`]); the low parts join the radii.
//!
//! Error bound, u = 2^-53: with R = r + |lo| for either operand, |.| Euclidean norms of a row or a column (Cauchy-Schwarz) and
//! n = [`roundings`] for K terms,
//!
//!   radius = |a| (gamma_n |b| + |RB|) + |RA| (|b| + |RB|),
//!
//! for the exact product of numbers within the balls differs from that of the high parts by at most |a| RB + RA (|b| + RB), term by
//! term, and multiply loses gamma_n |a| |b|. A norm sums K squares with 2 K + 1 roundings at most and is inflated by 1 + (2 K + 16) u; a square
//! that underflows loses less than 2^-1022, so that 2^-480 is added to the norm of what is not zero. Where the smallest magnitudes that
//! occur multiply to less than 2^-960, each term adds 2^-1068 for products that underflow. The radius, of few roundings of
//! non-negative terms, is multiplied by 1 + 2^-48. A bias is added by TwoSum, whose error joins the radius.
//! Special values: what meets an unknown operand, and what overflows, is unknown; its centre is 0.

use std::ops::Range;

use rayon::prelude::*;

use super::ball::UP;
use super::dot;
use super::tensor::Balls;
use crate::eft::two_sum;
use crate::fast::conv2d::square;
use crate::fast::gemm::{Columns, Matrix, multiply, roundings};

use crate::round::exp2i;
use crate::vectorize;

/// Least rows of a band that is computed by one thread.
const LEAST_BAND: usize = 24;

/// At least the Euclidean norms of rows or columns: of the high parts, and of everything else that a ball holds.
pub(super) struct Norms {
    pub(super) high: Vec<f64>,
    /// Zero throughout where empty.
    pub(super) rest: Vec<f64>,
}

impl Norms {
    /// From sums of `terms` squares, in float64.
    pub(super) fn of_squares(high: Vec<f64>, rest: Option<Vec<f64>>, terms: usize) -> Norms {
        let inflation = 1.0 + (terms as f64 + 8.0) * f64::EPSILON;
        let root = |sum: f64| if sum == 0.0 { 0.0 } else { (sum.sqrt() + exp2i(-480)) * inflation };
        let roots = |sums: Vec<f64>| sums.into_iter().map(root).collect();
        Norms { high: roots(high), rest: rest.map(roots).unwrap_or_default() }
    }

    /// Of some rows.
    pub(super) fn rows(&self, range: Range<usize>) -> Norms {
        let rest = if self.rest.is_empty() { Vec::new() } else { self.rest[range.clone()].to_vec() };
        Norms { high: self.high[range].to_vec(), rest }
    }

    fn rest(&self, i: usize) -> f64 {
        self.rest.get(i).copied().unwrap_or(0.0)
    }
}

/// What each ball holds beside its high part, r + |lo|, rounded up; `None` where that is zero throughout.
pub(super) fn rest(balls: &Balls) -> Option<Vec<f64>> {
    match (balls.lows(), balls.radii()) {
        ([], []) => None,
        ([], radii) => Some(radii.to_vec()),
        (lows, []) => Some(lows.iter().map(|lo| lo.abs()).collect()),
        (lows, radii) => Some(lows.iter().zip(radii).map(|(lo, r)| (lo.abs() + r) * UP).collect()),
    }
}

/// Sums of squares ([`square`]) of `count` rows of `terms` elements, `stride` and `step` apart.
pub(super) fn squares(data: &[f64], count: usize, terms: usize, [stride, step]: [usize; 2]) -> Vec<f64> {
    let mut sums = vec![0.0; count];
    vectorize(
        #[inline(always)]
        || {
            if step == 1 {
                for (i, to) in sums.iter_mut().enumerate() {
                    let mut lanes = [0.0f64; 8];
                    let (chunks, rest) = data[i * stride..][..terms].as_chunks::<8>();
                    for chunk in chunks {
                        for (lane, x) in lanes.iter_mut().zip(chunk) {
                            *lane += square(*x);
                        }
                    }
                    *to = lanes.iter().sum::<f64>() + rest.iter().map(|&x| square(x)).sum::<f64>();
                }
            } else {
                for k in 0..terms {
                    let from = data[k * step..].iter().step_by(stride.max(1));
                    for (to, x) in sums.iter_mut().zip(from) {
                        *to += square(*x);
                    }
                }
            }
        },
    );
    sums
}

/// Added to a product.
#[derive(Clone, Copy)]
pub(super) enum Bias<'a> {
    None,
    /// Element `at` of these balls to every element of row 0, the next one to row 1...
    Rows(&'a Balls, usize),
    /// An element to each column.
    Columns(&'a Balls),
}

/// One product: `rows` x `terms` by `terms` x `columns`.
pub(super) struct Problem<'a, B> {
    /// The high parts.
    pub(super) a: Matrix<'a, f64>,
    pub(super) b: &'a B,
    pub(super) left: &'a Norms,
    pub(super) right: &'a Norms,
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) terms: usize,
    pub(super) bias: Bias<'a>,
    /// May products underflow?
    pub(super) underflow: bool,
    /// Into how many bands of rows it is split at most.
    pub(super) bands: usize,
}

/// May a product of two elements fall below float64's normal range?
pub(super) fn underflows(a: &Balls, b: &Balls) -> bool {
    dot::smallest(a) * dot::smallest(b) < exp2i(-960)
}

/// Writes the product, row-major, as centres and radii; low parts are zero.
pub(super) fn product<B: Columns>(p: &Problem<'_, B>, hi: &mut [f64], radius: &mut [f64]) {
    if p.rows == 0 || p.columns == 0 {
        return;
    }
    let n = roundings(p.terms) * (f64::EPSILON / 2.0);
    let gamma = if n < 0.5 { n / (1.0 - n) * UP } else { f64::INFINITY };
    let underflow = if p.underflow { p.terms as f64 * exp2i(-1068) } else { 0.0 };
    // |RA| multiplies the second, |a| the first.
    let by_rest: Vec<f64> = (0..p.columns).map(|j| (p.right.high[j] + p.right.rest(j)) * UP).collect();
    let by_high: Vec<f64> =
        (0..p.columns).map(|j| (gamma * p.right.high[j] + p.right.rest(j)) * UP).collect();
    let band = p.rows.div_ceil(p.bands.max(1)).max(LEAST_BAND);
    hi.par_chunks_mut(band * p.columns).zip(radius.par_chunks_mut(band * p.columns)).enumerate().for_each(
        |(t, (hi, radius))| {
            let first = t * band;
            let rows = hi.len() / p.columns;
            multiply(
                p.a,
                #[inline(always)]
                |_, x| x,
                first..first + rows,
                p.columns,
                p.terms,
                p.b,
                hi,
            );
            let lines = hi.chunks_exact_mut(p.columns).zip(radius.chunks_exact_mut(p.columns));
            for (i, (hi, radius)) in lines.enumerate() {
                let i = first + i;
                let (high, rest) = (p.left.high[i], p.left.rest(i));
                vectorize(
                    #[inline(always)]
                    || {
                        for (r, (x, y)) in radius.iter_mut().zip(by_high.iter().zip(&by_rest)) {
                            *r = (high * x + rest * y + underflow) * UP;
                        }
                        match p.bias {
                            Bias::None => {}
                            Bias::Rows(bias, at) => {
                                let bias = bias.get(at + i);
                                for (c, r) in hi.iter_mut().zip(radius.iter_mut()) {
                                    (*c, *r) = plus(*c, *r, bias);
                                }
                            }
                            Bias::Columns(bias) => {
                                for (j, (c, r)) in hi.iter_mut().zip(radius.iter_mut()).enumerate() {
                                    (*c, *r) = plus(*c, *r, bias.get(j % bias.len()));
                                }
                            }
                        }
                        for (c, r) in hi.iter_mut().zip(radius.iter_mut()) {
                            let known = (*c + *r).is_finite();
                            (*c, *r) = (if known { *c } else { 0.0 }, if known { *r } else { f64::INFINITY });
                        }
                    },
                );
            }
        },
    );
}

#[inline(always)]
fn plus(center: f64, radius: f64, bias: super::Ball) -> (f64, f64) {
    let (sum, error) = two_sum(center, bias.center.hi);
    let more = error.abs() + bias.center.lo.abs() + bias.radius;
    (sum, if more == 0.0 { radius } else { (radius + more) * UP })
}
