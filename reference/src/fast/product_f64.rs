//! Certified products of float64 matrices.
//!
//! Formula: y_ij = sum_k a_ik b_kj (+ bias).
//!
//! Method: A = A1 + A2 and B = B1 + B2 by rounding each row of A and column of B to multiples of a quantum, 2^-beta of the power
//! of two above its greatest element (Ozaki, Ogita, Oishi, Rump, Error-free transformations of matrix multiplication, Numer.
//! Algorithms 59 (2012)). Then AB = A1 B1 + A1 B2 + A2 B: three products in float64 ([`gemm`](super::gemm)), of which the first
//! is exact and the others are 2^-beta of it. What that leaves open is computed by Dot2 (Ogita, Rump, Oishi, SIAM J. Sci. Comput. 26
//! (2005), algorithm 5.3), column by column, and what that does, in three words ([`expansion`](super::expansion)).
//!
//! Error of the slices, u = 2^-53: elements of A1 and B1 are at most 2^beta quanta, so K products come to at most K 2^(2 beta) <= 2^53
//! products of quanta: every partial sum is exact. A2 = A - A1 is at most half a quantum and exact, for it keeps a part of A's bits. The
//! other two products lose gamma_n of sum |a1||b2| + |a2||b| <= (|a| + |a2|)|b2| + |a2||b|, n = [`gemm::roundings`](roundings) and |.|
//! Euclidean norms (Cauchy-Schwarz), inflated by (1 + (K + 8) u); adding them to each other and to a bias's TwoSum error rounds
//! twice. Rows and columns are treated so where their greatest element lies between 2^-900 and 2^900, or is zero.
//!
//! Error of Dot2 in 16 lanes: s plus all 2K errors is the exact sum. c adds these 2K numbers, whose absolute sum is at most gamma_K |a||b|,
//! with at most K + 35 roundings on the way of each: |s + c - y| <= gamma_{K+40}^2 |a||b|, and sum_k |a_ik||b_kj| <= K max|a_i|
//! max|b_j|. A bias is one further term. The few roundings of the radius itself are covered by a factor 1 + 2^-50.
//!
//! Range: TwoProd is exact where no product that is not zero falls below 2^-968 and none overflows; parts of an element are at least
//! 2^-52 of it, so their products stay normal. Elements whose row and column do not promise that (by their least and greatest
//! magnitudes) are left pending; so are those of NaN and infinities.
//!
//! Limit: three products in float64 are three times what torch.float64 computes.

use std::ops::Range;

use rayon::prelude::*;
use ulpian_spec::{DType, Storage, TensorType};

use super::expansion::refine;
use super::gemm::{Columns, Matrix, multiply, roundings};
use super::{Candidate, vectorize};
use crate::eft::{two_prod, two_sum};

/// 2^-53.
const UNIT: f64 = f64::EPSILON / 2.0;

/// Added to every row of the product.
#[derive(Clone, Copy)]
pub(super) enum Bias<'a> {
    None,
    /// An element per column.
    Columns(&'a [f64]),
    /// An element per row.
    Rows(&'a [f64]),
}

/// One product: `rows` x `terms` by `terms` x `columns`.
pub(super) struct Problem<'a, B> {
    pub a: Matrix<'a, f64>,
    pub b: &'a B,
    pub rows: usize,
    pub columns: usize,
    pub terms: usize,
    pub bias: Bias<'a>,
}

/// Row-major results under construction.
pub(super) struct Results {
    pub center: Vec<f64>,
    pub low: Vec<f64>,
    pub radius: Vec<f64>,
    pub pending: Vec<usize>,
}

impl Results {
    pub(super) fn new(len: usize) -> Results {
        Results { center: vec![0.0; len], low: vec![0.0; len], radius: vec![0.0; len], pending: Vec::new() }
    }

