//! matmul, linear and conv2d as sets of dot products, so that one arithmetic is written once for all three.
//!
//! Operands become float32 (float16 and bfloat16 are exact there). A conv2d's terms run channel by channel, row by row,
//! column by column, as its weight lies in memory; zero padding contributes its zero products.

use rayon::prelude::*;
use ulpian_spec::ops::Padding;
use ulpian_spec::ops::conv2d::Conv2d;
use ulpian_spec::{DType, HostTensor, Op};

use super::lanes::{broadcast_index, broadcast_shape, f32s, store};

/// How one dot product is computed.
#[derive(Clone, Copy)]
pub(super) struct Arithmetic {
    /// Applied to each operand first.
    pub(super) operand: fn(f32) -> f32,
    /// The sum of products, from a start value.
    pub(super) sum: fn(f32, &[f32], &[f32]) -> f32,
    /// The bias is the start value; otherwise it is added to the sum, with a rounding to float32.
    pub(super) bias_first: bool,
}

/// Dot products that share their terms' number: every row of `a` with every row of `b`.
struct Block {
    a: Vec<f32>,
    b: Vec<f32>,
    /// By row of `a`, then by row of `b`; whichever is there.
    bias: Option<(Vec<f32>, bool)>,
    /// Result position of rows (i, j): `start + i * step_a + j * step_b`.
    start: usize,
    step_a: usize,
    step_b: usize,
}

/// A call as dot products of `terms` terms each.
pub(super) struct Dots {
    /// The call's dtype.
    pub(super) dtype: DType,
    shape: Vec<usize>,
    terms: usize,
    blocks: Vec<Block>,
}

impl Dots {
    /// `None` where the op is none of the three or its dtype is not replayed.
    pub(super) fn new(op: &Op<&HostTensor>) -> Option<Dots> {
        match op {
            Op::Matmul(args) => Dots::matmul(args.input, args.other, false, None),
            Op::Linear(args) => Dots::matmul(args.input, args.weight, true, args.bias),
            Op::Conv2d(args) => Dots::conv2d(args),
            _ => None,
        }
    }

    /// `other` is (…, K, N), or (N, K) where `transposed`.
    fn matmul(
        input: &HostTensor,
        other: &HostTensor,
        transposed: bool,
        bias: Option<&HostTensor>,
    ) -> Option<Dots> {
        let (a, b) = (f32s(input)?, f32s(other)?);
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
        let bias = match bias {
            Some(t) => Some(f32s(t)?),
            None => None,
        };
        let index = broadcast_index(a_batch, &batch).into_iter().zip(broadcast_index(b_batch, &batch));
        let blocks = index
            .enumerate()
            .map(|(i, (p, q))| {
                let right = &b[q * terms * n..(q + 1) * terms * n];
                let rows = if transposed || bshape.len() == 1 {
                    right.to_vec()
                } else {
                    (0..n).flat_map(|j| (0..terms).map(move |k| right[k * n + j])).collect()
                };
                Block {
                    a: a[p * m * terms..(p + 1) * m * terms].to_vec(),
                    b: rows,
                    bias: bias
                        .as_ref()
                        .map(|v| (if v.len() == n { v.clone() } else { vec![v[0]; n] }, false)),
                    start: i * m * n,
                    step_a: n,
                    step_b: 1,
                }
            })
            .collect();
        Some(Dots { dtype: input.dtype(), shape, terms, blocks })
    }

