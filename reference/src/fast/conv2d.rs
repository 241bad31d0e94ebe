//! conv2d.
//!
//! Formula: y[n, o, p, q] = bias[o] + sum over c, i, j of w[o, c, i, j] x[n, c0 + c, p s_h + i d_h - t, q s_w + j d_w - l], with
//! x zero outside its planes and c0 the first channel of o's group.
//!
//! Method: per image and group the product of the weights (O / groups x K, K = C / groups kH kW) with the patches (K x P), which
//! are packed panel by panel and never stand in memory. Error bounds are those of [`product`](super::product) and
//! [`product_f64`](super::product_f64); padding adds zero terms, which are exact. The norm of a patch is the root of a sum over
//! the kernel's window of the planes' squares: K additions in all.
//!
//! Special values: outputs whose window or filter holds NaN or infinities are left pending.

use std::borrow::Cow;

use half::{bf16, f16};
use rayon::prelude::*;
use ulpian_spec::ops::{Padding, conv2d::Conv2d};
use ulpian_spec::{DType, HostTensor, Storage, TensorType};

use super::decide::Narrow;
use super::gemm::{Columns, Element, Matrix};
use super::matmul::{as_f32, with_narrow};
use super::product::{Bias, Norms, Operand, Out, Problem, certify, finish_norms, least_bit};
use super::{Candidate, product_f64};

/// Sizes of the call, per group.
pub(crate) struct Geometry {
    pub(crate) images: usize,
    pub(crate) groups: usize,
    /// Input channels, output channels of a group.
    channels: usize,
    pub(crate) filters: usize,
    input: [usize; 2],
    output: [usize; 2],
    kernel: [usize; 2],
    stride: [usize; 2],
    dilation: [usize; 2],
    /// Rows above and columns to the left of a plane.
    before: [usize; 2],
    /// Height and width of a padded plane, as far as windows reach.
    padded: [usize; 2],
}

impl Geometry {
    /// Of a call whose operands have these shapes; `None` for padding without measure.
    pub(crate) fn new<T>(
        op: &Conv2d<&T>,
        input: &[usize],
        weight: &[usize],
        result: &[usize],
    ) -> Option<Geometry> {
        let (x, w) = (input, weight);
        let (images, x) = match x.len() {
            3 => (1, x),
            4 => (x[0], &x[1..]),
            _ => return None,
        };
        let positive = |[a, b]: [i64; 2]| Some([usize::try_from(a).ok()?, usize::try_from(b).ok()?]);
        let (stride, dilation) = (positive(op.stride)?, positive(op.dilation)?);
        let groups = usize::try_from(op.groups).ok().filter(|&g| g > 0)?;
        let (input, kernel) = ([x[1], x[2]], [w[2], w[3]]);
        let before = match op.padding {
            Padding::Explicit(p) => positive(p)?,
            Padding::Valid => [0, 0],
            Padding::Same => [0, 1].map(|d| dilation[d] * kernel[d].saturating_sub(1) / 2),
        };
        let rank = result.len();
        let output = [result[rank - 2], result[rank - 1]];
        let reach = |d: usize| (output[d].max(1) - 1) * stride[d] + (kernel[d].max(1) - 1) * dilation[d] + 1;
        let padded = [0, 1].map(|d| reach(d).max(before[d] + input[d]));
        // Planes that are nearly all padding are left to the evaluation that needs none.
        let most = 8 * (x.iter().product::<usize>() + output[0] * output[1]) + (1 << 16);
        padded[0].checked_mul(padded[1])?.checked_mul(x[0].max(1)).filter(|&cells| cells <= most)?;
        Some(Geometry {
            images,
            groups,
            channels: x[0] / groups,
            filters: w[0] / groups,
            input,
            output,
            kernel,
            stride,
            dilation,
            before,
            padded,
        })
    }

    pub(crate) fn terms(&self) -> usize {
        self.channels * self.kernel[0] * self.kernel[1]
    }

    pub(crate) fn columns(&self) -> usize {
        self.output[0] * self.output[1]
    }