    /// As a float64 result, whose values are the centres.
    pub(super) fn into_candidate(self, ty: &TensorType) -> Candidate {
        debug_assert_eq!(ty.dtype, DType::F64);
        let value = Storage::F64(self.center.clone());
        let Results { center, low, radius, pending } = self;
        Candidate { ty: ty.clone(), center, low, radius, value, pending }
    }
}

/// What is known of each row or column.
struct Known {
    /// Greatest and least magnitude (zeros aside).
    most: Vec<f64>,
    least: Vec<f64>,
    /// Adding and subtracting this rounds to the quantum.
    anchor: Vec<f64>,
    /// At least the Euclidean norm, of the whole and of what lies below the quantum.
    norm: Vec<f64>,
    rest: Vec<f64>,
}

/// 2^e for e between -1022 and 1023.
fn power(e: i64) -> f64 {
    f64::from_bits(((e + 1023) as u64) << 52)
}

/// Of `count` rows, or with `COLUMNS` columns, of which `get(i, k)` is element k of number i.
fn known<const COLUMNS: bool>(count: usize, terms: usize, get: impl Fn(usize, usize) -> f64) -> Known {
    // In the order of memory, mostly.
    let visit = |f: &mut dyn FnMut(usize, f64)| {
        if COLUMNS {
            (0..terms).for_each(|k| (0..count).for_each(|i| f(i, get(i, k))));
        } else {
            (0..count).for_each(|i| (0..terms).for_each(|k| f(i, get(i, k))));
        }
    };
    let (mut most, mut least) = (vec![0.0; count], vec![f64::INFINITY; count]);
    visit(&mut |i, x| {
        let x = x.abs();
        // Unlike `max`, keeps NaN.
        most[i] = if x <= most[i] { most[i] } else { x };
        least[i] = if x == 0.0 || x > least[i] { least[i] } else { x };
    });
    // 2^e is above the greatest element where that is below 2^900.
    let exponent = |m: &f64| (((m.to_bits() >> 52) & 0x7ff) as i64 - 1022).clamp(-900, 901);
    let beta = (53 - i64::from(terms.max(1).next_power_of_two().trailing_zeros())) / 2;
    let exponents: Vec<i64> = most.iter().map(exponent).collect();
    let anchor: Vec<f64> = exponents.iter().map(|e| 1.5 * power(e - beta + 52)).collect();
    let scales: Vec<f64> = exponents.iter().map(|&e| power(-e)).collect();
    let (mut norm, mut rest) = (vec![0.0; count], vec![0.0; count]);
    visit(&mut |i, x| {
        let (whole, part) = (x * scales[i], below(anchor[i], x) * scales[i]);
        norm[i] += whole * whole;
        rest[i] += part * part;
    });
    let inflation = 1.0 + (terms as f64 + 8.0) * UNIT * 2.0;
    // Squares that underflow: fewer than 2^60 of less than 2^-1021.
    let root = |sum: f64| if sum == 0.0 { 0.0 } else { (sum.sqrt() + power(-480)) * inflation };
    for i in 0..count {
        norm[i] = root(norm[i]) * power(exponents[i]);
        rest[i] = root(rest[i]) * power(exponents[i]);
    }
    Known { most, least, anchor, norm, rest }
}

/// x to a multiple of the quantum.
#[inline(always)]
fn above(anchor: f64, x: f64) -> f64 {
    (x + anchor) - anchor
}

/// What is left of x.
#[inline(always)]
fn below(anchor: f64, x: f64) -> f64 {
    x - above(anchor, x)
}

/// B1, or with `REST` B2.
struct Slice<'b, B, const REST: bool> {
    b: &'b B,
    anchor: &'b [f64],
}

