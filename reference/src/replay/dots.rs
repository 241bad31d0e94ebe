//! matmul, linear and conv2d as sets of dot products, so that one arithmetic is written once for all three.
//!
//! Operands become float32 (float16 and bfloat16 are exact there). A conv2d's terms run channel by channel, row by row,
//! column by column, as its weight lies in memory; zero padding contributes its zero products. Rows of terms are gathered when they
//! are needed, so that a sample costs no more than its own rows.

use std::borrow::Cow;

use rayon::prelude::*;
use ulpian_spec::ops::Padding;
use ulpian_spec::ops::conv2d::Conv2d;
use ulpian_spec::{DType, HostTensor, Op};

use super::lanes::{borrowed_f32s, broadcast_index, broadcast_shape, store};

/// How one dot product is computed.
#[derive(Clone, Copy)]
pub(super) struct Arithmetic {
    /// Applied to each operand first.
    pub(super) operand: fn(f32) -> f32,
    /// Adds the dot product of a row with each of several rows, one after another in memory, to a start value of each.
    pub(super) sums: fn(&mut [f32], &[f32], &[f32]),
    /// The bias is the start value; otherwise it is added to the sum, with a rounding to float32.
    pub(super) bias_first: bool,
}

/// [`Arithmetic::sums`] where each is computed for itself: `sum` is the sum of products from a start value.
#[inline(always)]
pub(super) fn each(s: &mut [f32], a: &[f32], rows: &[f32], sum: impl Fn(f32, &[f32], &[f32]) -> f32) {
    for (s, b) in s.iter_mut().zip(rows.chunks_exact(a.len().max(1))) {
        *s = sum(*s, a, b);
    }
}

/// A call as dot products of `terms` terms each.
pub(super) struct Dots<'a> {
    /// The call's dtype.
    pub(super) dtype: DType,
    shape: Vec<usize>,
    terms: usize,
    a: Cow<'a, [f32]>,
    b: Cow<'a, [f32]>,
    bias: Option<Cow<'a, [f32]>>,
    /// The bias belongs to rows of `a`, not of `b`.
    bias_by_a: bool,
    layout: Layout,
    blocks: Vec<Block>,
}

/// Every row of `a` in a range with every row of `b` in one. The results lie together, by row of `a`, then by row of `b`.
struct Block {
    /// Where the first row of `a` begins.
    a: usize,
    rows_a: usize,
    /// Where the matrix or the image of `b` begins.
    b: usize,
    rows_b: usize,
    /// Position in the bias of the first row.
    bias: usize,
    /// Position of the first result.
    start: usize,
}

/// How the terms of a row of `b` lie in memory.
enum Layout {
    /// One after another.
    Rows,
    /// As a column of a matrix with so many columns.
    Columns(usize),
    /// As a window of an image.
    Windows(Windows),
}

struct Windows {
    channels: usize,
    plane: [usize; 2],
    kernel: [usize; 2],
    stride: [usize; 2],
    dilation: [usize; 2],
    before: [usize; 2],
    /// Results along a line.
    width: usize,
}

