//! Products of matrices of balls.
//!
//! Formula: C[i, j] = sum over k of A[i, k] B[k, j].
//! Method: compensated (Ogita, Rump, Oishi, Accurate sum and dot product, SIAM J. Sci. Comput. 26 (2005), algorithm 5.3 with
//! the low parts added): s sums the products of the high parts; what each step loses, e_k = pe + se + al bh + ah bl, is a float64
//! sum that c collects; a = sum of |e_k|. The result is s + c. Columns are computed side by side in vector lanes, and every
//! element is summed in the order of k, so the result does not depend on the machine.
//!
//! Error bound, u = 2^-53: pe and se are exact. With |al| <= u |ah| and |bl| <= u |bh|, forming e_k in float64 and leaving al bl out
//! costs at most 3 u |e_k| + 3.1 u (|al| |bh| + |ah| |bl|) (each of the three additions rounds once, and the earlier partial
//! sums differ from e_k by the terms not yet added). Adding K numbers e_k costs at most gamma_(K-1) a. So the centre is off by at
//! most (K + 4) u a + sum of 3.1 u (|al| |bh| + |ah| |bl|); the second part is computed along with the radii by taking
//! R = r + 3.2 u |lo| for the radius r of either operand:
//!
//!   radius = (K + 4) u a + sum of (RA (|B| + rB) + |A| RB), times 1 + (K + 8) 2^-51 for its own roundings.
//!
//! On integers and other data where nothing is rounded, a = 0 and the radius is 0: zero results are exact zeros.
//! Underflow: where the smallest magnitudes that occur multiply to less than 2^-960, each term adds 2^-1068 to the radius.
//! Special values: an unknown operand makes unknown what it meets, even if it meets a zero.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::tensor::Balls;
use crate::dd::Dd;
use crate::eft::two_sum;
use crate::round::exp2i;

/// Least rows of a task, all of which share one packing of the other matrix's columns.
const ROWS: usize = 16;

/// Elements that one task of [`least`] looks at.
const LEAST_CHUNK: usize = 1 << 14;

/// Rows of the left matrix, each of `depth` consecutive elements.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub(super) depth: usize,
    pub(super) hi: &'a [f64],
    /// Empty where zero.
    pub(super) lo: &'a [f64],
    /// Empty where zero.
    pub(super) radius: &'a [f64],
}

impl<'a> Rows<'a> {
    /// Of a tensor: the rows from element `start` on, `len` elements in all.
    pub(super) fn of(tensor: &'a Balls, start: usize, len: usize, depth: usize) -> Rows<'a> {
        let part = |v: &'a [f64]| if v.is_empty() { v } else { &v[start..start + len] };
        Rows { depth, hi: part(tensor.highs()), lo: part(tensor.lows()), radius: part(tensor.radii()) }
    }
}

/// The right matrix: element (k, j) is element `index(k, j)` of the tensor, or zero where that is `None`.
pub(super) struct Columns<'a, F> {
    pub(super) tensor: &'a Balls,
    /// [`smallest`] of the tensor's parts, which several products may share.
    pub(super) smallest: f64,
    pub(super) count: usize,
    pub(super) index: F,
}

/// One product, row-major, written to `hi`, `lo` and `radius`. Runs in parallel over rows.
pub(super) fn product<F: Fn(usize, usize) -> Option<usize> + Sync>(
    a: Rows<'_>,
    b: &Columns<'_, F>,
    hi: &mut [f64],
    lo: &mut [f64],
    radius: &mut [f64],
) {
    let n = b.count;
    if n == 0 || hi.is_empty() {
        return;
    }
    let underflow = if least(&[a.hi, a.lo, a.radius]) * b.smallest < exp2i(-960) {
        a.depth as f64 * exp2i(-1068)
    } else {
        0.0
    };
    let rows = (hi.len() / n).div_ceil(rayon::current_num_threads()).max(ROWS);
    let run = |block: usize, hi: &mut [f64], lo: &mut [f64], radius: &mut [f64]| {
        Arch::new().dispatch(Block { a, b, first_row: block * rows, underflow, hi, lo, radius });
    };
    hi.par_chunks_mut(rows * n)
        .zip(lo.par_chunks_mut(rows * n))
        .zip(radius.par_chunks_mut(rows * n))
        .enumerate()
        .for_each(|(block, ((hi, lo), radius))| run(block, hi, lo, radius));
}