impl<B: Columns, const REST: bool> Columns for Slice<'_, B, REST> {
    #[inline(always)]
    fn pack(&self, k: usize, kc: usize, j: usize, width: usize, nr: usize, panel: &mut [f64]) {
        self.b.pack(k, kc, j, width, nr, panel);
        let anchor = &self.anchor[j..][..width];
        for row in panel.chunks_exact_mut(nr).take(kc) {
            for (x, &anchor) in row.iter_mut().zip(anchor) {
                *x = if REST { below(anchor, *x) } else { above(anchor, *x) };
            }
        }
    }
    #[inline(always)]
    fn get(&self, k: usize, j: usize) -> f64 {
        let x = self.b.get(k, j);
        if REST { below(self.anchor[j], x) } else { above(self.anchor[j], x) }
    }
}

/// `rows` of A by `k` terms, to be multiplied by `n` columns.
struct Product<'a> {
    a: Matrix<'a, f64>,
    anchor: &'a [f64],
    rows: Range<usize>,
    n: usize,
    k: usize,
}

impl Product<'_> {
    /// A1 times `b`.
    fn of_high(&self, b: &impl Columns, to: &mut [f64]) {
        multiply(
            self.a,
            #[inline(always)]
            |i, x| above(self.anchor[i], x),
            self.rows.clone(),
            self.n,
            self.k,
            b,
            to,
        );
    }

    /// A2 times `b`.
    fn of_rest(&self, b: &impl Columns, to: &mut [f64]) {
        multiply(
            self.a,
            #[inline(always)]
            |i, x| below(self.anchor[i], x),
            self.rows.clone(),
            self.n,
            self.k,
            b,
            to,
        );
    }
}

/// Computes the product into `out` from position `base` on.
pub(super) fn certify<B: Columns>(p: &Problem<'_, B>, out: &mut Results, base: usize) {
    let size = p.rows * p.columns;
    if size == 0 {
        return;
    }
    let rows = known::<false>(p.rows, p.terms, |i, k| p.a.get(i, k));
    let columns = known::<true>(p.columns, p.terms, |j, k| p.b.get(k, j));
    let band = p.rows.div_ceil(rayon::current_num_threads());
    let part = base..base + size;
    let pending: Vec<usize> = out.center[part.clone()]
        .par_chunks_mut(band * p.columns)
        .zip(out.low[part.clone()].par_chunks_mut(band * p.columns))
        .zip(out.radius[part].par_chunks_mut(band * p.columns))
        .enumerate()
        .flat_map_iter(|(t, ((center, low), radius))| {
            let first = t * band;
            let count = center.len() / p.columns;
            let (high, rest) = (
                Slice::<B, false> { b: p.b, anchor: &columns.anchor },
                Slice::<B, true> { b: p.b, anchor: &columns.anchor },
            );
            let (n, k) = (p.columns, p.terms);
            let product = Product { a: p.a, anchor: &rows.anchor, rows: first..first + count, n, k };
            product.of_high(&high, center);
            product.of_high(&rest, low);
            product.of_rest(p.b, radius);
            let (mut open, mut pending) = (Vec::new(), Vec::new());
            for (at, ((center, low), radius)) in
                center.iter_mut().zip(low.iter_mut()).zip(radius.iter_mut()).enumerate()
            {
                let element = Element { p, i: first + at / n, j: at % n, rows: &rows, columns: &columns };
                if !element.in_range() {
                    pending.push(at);
                } else if !element.of_slices([center, low, radius]) {
                    open.push((at % n, at / n));
                }
            }
            // Column by column, so that each is gathered once.
            open.sort_unstable();
            let (mut column, mut row) = (vec![0.0; k], vec![0.0; k]);
            for same in open.chunk_by(|a, b| a.0 == b.0) {
                let j = same[0].0;
                column.iter_mut().enumerate().for_each(|(k, to)| *to = p.b.get(k, j));
                for &(_, i) in same {
                    row.iter_mut().enumerate().for_each(|(k, to)| *to = p.a.get(first + i, k));
                    let at = i * n + j;
                    let element = Element { p, i: first + i, j, rows: &rows, columns: &columns };
                    if !element.of_dot(&row, &column, [&mut center[at], &mut low[at], &mut radius[at]]) {
                        pending.push(at);
                    }
                }
            }
            pending.sort_unstable();
            pending.into_iter().map(move |at| base + first * n + at)
        })
        .collect();
    out.pending.extend(pending);
}