impl<'a> Dots<'a> {
    /// `None` where the op is none of the three or its dtype is not replayed.
    pub(super) fn new(op: &Op<&'a HostTensor>) -> Option<Dots<'a>> {
        match op {
            Op::Matmul(args) => Dots::matmul(args.input, args.other, false, None),
            Op::Linear(args) => Dots::matmul(args.input, args.weight, true, args.bias),
            Op::Conv2d(args) => Dots::conv2d(args),
            _ => None,
        }
    }

    /// `other` is (…, K, N), or (N, K) where `transposed`.
    fn matmul(
        input: &'a HostTensor,
        other: &'a HostTensor,
        transposed: bool,
        bias: Option<&'a HostTensor>,
    ) -> Option<Dots<'a>> {
        let (ashape, bshape) = (input.shape(), other.shape());
        let terms = *ashape.last()?;
        let (a_batch, m) = match ashape {
            [_] => (&[][..], 1),
            [batch @ .., m, _] => (batch, *m),
            [] => return None,
        };
        let (b_batch, n) = match (bshape, transposed) {
            ([_], _) => (&[][..], 1),
            ([n, _], true) => (&[][..], *n),
            ([batch @ .., _, n], false) => (batch, *n),
            _ => return None,
        };
        let batch = broadcast_shape(a_batch, b_batch)?;
        let mut shape = batch.clone();
        shape.extend((ashape.len() > 1).then_some(m));
        shape.extend((bshape.len() > 1).then_some(n));
        let index = broadcast_index(a_batch, &batch).into_iter().zip(broadcast_index(b_batch, &batch));
        let blocks = index
            .enumerate()
            .map(|(i, (p, q))| Block {
                a: p * m * terms,
                rows_a: m,
                b: q * terms * n,
                rows_b: n,
                bias: 0,
                start: i * m * n,
            })
            .collect();
        Some(Dots {
            dtype: input.dtype(),
            shape,
            terms,
            a: borrowed_f32s(input)?,
            b: borrowed_f32s(other)?,
            bias: optional(bias)?,
            bias_by_a: false,
            layout: if transposed || bshape.len() == 1 { Layout::Rows } else { Layout::Columns(n) },
            blocks,
        })
    }

