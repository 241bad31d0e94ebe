//! Certified products of float64 matrices.
//!
//! Formula: y_ij = sum_k a_ik b_kj (+ bias).
//!
//! Method: Dot2 (Ogita, Rump, Oishi, SIAM J. Sci. Comput. 26 (2005), algorithm 5.3): products by TwoProd, their sum s by
//! TwoSum, the errors of both in a second sum c. Vectorised over the columns of a packed panel. Elements that hi + lo =
//! TwoSum(s, c) with its radius does not round go through three words ([`expansion`](super::expansion)).
//!
//! Error: s plus all 2K errors is the exact sum. c adds these 2K numbers, whose absolute sum is at most gamma_K |a||b|, with
//! at most K + 1 roundings on the way of each: |s + c - y| <= gamma_{K+2}^2 |a||b|, and sum_k |a_ik||b_kj| <= K max|a_i|
//! max|b_j|. A bias is one further term. The few roundings of the radius itself are covered by a factor 1 + 2^-50.
//!
//! Range: TwoProd is exact where no product that is not zero falls below 2^-968 and none overflows. Elements whose row and
//! column do not promise that (by their least and greatest magnitudes) are left pending; so are those of NaN and infinities.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;
use ulpian_spec::{DType, Storage, TensorType};

use super::Candidate;
use super::expansion::refine;
use super::gemm::{Columns, Matrix};
use crate::eft::{two_prod, two_sum};

/// Rows and vectors of the register tile.
const MR: usize = 2;
const NV: usize = 2;

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

/// Greatest and least magnitude (zeros aside) of each row or column.
struct Magnitudes {
    most: Vec<f64>,
    least: Vec<f64>,
}

fn magnitudes(count: usize, terms: usize, get: impl Fn(usize, usize) -> f64) -> Magnitudes {
    let mut m = Magnitudes { most: vec![0.0; count], least: vec![f64::INFINITY; count] };
    for k in 0..terms {
        for i in 0..count {
            let x = get(i, k).abs();
            // Unlike `max`, keeps NaN.
            m.most[i] = if x <= m.most[i] { m.most[i] } else { x };
            m.least[i] = m.least[i].min(if x == 0.0 { f64::INFINITY } else { x });
        }
    }
    m
}

/// Computes the product into `out` from position `base` on.
pub(super) fn certify<B: Columns>(p: &Problem<'_, B>, out: &mut Results, base: usize) {
    let size = p.rows * p.columns;
    if size == 0 {
        return;
    }
    let rows = magnitudes(p.rows, p.terms, |i, k| p.a.get(i, k));
    let columns = magnitudes(p.columns, p.terms, |j, k| p.b.get(k, j));
    let band = p.rows.div_ceil(rayon::current_num_threads()).next_multiple_of(MR);
    let part = base..base + size;
    let pending: Vec<usize> = out.center[part.clone()]
        .par_chunks_mut(band * p.columns)
        .zip(out.low[part.clone()].par_chunks_mut(band * p.columns))
        .zip(out.radius[part].par_chunks_mut(band * p.columns))
        .enumerate()
        .flat_map_iter(|(t, ((center, low), radius))| {
            let first = t * band;
            Arch::new().dispatch(Dot2 { p, first, s: center, c: low });
            let mut pending = Vec::new();
            for (at, ((center, low), radius)) in center.iter_mut().zip(low).zip(radius).enumerate() {
                let (i, j) = (first + at / p.columns, at % p.columns);
                if !finish(p, i, j, &rows, &columns, [center, low, radius]) {
                    pending.push(base + first * p.columns + at);
                }
            }
            pending
        })
        .collect();
    out.pending.extend(pending);
}

