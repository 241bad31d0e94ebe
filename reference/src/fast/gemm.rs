//! C = fl(A B) in float64, rounded in an unspecified order: the fast half of a certified product.
//!
//! Method: the blocked product of Goto and van de Geijn (ACM TOMS 34 (2008), article 12). A band of A is packed into panels
//! of [`MR`] rows, blocks of B into panels of `NR` = [`NV`] vectors of columns, and a register tile of [`MR`] x `NR` sums is
//! kept over a block of [`KC`] terms. The right operand is packed by a [`Columns`] implementation, so that a transposed
//! matrix or the patches of a convolution are never built in memory.
//!
//! Error: none here but float64's additions. Products of two float32 are exact in float64 (48 bits, 2^-298 to 2^256), so with
//! or without FMA every element is a sum of K exact terms in some order, padding zeros apart, and
//! |C - AB| <= gamma_{K-1} |A||B| with u = 2^-53 (Higham, Accuracy and Stability of Numerical Algorithms, 4.2). Products of
//! float64 round as well; by the blocks of terms no term goes through more than [`roundings`], so gamma of that holds for any A and B
//! whose products stay within float64's normal range.
//!
//! Limit: 2 M N K operations at 16 a cycle (two 256-bit FMA units); the tile needs 8 loads
//! for 12 FMA and 15 of 16 registers (4 rows by 3 vectors need all 16, and LLVM spills one).

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

/// Rows of the register tile.
const MR: usize = 6;
/// Vectors of columns of the register tile.
const NV: usize = 2;
/// Terms of a block: a panel of B (KC x NR) stays in the first-level cache.
const KC: usize = 256;
/// Rows of a block: MC x KC of A stays in the second-level cache.
const MC: usize = 96;
/// Columns of a block of B.
const NC: usize = 480;

/// The right operand of a product, by columns.
pub(crate) trait Columns: Sync {
    /// Writes rows `k..k + kc` of columns `j..j + width` to `panel`, row by row with stride `nr` >= `width`; columns beyond
    /// `width` are left alone (they hold zeros or earlier numbers, and their sums are dropped).
    fn pack(&self, k: usize, kc: usize, j: usize, width: usize, nr: usize, panel: &mut [f64]);
    /// Element (k, j).
    fn get(&self, k: usize, j: usize) -> f64;
}

/// An element that float64 holds.
pub(crate) trait Element: Copy + Send + Sync + 'static {
    /// The same number.
    fn wide(self) -> f64;
}

impl Element for f32 {
    #[inline(always)]
    fn wide(self) -> f64 {
        f64::from(self)
    }
}

impl Element for f64 {
    #[inline(always)]
    fn wide(self) -> f64 {
        self
    }
}

/// A matrix in memory: element (i, j) at `data[i * row_stride + j * col_stride]`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Matrix<'a, E> {
    /// The elements.
    pub data: &'a [E],
    /// Distance of vertical neighbours.
    pub row_stride: usize,
    /// Distance of horizontal neighbours.
    pub col_stride: usize,
}

impl<E: Element> Columns for Matrix<'_, E> {
    #[inline(always)]
    fn pack(&self, k: usize, kc: usize, j: usize, width: usize, nr: usize, panel: &mut [f64]) {
        if self.col_stride == 1 {
            for (kk, row) in panel.chunks_exact_mut(nr).take(kc).enumerate() {
                let from = &self.data[(k + kk) * self.row_stride + j..][..width];
                for (to, &x) in row.iter_mut().zip(from) {
                    *to = x.wide();
                }
            }
        } else {
            for jj in 0..width {
                let start = k * self.row_stride + (j + jj) * self.col_stride;
                let from = self.data[start..].iter().step_by(self.row_stride.max(1)).take(kc);
                for (to, &x) in panel[jj..].iter_mut().step_by(nr).zip(from) {
                    *to = x.wide();
                }
            }
        }
    }
    #[inline(always)]
    fn get(&self, k: usize, j: usize) -> f64 {
        self.data[k * self.row_stride + j * self.col_stride].wide()
    }
}

/// The most roundings that a term of a sum of `k` goes through: its product's, those within its block, and one per block.
pub(crate) fn roundings(k: usize) -> f64 {
    (1 + KC.min(k) + k.div_ceil(KC)) as f64
}

/// c (row-major) = `rows` of `a` times the `n` columns of `b`, over `k` terms. `map(i, x)` stands for every element x of row i of `a`;
/// it must be `#[inline(always)]`.
pub(crate) fn multiply<E: Element>(
    a: Matrix<'_, E>,
    map: impl Fn(usize, f64) -> f64,
    rows: Range<usize>,
    n: usize,
    k: usize,
    b: &impl Columns,
    c: &mut [f64],
) {
    let (i0, m) = (rows.start, rows.len());
    Arch::new().dispatch(Product { a, map, i0, m, n, k, b, c });
}