    /// The planes of an image and group with their padding.
    pub(crate) fn planes<'a, E: Element + Default>(&self, x: &'a [E], task: usize) -> Cow<'a, [E]> {
        let size = self.input[0] * self.input[1];
        let planes = &x[task * self.channels * size..][..self.channels * size];
        if self.padded == self.input {
            return Cow::Borrowed(planes);
        }
        let [height, width] = self.padded;
        let mut padded = vec![E::default(); self.channels * height * width];
        for (to, from) in
            padded.chunks_exact_mut((height * width).max(1)).zip(planes.chunks_exact(size.max(1)))
        {
            let rows = to.chunks_exact_mut(width).skip(self.before[0]);
            for (to, from) in rows.zip(from.chunks_exact(self.input[1])) {
                to[self.before[1]..][..self.input[1]].copy_from_slice(from);
            }
        }
        Cow::Owned(padded)
    }
}

/// x^2, and of numbers other than zero at least the least normal number, so that a sum of squares is zero for zeros alone.
#[inline(always)]
pub(crate) fn square(x: f64) -> f64 {
    x * x + if x == 0.0 { 0.0 } else { f64::MIN_POSITIVE }
}

/// The patches of one image and group as the columns of a matrix.
pub(crate) struct Patches<'a, E> {
    geometry: &'a Geometry,
    planes: &'a [E],
    /// Where each term lies from a patch's first element.
    offsets: Vec<usize>,
}

impl<'a, E: Element> Patches<'a, E> {
    pub(crate) fn new(geometry: &'a Geometry, planes: &'a [E]) -> Self {
        let g = geometry;
        let [height, width] = g.padded;
        let mut offsets = Vec::with_capacity(g.terms());
        for c in 0..g.channels {
            for i in 0..g.kernel[0] {
                for j in 0..g.kernel[1] {
                    offsets.push((c * height + i * g.dilation[0]) * width + j * g.dilation[1]);
                }
            }
        }
        Patches { geometry, planes, offsets }
    }

    /// The first element of patch `column`.
    #[inline(always)]
    fn start(&self, column: usize) -> usize {
        let g = self.geometry;
        let (row, col) = (column / g.output[1], column % g.output[1]);
        row * g.stride[0] * g.padded[1] + col * g.stride[1]
    }
}

impl<E: Element> Columns for Patches<'_, E> {
    #[inline(always)]
    fn pack(&self, k: usize, kc: usize, j: usize, width: usize, nr: usize, panel: &mut [f64]) {
        let mut starts = [0usize; 32];
        let starts = &mut starts[..width];
        for (jj, start) in starts.iter_mut().enumerate() {
            *start = self.start(j + jj);
        }
        let step = self.geometry.stride[1];
        let reach = step * (width - 1);
        let in_one_row = starts[width - 1] == starts[0] + reach;
        for (row, &offset) in panel.chunks_exact_mut(nr).zip(&self.offsets[k..k + kc]) {
            if in_one_row {
                let from = &self.planes[offset + starts[0]..][..reach + 1];
                for (to, x) in row.iter_mut().zip(from.iter().step_by(step)) {
                    *to = x.wide();
                }
            } else {
                for (to, &start) in row.iter_mut().zip(starts.iter()) {
                    *to = self.planes[offset + start].wide();
                }
            }
        }
    }

    #[inline(always)]
    fn get(&self, k: usize, j: usize) -> f64 {
        self.planes[self.offsets[k] + self.start(j)].wide()
    }
}

impl<E: Element> Patches<'_, E> {
    /// By patch, the fold of `join` over the values that `of` gives for the elements: first over the channels of every place of the
    /// planes, and then over the kernel's window.
    fn reduced(&self, start: f64, of: impl Fn(E) -> f64, join: impl Fn(f64, f64) -> f64) -> Vec<f64> {
        let g = self.geometry;
        let [height, width] = g.padded;
        let plane = height * width;
        let mut places = vec![start; plane];
        for x in self.planes.chunks_exact(plane.max(1)) {
            for (to, &x) in places.iter_mut().zip(x) {
                *to = join(*to, of(x));
            }
        }
        let window = &self.offsets[..(g.kernel[0] * g.kernel[1]).min(self.offsets.len())];
        let mut patches = vec![start; g.columns()];
        for &offset in window {
            for row in 0..g.output[0] {
                let first = offset + row * g.stride[0] * width;
                let from = places[first..].iter().step_by(g.stride[1]);
                for (to, &x) in patches[row * g.output[1]..(row + 1) * g.output[1]].iter_mut().zip(from) {
                    *to = join(*to, x);
                }
            }
        }
        patches
    }

    /// By patch, the sum of its elements' squares, in float64 ([`square`]).
    pub(crate) fn squares(&self) -> Vec<f64> {
        self.reduced(0.0, |x| square(x.wide()), |sum, x| sum + x)
    }
}