/// Rounds element (i, j) from s and c; true where that is decided.
fn finish<B: Columns>(
    p: &Problem<'_, B>,
    i: usize,
    j: usize,
    rows: &Magnitudes,
    columns: &Magnitudes,
    [center, low, radius]: [&mut f64; 3],
) -> bool {
    let bias = match p.bias {
        Bias::None => 0.0,
        Bias::Columns(bias) => bias[j],
        Bias::Rows(bias) => bias[i],
    };
    let terms = p.terms as f64;
    let most = terms * rows.most[i] * columns.most[j] + bias.abs();
    // 2^1000 and 2^-960
    let in_range = most < f64::from_bits((1000 + 1023) << 52)
        && rows.least[i] * columns.least[j] >= f64::from_bits((1023 - 960) << 52);
    if !in_range {
        return false;
    }
    let gamma = (terms + 3.0) * (f64::EPSILON / 2.0) * (1.0 + 1e-6);
    if terms > 1e9 {
        return false;
    }
    let (s, e) = two_sum(*center, bias);
    let c = *low + e;
    let (hi, lo) = two_sum(s, c);
    let r = gamma * gamma * most * (1.0 + f64::EPSILON * 4.0);
    let wide = r * (1.0 + f64::EPSILON * 4.0) + lo.abs() * f64::EPSILON + f64::MIN_POSITIVE;
    if hi + (lo + wide) == hi && hi + (lo - wide) == hi && hi != 0.0 {
        (*center, *low, *radius) = (hi, lo, r + f64::MIN_POSITIVE);
        return true;
    }
    let products = (0..p.terms).flat_map(|k| {
        let (x, e) = two_prod(p.a.get(i, k), p.b.get(k, j));
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

/// The sums s and errors c of a band of rows from `first` on.
struct Dot2<'p, 'a, B> {
    p: &'p Problem<'a, B>,
    first: usize,
    s: &'p mut [f64],
    c: &'p mut [f64],
}

impl<B: Columns> WithSimd for Dot2<'_, '_, B> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Dot2 { p, first, s, c } = self;
        let nr = NV * S::F64_LANES;
        let n = p.columns;
        if p.terms == 0 {
            return;
        }
        let mut panel = vec![0.0; nr * p.terms];
        let mut left = vec![0.0; MR * p.terms];
        for j in (0..n).step_by(nr) {
            let width = nr.min(n - j);
            p.b.pack(0, p.terms, j, width, nr, &mut panel);
            for (t, (s, c)) in s.chunks_mut(MR * n).zip(c.chunks_mut(MR * n)).enumerate() {
                let rows = s.len() / n;
                for (k, to) in left.chunks_exact_mut(MR).enumerate() {
                    for r in 0..rows {
                        to[r] = p.a.get(first + t * MR + r, k);
                    }
                }
                let (sums, errors) = kernel(simd, &left, &panel);
                for r in 0..rows {
                    let sums: &[f64] = pulp::bytemuck::cast_slice(&sums[r]);
                    let errors: &[f64] = pulp::bytemuck::cast_slice(&errors[r]);
                    s[r * n + j..][..width].copy_from_slice(&sums[..width]);
                    c[r * n + j..][..width].copy_from_slice(&errors[..width]);
                }
            }
        }
    }
}

type Tile<S> = [[<S as Simd>::f64s; NV]; MR];

#[inline(always)]
fn kernel<S: Simd>(simd: S, a: &[f64], b: &[f64]) -> (Tile<S>, Tile<S>) {
    let zero = simd.splat_f64s(0.0);
    let (mut sums, mut errors) = ([[zero; NV]; MR], [[zero; NV]; MR]);
    let (a, _) = a.as_chunks::<MR>();
    let (b, _) = S::as_simd_f64s(b);
    let (b, _) = b.as_chunks::<NV>();
    for (a, b) in a.iter().zip(b) {
        for r in 0..MR {
            let x = simd.splat_f64s(a[r]);
            for v in 0..NV {
                let s = sums[r][v];
                let p = simd.mul_f64s(x, b[v]);
                let e = simd.mul_add_f64s(x, b[v], simd.neg_f64s(p));
                let z = simd.add_f64s(s, p);
                let bb = simd.sub_f64s(z, s);
                let t = simd.add_f64s(simd.sub_f64s(s, simd.sub_f64s(z, bb)), simd.sub_f64s(p, bb));
                sums[r][v] = z;
                errors[r][v] = simd.add_f64s(errors[r][v], simd.add_f64s(t, e));
            }
        }
    }
    (sums, errors)
}