/// The least magnitude other than zero of a tensor's centres, low parts and radii.
pub(super) fn smallest(tensor: &Balls) -> f64 {
    least(&[tensor.highs(), tensor.lows(), tensor.radii()])
}

/// The least magnitude other than zero.
fn least(parts: &[&[f64]]) -> f64 {
    let of = |v: &&[f64]| {
        let least = |v: &[f64]| {
            v.iter().map(|x| if *x == 0.0 { f64::INFINITY } else { x.abs() }).fold(f64::INFINITY, f64::min)
        };
        v.par_chunks(LEAST_CHUNK).map(least).reduce(|| f64::INFINITY, f64::min)
    };
    parts.iter().map(of).fold(f64::INFINITY, f64::min)
}

/// Some rows of the result.
struct Block<'a, 'b, F> {
    a: Rows<'a>,
    b: &'a Columns<'a, F>,
    first_row: usize,
    underflow: f64,
    hi: &'b mut [f64],
    lo: &'b mut [f64],
    radius: &'b mut [f64],
}

impl<F: Fn(usize, usize) -> Option<usize>> WithSimd for Block<'_, '_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let a_ball = !(self.a.lo.is_empty() && self.a.radius.is_empty());
        let b_ball = !(self.b.tensor.lows().is_empty() && self.b.tensor.radii().is_empty());
        match (a_ball, b_ball) {
            (false, false) => self.rows::<S, false, false>(simd),
            (false, true) => self.rows::<S, false, true>(simd),
            (true, false) => self.rows::<S, true, false>(simd),
            (true, true) => self.rows::<S, true, true>(simd),
        }
    }
}

impl<F: Fn(usize, usize) -> Option<usize>> Block<'_, '_, F> {
    #[inline(always)]
    fn rows<S: Simd, const A_BALL: bool, const B_BALL: bool>(self, simd: S) {
        const { assert!(S::F64_LANES <= 8) }
        let width = S::F64_LANES;
        let depth = self.a.depth;
        let n = self.b.count;
        let inflation = 1.0 + (depth + 8) as f64 * 4.0 * f64::EPSILON / 2.0;
        let rounding = (depth + 4) as f64 * (f64::EPSILON / 2.0);
        // The panel of `width` columns: high parts, low parts, magnitudes with radius, widened radii.
        let mut panel = vec![0.0; depth * width];
        let ball_len = if B_BALL { panel.len() } else { 0 };
        let mut panel_lo = vec![0.0; ball_len];
        let mut panel_size = vec![0.0; if A_BALL || B_BALL { panel.len() } else { 0 }];
        let mut panel_radius = vec![0.0; ball_len];
        let rows = self.hi.len() / n;
        let mut a_radius = vec![0.0; if A_BALL { rows * depth } else { 0 }];
        for (i, r) in a_radius.iter_mut().enumerate() {
            let at = self.first_row * depth + i;
            *r = widened(self.a.lo.get(at), self.a.radius.get(at));
        }
        let zeros = vec![0.0; if A_BALL && self.a.lo.is_empty() { depth } else { 0 }];
        for first in (0..n).step_by(width) {
            let columns = width.min(n - first);
            for k in 0..depth {
                for j in 0..columns {
                    let at = (self.b.index)(k, first + j);
                    let slot = k * width + j;
                    let hi = at.map_or(0.0, |at| self.b.tensor.highs()[at]);
                    panel[slot] = hi;
                    if A_BALL {
                        panel_size[slot] = hi.abs();
                    }
                    if B_BALL {
                        let lo = at.map_or(0.0, |at| self.b.tensor.low(at));
                        let r = at.map_or(0.0, |at| self.b.tensor.radius(at));
                        panel_lo[slot] = lo;
                        panel_size[slot] = hi.abs() + r;
                        panel_radius[slot] = widened(Some(&lo), Some(&r));
                    }
                }
            }
            let (b_hi, _) = S::as_simd_f64s(&panel);
            let (b_lo, _) = S::as_simd_f64s(&panel_lo);
            let (b_size, _) = S::as_simd_f64s(&panel_size);
            let (b_radius, _) = S::as_simd_f64s(&panel_radius);
            for row in 0..rows {
                let at = (self.first_row + row) * depth;
                let a_hi = &self.a.hi[at..at + depth];
                let a_lo = if !A_BALL {
                    a_hi
                } else if self.a.lo.is_empty() {
                    &zeros
                } else {
                    &self.a.lo[at..at + depth]
                };
                let a_radius = if A_BALL { &a_radius[row * depth..(row + 1) * depth] } else { a_hi };
                let (s, c, a, r) =
                    dot::<S, A_BALL, B_BALL>(simd, [a_hi, a_lo, a_radius], [b_hi, b_lo, b_size, b_radius]);
                let mut lanes = [[0.0f64; 8]; 4];
                for (lane, v) in lanes.iter_mut().zip([s, c, a, r]) {
                    S::as_mut_simd_f64s(&mut lane[..width]).0[0] = v;
                }
                for j in 0..columns {
                    let [s, c, a, r] = [0, 1, 2, 3].map(|part| lanes[part][j]);
                    let (hi, lo) = two_sum(s, c);
                    let radius = (rounding * a + r + self.underflow) * inflation;
                    let ball = super::ball::Ball::new(Dd { hi, lo }, radius);
                    let to = row * n + first + j;
                    self.hi[to] = ball.center.hi;
                    self.lo[to] = ball.center.lo;
                    self.radius[to] = ball.radius;
                }
            }
        }
    }
}