/// Element (i, j) of the product.
struct Element<'p, 'a, B> {
    p: &'p Problem<'a, B>,
    i: usize,
    j: usize,
    rows: &'p Known,
    columns: &'p Known,
}

impl<B: Columns> Element<'_, '_, B> {
    fn bias(&self) -> f64 {
        match self.p.bias {
            Bias::None => 0.0,
            Bias::Columns(bias) => bias[self.j],
            Bias::Rows(bias) => bias[self.i],
        }
    }

    /// At least the sum of the terms' magnitudes.
    fn most(&self) -> f64 {
        self.p.terms as f64 * self.rows.most[self.i] * self.columns.most[self.j] + self.bias().abs()
    }

    fn in_range(&self) -> bool {
        let least = self.rows.least[self.i] * self.columns.least[self.j];
        self.most() < power(1000) && least >= power(-960) && self.p.terms < 1 << 29
    }

    /// From the three products, which give way to centre, low part and radius; true where that is decided.
    fn of_slices(&self, [center, low, radius]: [&mut f64; 3]) -> bool {
        let (i, j, rows, columns) = (self.i, self.j, self.rows, self.columns);
        let usable = |most: f64| most == 0.0 || (most > power(-900)) & (most < power(900));
        if !(usable(rows.most[i]) && usable(columns.most[j])) {
            return false;
        }
        let (second, third) = (*low, *radius);
        let (s, e) = two_sum(*center, self.bias());
        let c = (second + third) + e;
        let size = (rows.norm[i] + rows.rest[i]) * columns.rest[j] + rows.rest[i] * columns.norm[j];
        let gamma = roundings(self.p.terms) * UNIT * (1.0 + 1e-6);
        let r = gamma * size + 2.0 * UNIT * (second.abs() + third.abs() + e.abs()) * (1.0 + 1e-6);
        if s == 0.0 && size == 0.0 && e == 0.0 {
            (*center, *low, *radius) = (0.0, 0.0, 0.0);
            return true;
        }
        decided(s, c, r, [center, low, radius])
    }

    /// By Dot2, and then in three words.
    fn of_dot(&self, row: &[f64], column: &[f64], [center, low, radius]: [&mut f64; 3]) -> bool {
        let bias = self.bias();
        let (s, c) = vectorize(
            #[inline(always)]
            || dot2(row, column),
        );
        let (s, e) = two_sum(s, bias);
        let gamma = (self.p.terms as f64 + 40.0) * UNIT * (1.0 + 1e-6);
        let r = gamma * gamma * self.most() * (1.0 + f64::EPSILON * 4.0);
        if decided(s, c + e, r, [&mut *center, &mut *low, &mut *radius]) {
            return true;
        }
        let products = row.iter().zip(column).flat_map(|(&x, &y)| {
            let (x, e) = two_prod(x, y);
            [x, e]
        });
        let format = DType::F64.float_format().expect("a float dtype");
        let refined = refine(format, products.chain([bias]));
        let Some(value) = refined.value else { return false };
        (*center, *low, *radius) = (refined.center, refined.low, refined.radius);
        // A rounding that is not hi: the low part reaches half an ulp. Move the difference, exact by Sterbenz' lemma.
        if value != refined.center {
            (*center, *low) = (value, (refined.center - value) + refined.low);
        } else {
            *center = value;
        }
        true
    }
}