    fn conv2d(args: &Conv2d<&'a HostTensor>) -> Option<Dots<'a>> {
        let [outer @ .., channels, height, width] = args.input.shape() else { return None };
        let [filters, group_channels, kh, kw] = *args.weight.shape() else { return None };
        let (channels, height, width) = (*channels, *height, *width);
        let batch: usize = outer.iter().product();
        let groups = usize::try_from(args.groups).ok()?;
        let pair = |v: [i64; 2]| Some([usize::try_from(v[0]).ok()?, usize::try_from(v[1]).ok()?]);
        let (stride, dilation) = (pair(args.stride)?, pair(args.dilation)?);
        let total = match args.padding {
            Padding::Explicit(p) => pair(p)?.map(|p| 2 * p),
            Padding::Same => [dilation[0] * (kh - 1), dilation[1] * (kw - 1)],
            Padding::Valid => [0, 0],
        };
        let size = |input: usize, axis: usize, kernel: usize| {
            Some((input + total[axis]).checked_sub(dilation[axis] * (kernel - 1) + 1)? / stride[axis] + 1)
        };
        let (oh, ow) = (size(height, 0, kh)?, size(width, 1, kw)?);
        let (terms, group_filters) = (group_channels * kh * kw, filters / groups);
        let blocks = (0..batch)
            .flat_map(|n| (0..groups).map(move |g| (n, g)))
            .map(|(n, g)| Block {
                a: g * group_filters * terms,
                rows_a: group_filters,
                b: (n * channels + g * group_channels) * height * width,
                rows_b: oh * ow,
                bias: g * group_filters,
                start: (n * filters + g * group_filters) * oh * ow,
            })
            .collect();
        Some(Dots {
            dtype: args.input.dtype(),
            shape: [outer, &[filters, oh, ow]].concat(),
            terms,
            a: borrowed_f32s(args.weight)?,
            b: borrowed_f32s(args.input)?,
            bias: optional(args.bias)?,
            bias_by_a: true,
            layout: Layout::Windows(Windows {
                channels: group_channels,
                plane: [height, width],
                kernel: [kh, kw],
                stride,
                dilation,
                before: total.map(|p| p / 2),
                width: ow,
            }),
            blocks,
        })
    }

    /// Every dot product by this arithmetic, rounded to the call's dtype.
    pub(super) fn run(&self, by: &Arithmetic) -> Option<Vec<HostTensor>> {
        let mut y = vec![0.0f32; self.shape.iter().product()];
        // Without terms nothing is computed, and what is not computed is 0.
        for block in self.blocks.iter().filter(|b| self.terms * b.rows_a * b.rows_b > 0) {
            let rows: Vec<f32> = (0..block.rows_b).flat_map(|j| self.row_b(block, j, by)).collect();
            let results = &mut y[block.start..block.start + block.rows_a * block.rows_b];
            results.par_chunks_mut(block.rows_b).enumerate().for_each(|(i, to)| {
                self.finish(block, i, 0, &self.row_a(block, i, by), &rows, to, by);
            });
        }
        Some(vec![store(self.dtype, &self.shape, y)?])
    }

    /// Does a sample of at most `count` dot products, spread over the result, agree with what was seen? `false` refutes the
    /// arithmetic without computing the rest.
    pub(super) fn sample_agrees(&self, by: &Arithmetic, seen: &HostTensor, count: usize) -> bool {
        if seen.dtype() != self.dtype || seen.shape() != self.shape {
            return false;
        }
        let step = (seen.len() / count.max(1)).max(1);
        for block in self.blocks.iter().filter(|_| self.terms > 0) {
            for flat in (0..block.rows_a * block.rows_b).step_by(step) {
                let (i, j) = (flat / block.rows_b, flat % block.rows_b);
                let mut value = [0.0];
                let (a, b) = (self.row_a(block, i, by), self.row_b(block, j, by));
                self.finish(block, i, j, &a, &b, &mut value, by);
                let Some(one) = store(self.dtype, &[], value.to_vec()) else { return false };
                let (x, y) = (one.get_f64(0), seen.get_f64(block.start + flat));
                if x.to_bits() != y.to_bits() && !(x.is_nan() && y.is_nan()) {
                    return false;
                }
            }
        }
        true
    }

    /// Row `a` with consecutive rows of `b` from the `first`.
    #[allow(clippy::too_many_arguments)]
    fn finish(
        &self,
        block: &Block,
        i: usize,
        first: usize,
        a: &[f32],
        rows: &[f32],
        to: &mut [f32],
        by: &Arithmetic,
    ) {
        let bias = |j: usize| {
            let own = block.bias + if self.bias_by_a { i } else { first + j };
            self.bias.as_ref().map(|v| if v.len() == 1 { v[0] } else { v[own] })
        };
        to.fill(0.0);
        if by.bias_first {
            to.iter_mut().enumerate().for_each(|(j, s)| *s = bias(j).unwrap_or(0.0));
        }
        (by.sums)(to, a, rows);
        if !by.bias_first && self.bias.is_some() {
            to.iter_mut().enumerate().for_each(|(j, s)| *s += bias(j).unwrap_or(0.0));
        }
    }

    fn row_a(&self, block: &Block, i: usize, by: &Arithmetic) -> Vec<f32> {
        self.a[block.a + i * self.terms..][..self.terms].iter().map(|&v| (by.operand)(v)).collect()
    }

    fn row_b(&self, block: &Block, j: usize, by: &Arithmetic) -> Vec<f32> {
        let b = &self.b[block.b..];
        let row = match &self.layout {
            Layout::Rows => b[j * self.terms..][..self.terms].to_vec(),
            Layout::Columns(n) => b[j..].iter().step_by(*n).take(self.terms).copied().collect(),
            Layout::Windows(windows) => windows.row(b, j),
        };
        row.into_iter().map(by.operand).collect()
    }
}

impl Windows {
    /// The terms of result `j` of an image.
    fn row(&self, image: &[f32], j: usize) -> Vec<f32> {
        let ([height, width], [kh, kw]) = (self.plane, self.kernel);
        let (r, c) = (j / self.width, j % self.width);
        let mut row = Vec::with_capacity(self.channels * kh * kw);
        for channel in 0..self.channels {
            let plane = &image[channel * height * width..][..height * width];
            for i in 0..kh {
                let y = (r * self.stride[0] + i * self.dilation[0]).wrapping_sub(self.before[0]);
                for k in 0..kw {
                    let x = (c * self.stride[1] + k * self.dilation[1]).wrapping_sub(self.before[1]);
                    row.push(if y < height && x < width { plane[y * width + x] } else { 0.0 });
                }
            }
        }
        row
    }
}

/// `None` where there is a tensor of a dtype that is not replayed.
fn optional(t: Option<&HostTensor>) -> Option<Option<Cow<'_, [f32]>>> {
    match t {
        Some(t) => borrowed_f32s(t).map(Some),
        None => Some(None),
    }
}