    fn conv2d(args: &Conv2d<&HostTensor>) -> Option<Dots> {
        let (x, w) = (f32s(args.input)?, f32s(args.weight)?);
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
        let before = total.map(|p| p / 2);
        let size = |input: usize, axis: usize, kernel: usize| {
            Some((input + total[axis]).checked_sub(dilation[axis] * (kernel - 1) + 1)? / stride[axis] + 1)
        };
        let (oh, ow) = (size(height, 0, kh)?, size(width, 1, kw)?);
        let (terms, group_filters) = (group_channels * kh * kw, filters / groups);
        let bias = match args.bias {
            Some(t) => Some(f32s(t)?),
            None => None,
        };
        let mut blocks = Vec::with_capacity(batch * groups);
        for n in 0..batch {
            for g in 0..groups {
                let mut patches = Vec::with_capacity(oh * ow * terms);
                for (r, c) in (0..oh).flat_map(|r| (0..ow).map(move |c| (r, c))) {
                    for ch in 0..group_channels {
                        let plane =
                            &x[(n * channels + g * group_channels + ch) * height * width..][..height * width];
                        for (i, j) in (0..kh).flat_map(|i| (0..kw).map(move |j| (i, j))) {
                            let row = (r * stride[0] + i * dilation[0]).wrapping_sub(before[0]);
                            let column = (c * stride[1] + j * dilation[1]).wrapping_sub(before[1]);
                            let inside = row < height && column < width;
                            patches.push(if inside { plane[row * width + column] } else { 0.0 });
                        }
                    }
                }
                let filter_range = g * group_filters..(g + 1) * group_filters;
                blocks.push(Block {
                    a: w[filter_range.start * terms..filter_range.end * terms].to_vec(),
                    b: patches,
                    bias: bias.as_ref().map(|v| (v[filter_range.clone()].to_vec(), true)),
                    start: (n * filters + filter_range.start) * oh * ow,
                    step_a: oh * ow,
                    step_b: 1,
                });
            }
        }
        let shape = [outer, &[filters, oh, ow]].concat();
        Some(Dots { dtype: args.input.dtype(), shape, terms, blocks })
    }

    /// Every dot product by this arithmetic, rounded to the call's dtype.
    pub(super) fn run(&self, by: &Arithmetic) -> Option<Vec<HostTensor>> {
        let mut y = vec![0.0f32; self.shape.iter().product()];
        for block in &self.blocks {
            let (a, b) = (block.operands(&block.a, by), block.operands(&block.b, by));
            let (rows_a, rows_b) = (block.rows(&a, self.terms), block.rows(&b, self.terms));
            let results: Vec<Vec<f32>> = (0..rows_a)
                .into_par_iter()
                .map(|i| (0..rows_b).map(|j| block.dot(&a, &b, self.terms, i, j, by)).collect())
                .collect();
            for (i, row) in results.iter().enumerate() {
                for (j, &value) in row.iter().enumerate() {
                    y[block.start + i * block.step_a + j * block.step_b] = value;
                }
            }
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
        for block in &self.blocks {
            let (rows_a, rows_b) = (block.rows(&block.a, self.terms), block.rows(&block.b, self.terms));
            for flat in (0..rows_a * rows_b).step_by(step) {
                let (i, j) = (flat / rows_b, flat % rows_b);
                let row = |m: &[f32], i: usize| -> Vec<f32> {
                    m[i * self.terms..(i + 1) * self.terms].iter().map(|&v| (by.operand)(v)).collect()
                };
                let (a, b) = (row(&block.a, i), row(&block.b, j));
                let value = block.finish(&a, &b, i, j, by);
                let Some(one) = store(self.dtype, &[], vec![value]) else { return false };
                let at = block.start + i * block.step_a + j * block.step_b;
                let (x, y) = (one.get_f64(0), seen.get_f64(at));
                if x.to_bits() != y.to_bits() && !(x.is_nan() && y.is_nan()) {
                    return false;
                }
            }
        }
        true
    }
}

impl Block {
    fn operands(&self, matrix: &[f32], by: &Arithmetic) -> Vec<f32> {
        matrix.iter().map(|&v| (by.operand)(v)).collect()
    }

    fn rows(&self, matrix: &[f32], terms: usize) -> usize {
        // Without terms every result is the bias: one row is enough to say so.
        matrix.len().checked_div(terms).unwrap_or(0)
    }

    fn dot(&self, a: &[f32], b: &[f32], terms: usize, i: usize, j: usize, by: &Arithmetic) -> f32 {
        self.finish(&a[i * terms..(i + 1) * terms], &b[j * terms..(j + 1) * terms], i, j, by)
    }

    fn finish(&self, a: &[f32], b: &[f32], i: usize, j: usize, by: &Arithmetic) -> f32 {
        let bias = self.bias.as_ref().map(|(v, by_a)| v[if *by_a { i } else { j }]);
        match bias {
            Some(start) if by.bias_first => (by.sum)(start, a, b),
            Some(end) => (by.sum)(0.0, a, b) + end,
            None => (by.sum)(0.0, a, b),
        }
    }
}