/// Is s + c within r rounded to hi = fl(s + c)? Then hi + lo within the radius is written.
fn decided(s: f64, c: f64, r: f64, [center, low, radius]: [&mut f64; 3]) -> bool {
    let (hi, lo) = two_sum(s, c);
    let wide = r * (1.0 + f64::EPSILON * 4.0) + lo.abs() * f64::EPSILON + f64::MIN_POSITIVE;
    let one = hi + (lo + wide) == hi && hi + (lo - wide) == hi && hi != 0.0;
    if one {
        (*center, *low, *radius) = (hi, lo, r * (1.0 + f64::EPSILON * 4.0) + f64::MIN_POSITIVE);
    }
    one
}

/// The sum of the products as s + c.
#[inline(always)]
fn dot2(a: &[f64], b: &[f64]) -> (f64, f64) {
    const LANES: usize = 16;
    let (mut sums, mut errors) = ([0.0; LANES], [0.0; LANES]);
    let mut add = |i: usize, x: f64, y: f64| {
        let (p, e) = two_prod(x, y);
        let (s, t) = two_sum(sums[i], p);
        sums[i] = s;
        errors[i] += t + e;
    };
    let ((full_a, rest_a), (full_b, rest_b)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (x, y) in full_a.iter().zip(full_b) {
        for i in 0..LANES {
            add(i, x[i], y[i]);
        }
    }
    for (i, (&x, &y)) in rest_a.iter().zip(rest_b).enumerate() {
        add(i, x, y);
    }
    let (mut s, mut c) = (0.0, 0.0);
    for i in 0..LANES {
        let (sum, e) = two_sum(s, sums[i]);
        s = sum;
        c += e + errors[i];
    }
    (s, c)
}

#[cfg(test)]
mod tests {
    use dashu_int::{IBig, UBig};

    use super::super::tests::{KINDS, Random, assert_element, scaled, scaled_product, tensor};
    use super::*;

    /// Several blocks of terms, every kind of data, and rows and columns on the borders of what is sliced.
    #[test]
    fn slices_enclose_and_round() {
        let mut random = Random(0x51ce_51ce);
        let (rows, columns, terms) = (9, 8, 530);
        for kind in KINDS {
            let ordinary = kind == KINDS[0];
            let x = tensor(&mut random, DType::F64, &[rows, terms], kind).to_f64_vec();
            let y = tensor(&mut random, DType::F64, &[terms, columns], kind).to_f64_vec();
            for scales in [[0, 0, 0], [-850, 700, 40], [899, -899, -700], [905, -905, -910]] {
                let a: Vec<f64> = x
                    .iter()
                    .enumerate()
                    .map(|(at, &x)| x * power(if ordinary { scales[at / terms % 3] } else { 0 }))
                    .collect();
                let b: Vec<f64> = y
                    .iter()
                    .enumerate()
                    .map(|(at, &y)| y * power(if ordinary { scales[(at % columns + 1) % 3] } else { 0 }))
                    .collect();
                let bias: Vec<f64> = (0..columns).map(|j| b[j] * 0.3).collect();
                let problem = Problem {
                    a: Matrix { data: &a, row_stride: terms, col_stride: 1 },
                    b: &Matrix { data: &b, row_stride: columns, col_stride: 1 },
                    rows,
                    columns,
                    terms,
                    bias: Bias::Columns(&bias),
                };
                let mut results = Results::new(rows * columns);
                certify(&problem, &mut results, 0);
                let candidate = results.into_candidate(&TensorType::new(DType::F64, [rows, columns]));
                for i in 0..rows * columns {
                    if candidate.pending.binary_search(&i).is_ok() {
                        continue;
                    }
                    let (row, column) = (i / columns, i % columns);
                    let sum = (0..terms)
                        .map(|k| scaled_product(a[row * terms + k], b[k * columns + column]))
                        .fold(scaled(bias[column]), |s, t: IBig| s + t);
                    assert_element(&candidate, i, &sum, &UBig::ONE);
                }
                if ordinary && scales == [0; 3] {
                    assert!(candidate.pending.is_empty());
                }
            }
        }
    }
}