impl Operand for Patches<'_, f32> {
    fn norms(&self, terms: usize, _columns: usize, scaled: bool) -> Norms {
        let least = if scaled { self.reduced(f64::INFINITY, least_bit, f64::min) } else { Vec::new() };
        finish_norms(self.squares(), least, terms)
    }
}

pub(super) fn conv2d(op: &Conv2d<&HostTensor>, ty: &TensorType) -> Option<Candidate> {
    let same = |t: &HostTensor| t.dtype() == ty.dtype;
    if !same(op.input) || !same(op.weight) || op.bias.is_some_and(|b| !same(b)) {
        return None;
    }
    let g = Geometry::new(op, op.input.shape(), op.weight.shape(), &ty.shape)?;
    if let (Storage::F64(x), Storage::F64(w)) = (op.input.storage(), op.weight.storage()) {
        let bias = match op.bias.map(HostTensor::storage) {
            Some(Storage::F64(b)) => Some(b.as_slice()),
            Some(_) => return None,
            None => None,
        };
        return Some(float64(&g, x, w, bias, ty));
    }
    let (x, w) = (as_f32(op.input)?, as_f32(op.weight)?);
    let bias = match op.bias {
        Some(b) => Some(as_f32(b)?),
        None => None,
    };
    with_narrow!(ty.dtype, narrow(&g, &x, &w, bias.as_deref(), ty))
}

fn narrow<T: Narrow>(g: &Geometry, x: &[f32], w: &[f32], bias: Option<&[f32]>, ty: &TensorType) -> Candidate {
    let (rows, columns, terms) = (g.filters, g.columns(), g.terms());
    let size = rows * columns;
    let tasks = g.images * g.groups;
    let len = size * tasks;
    let (mut center, mut radius, mut value) = (vec![0.0; len], vec![0.0; len], vec![T::default(); len]);
    let format = ty.dtype.float_format().expect("a float dtype");
    let bands = rayon::current_num_threads().div_ceil(tasks.max(1));
    let chunk = size.max(1);
    let pending = center
        .par_chunks_mut(chunk)
        .zip(radius.par_chunks_mut(chunk))
        .zip(value.par_chunks_mut(chunk))
        .enumerate()
        .flat_map_iter(|(task, ((center, radius), value))| {
            let group = task % g.groups;
            let planes = g.planes(x, task);
            let b = &Patches::new(g, &planes);
            let a = Matrix { data: &w[group * rows * terms..], row_stride: terms, col_stride: 1 };
            let bias = bias.map_or(Bias::None, |b| Bias::Rows(&b[group * rows..][..rows]));
            let few_bits = ty.dtype != DType::F32;
            let problem = Problem { a, b, rows, columns, terms, bias, format, few_bits, bands };
            certify(&problem, Out { center, radius, value }, task * size)
        })
        .collect();
    Candidate { ty: ty.clone(), center, low: Vec::new(), radius, value: T::into_storage(value), pending }
}

fn float64(g: &Geometry, x: &[f64], w: &[f64], bias: Option<&[f64]>, ty: &TensorType) -> Candidate {
    let (rows, columns, terms) = (g.filters, g.columns(), g.terms());
    let mut out = product_f64::Results::new(rows * columns * g.images * g.groups);
    for task in 0..g.images * g.groups {
        let group = task % g.groups;
        let planes = g.planes(x, task);
        let b = &Patches::new(g, &planes);
        let a = Matrix { data: &w[group * rows * terms..], row_stride: terms, col_stride: 1 };
        let bias =
            bias.map_or(product_f64::Bias::None, |b| product_f64::Bias::Rows(&b[group * rows..][..rows]));
        let problem = product_f64::Problem { a, b, rows, columns, terms, bias };
        product_f64::certify(&problem, &mut out, task * rows * columns);
    }
    out.into_candidate(ty)
}