struct Product<'a, 'c, E, F, B> {
    a: Matrix<'a, E>,
    map: F,
    i0: usize,
    m: usize,
    n: usize,
    k: usize,
    b: &'a B,
    c: &'c mut [f64],
}

impl<E: Element, F: Fn(usize, f64) -> f64, B: Columns> WithSimd for Product<'_, '_, E, F, B> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Product { a, map, i0, m, n, k, b, c } = self;
        if k == 0 {
            c.fill(0.0);
            return;
        }
        let nr = NV * S::F64_LANES;
        let nc = NC.div_ceil(nr).min(n.div_ceil(nr)) * nr;
        let m_panels = m.div_ceil(MR);
        let packed_a = pack_rows(a, map, i0, m, k);
        let mut packed_b = vec![0.0; nc * KC.min(k)];
        for jc in (0..n).step_by(nc) {
            let columns = nc.min(n - jc);
            for pc in (0..k).step_by(KC) {
                let kc = KC.min(k - pc);
                for (jr, panel) in (0..columns).step_by(nr).zip(packed_b.chunks_exact_mut(kc * nr)) {
                    b.pack(pc, kc, jc + jr, nr.min(columns - jr), nr, panel);
                }
                let block_a = &packed_a[pc * m_panels * MR..][..kc * m_panels * MR];
                for ic in (0..m_panels).step_by(MC / MR) {
                    let ic_end = (ic + MC / MR).min(m_panels);
                    for (jr, panel_b) in (0..columns).step_by(nr).zip(packed_b.chunks_exact(kc * nr)) {
                        let width = nr.min(columns - jr);
                        for ip in ic..ic_end {
                            let panel_a = &block_a[ip * kc * MR..][..kc * MR];
                            let tile = kernel(simd, panel_a, panel_b);
                            let rows = MR.min(m - ip * MR);
                            let corner = ip * MR * n + jc + jr;
                            store(simd, tile, &mut c[corner..], n, rows, width, pc == 0);
                        }
                    }
                }
            }
        }
    }
}

/// The rows in float64, block of terms by block of terms, panel of rows by panel of rows, term by term.
#[inline(always)]
fn pack_rows<E: Element>(
    a: Matrix<'_, E>,
    map: impl Fn(usize, f64) -> f64,
    i0: usize,
    m: usize,
    k: usize,
) -> Vec<f64> {
    let m_panels = m.div_ceil(MR);
    let mut packed = vec![0.0; m_panels * MR * k];
    for pc in (0..k).step_by(KC) {
        let kc = KC.min(k - pc);
        let block = &mut packed[pc * m_panels * MR..][..kc * m_panels * MR];
        for (ip, panel) in block.chunks_exact_mut(kc * MR).enumerate() {
            for r in 0..MR.min(m - ip * MR) {
                let i = i0 + ip * MR + r;
                let start = i * a.row_stride + pc * a.col_stride;
                if a.col_stride == 1 {
                    for (to, &x) in panel[r..].iter_mut().step_by(MR).zip(&a.data[start..][..kc]) {
                        *to = map(i, x.wide());
                    }
                } else {
                    let from = a.data[start..].iter().step_by(a.col_stride.max(1)).take(kc);
                    for (to, &x) in panel[r..].iter_mut().step_by(MR).zip(from) {
                        *to = map(i, x.wide());
                    }
                }
            }
        }
    }
    packed
}

#[inline(always)]
fn kernel<S: Simd>(simd: S, a: &[f64], b: &[f64]) -> [[S::f64s; NV]; MR] {
    let mut tile = [[simd.splat_f64s(0.0); NV]; MR];
    let (a, _) = a.as_chunks::<MR>();
    let (b, _) = S::as_simd_f64s(b);
    let (b, _) = b.as_chunks::<NV>();
    for (a, b) in a.iter().zip(b) {
        for r in 0..MR {
            let x = simd.splat_f64s(a[r]);
            for v in 0..NV {
                tile[r][v] = simd.mul_add_f64s(x, b[v], tile[r][v]);
            }
        }
    }
    tile
}

/// Adds the tile to the matrix whose rows are `stride` apart, or writes it there the `first` time.
#[inline(always)]
fn store<S: Simd>(
    simd: S,
    tile: [[S::f64s; NV]; MR],
    c: &mut [f64],
    stride: usize,
    rows: usize,
    width: usize,
    first: bool,
) {
    let full = width == NV * S::F64_LANES;
    for (r, sums) in tile.iter().enumerate().take(rows) {
        let row = &mut c[r * stride..][..width];
        if full {
            let (row, _) = S::as_mut_simd_f64s(row);
            for (to, &sum) in row.iter_mut().zip(sums) {
                *to = if first { sum } else { simd.add_f64s(*to, sum) };
            }
        } else {
            let sums: &[f64] = pulp::bytemuck::cast_slice(sums);
            for (to, &sum) in row.iter_mut().zip(sums) {
                *to = if first { sum } else { *to + sum };
            }
        }
    }
}