/// r + 3.2 u |lo|.
#[inline(always)]
fn widened(lo: Option<&f64>, r: Option<&f64>) -> f64 {
    r.copied().unwrap_or(0.0) + lo.copied().unwrap_or(0.0).abs() * (3.2 * f64::EPSILON / 2.0)
}

/// s, c, a and the radius sum of one row with `S::F64_LANES` columns.
#[inline(always)]
fn dot<S: Simd, const A_BALL: bool, const B_BALL: bool>(
    simd: S,
    [a_hi, a_lo, a_radius]: [&[f64]; 3],
    [b_hi, b_lo, b_size, b_radius]: [&[S::f64s]; 4],
) -> (S::f64s, S::f64s, S::f64s, S::f64s) {
    let zero = simd.splat_f64s(0.0);
    let (mut s, mut c, mut a, mut r) = (zero, zero, zero, zero);
    for k in 0..a_hi.len() {
        let ah = simd.splat_f64s(a_hi[k]);
        let bh = b_hi[k];
        let p = simd.mul_f64s(ah, bh);
        let minus_pe = simd.mul_add_f64s(simd.splat_f64s(-a_hi[k]), bh, p);
        let sum = simd.add_f64s(s, p);
        let t = simd.sub_f64s(sum, s);
        let se = simd.add_f64s(simd.sub_f64s(s, simd.sub_f64s(sum, t)), simd.sub_f64s(p, t));
        s = sum;
        let mut e = simd.sub_f64s(se, minus_pe);
        if A_BALL {
            e = simd.mul_add_f64s(simd.splat_f64s(a_lo[k]), bh, e);
            r = simd.mul_add_f64s(simd.splat_f64s(a_radius[k]), b_size[k], r);
        }
        if B_BALL {
            e = simd.mul_add_f64s(ah, b_lo[k], e);
            r = simd.mul_add_f64s(simd.splat_f64s(a_hi[k].abs()), b_radius[k], r);
        }
        c = simd.add_f64s(c, e);
        a = simd.add_f64s(a, simd.abs_f64s(e));
    }
    (s, c, a, r)
}