#[cfg(test)]
mod tests {
    use dashu_int::UBig;
    use ulpian_spec::Op;

    use super::super::tests::{Data, KINDS, Random, assert_element, scaled, scaled_product, tensor};
    use super::*;
    use crate::Settings;

    #[test]
    fn every_attribute_and_kind_of_data() {
        let mut random = Random(0xfeed_beef_1234_5677);
        for round in 0..160 {
            let dtype = DType::FLOATS[round % 4];
            let kind = if round % 3 == 0 { KINDS[round / 3 % 6] } else { Data::Plain };
            let groups = 1 + random.below(3);
            let (c, o) = (groups * (1 + random.below(2)), groups * (1 + random.below(3)));
            let kernel = [1 + random.below(3), 1 + random.below(4)];
            let dilation = [1 + random.below(2), 1 + random.below(2)];
            let mut stride = [1 + random.below(3), 1 + random.below(2)];
            let padding = match random.below(4) {
                0 => Padding::Valid,
                1 => Padding::Same,
                _ => Padding::Explicit([random.below(3) as i64, random.below(3) as i64]),
            };
            if padding == Padding::Same {
                stride = [1, 1];
            }
            let input = [7 + random.below(6), 8 + random.below(9)];
            let images = random.below(3);
            let total = |d: usize| match padding {
                Padding::Valid => 0,
                Padding::Same => dilation[d] * (kernel[d] - 1),
                Padding::Explicit(p) => 2 * p[d] as usize,
            };
            let before = |d: usize| total(d) / 2;
            let out =
                [0, 1].map(|d| (input[d] + total(d) - dilation[d] * (kernel[d] - 1) - 1) / stride[d] + 1);
            let (xs, ys) = if images == 0 {
                (vec![c, input[0], input[1]], vec![o, out[0], out[1]])
            } else {
                (vec![images, c, input[0], input[1]], vec![images, o, out[0], out[1]])
            };
            let x = tensor(&mut random, dtype, &xs, kind);
            let w = tensor(&mut random, dtype, &[o, c / groups, kernel[0], kernel[1]], kind);
            let bias = tensor(&mut random, dtype, &[o], kind);
            let op = Conv2d {
                input: &x,
                weight: &w,
                bias: (round % 2 == 0).then_some(&bias),
                stride: stride.map(|s| s as i64),
                padding,
                dilation: dilation.map(|d| d as i64),
                groups: groups as i64,
            };
            let op = Op::Conv2d(op);
            let got = super::super::try_evaluate(&op, &[TensorType::new(dtype, ys)], &Settings::default());
            let got = got.expect("handled").remove(0);
            let (xd, wd, bd) = (x.to_f64_vec(), w.to_f64_vec(), bias.to_f64_vec());
            let per_group = c / groups;
            for at in 0..got.center.len() {
                let (q, p) = (at % out[1], at / out[1] % out[0]);
                let (f, n) = (at / (out[0] * out[1]) % o, at / (out[0] * out[1] * o));
                let mut sum = if round % 2 == 0 { scaled(bd[f]) } else { scaled(0.0) };
                for ch in 0..per_group {
                    for i in 0..kernel[0] {
                        for j in 0..kernel[1] {
                            let row = (p * stride[0] + i * dilation[0]).wrapping_sub(before(0));
                            let col = (q * stride[1] + j * dilation[1]).wrapping_sub(before(1));
                            if row < input[0] && col < input[1] {
                                let plane = n * c + f / (o / groups) * per_group + ch;
                                let xv = xd[(plane * input[0] + row) * input[1] + col];
                                let wv = wd[((f * per_group + ch) * kernel[0] + i) * kernel[1] + j];
                                sum += scaled_product(xv, wv);
                            }
                        }
                    }
                }
                assert_element(&got, at, &sum, &UBig::ONE);
            }
            let beyond = dtype == DType::F64 && matches!(kind, Data::Wide | Data::Subnormal);
            assert!(beyond || got.pending.is_empty(), "{dtype} {kind:?}: {:?}", got.pending);
        }
    }
}
