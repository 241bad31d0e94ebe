//! Sums of products with an infinity or NaN among their terms: matmul, linear and conv2d.

use std::sync::Arc;

use ulpian_reference::round;
use ulpian_spec::ops::Padding;
use ulpian_spec::ops::conv2d::Conv2d;
use ulpian_spec::ops::linear::Linear;
use ulpian_spec::ops::matmul::Matmul;
use ulpian_spec::{HostTensor, Op};

use super::{Open, Openness, Row};
use crate::judge::bounds::{Arithmetic, Broadcast};

pub(super) const PADDED_WEIGHT: Row = Row {
    what: "conv2d's padding under an infinite or NaN weight",
    reason: "the documentation calls the padding implicit and does not say whether its zeros are multiplied, which makes NaN, or \
             skipped; im2col multiplies them, and kernels that run over the overlap of window and input skip them",
    openness: Openness::Silent,
};
pub(super) const OVERFLOW_AGAINST_INFINITY: Row = Row {
    what: "a sum with an infinite term whose finite terms may overflow to the other infinity",
    reason: "no order is documented: added to the infinity one by one the finite terms change nothing, and where their partial sum \
             overflows first, infinity minus infinity is NaN",
    openness: Openness::Silent,
};

/// The terms of one element.
#[derive(Default)]
struct Terms {
    products: Vec<(f64, f64)>,
    /// Weights over padding.
    padded: Vec<f64>,
    bias: f64,
}

/// The open elements of a sum of products; `got` has the type that the op gives.
pub(super) fn open_elements(op: &Op<Arc<HostTensor>>, got: &HostTensor) -> Vec<Open> {
    let all_finite = || op.operands().iter().all(|(_, t)| t.all_finite());
    let given = op.as_ref().map(|_, t| t.tensor_type());
    if !got.dtype().is_float()
        || !matches!(op, Op::Matmul(_) | Op::Linear(_) | Op::Conv2d(_))
        || all_finite()
        || !given.infer().is_ok_and(|types| types.first() == Some(&got.tensor_type()))
    {
        return Vec::new();
    }
    let a = Arithmetic::of(got.dtype());
    // Two ops compute a one-dimensional weight, and the product has the result's dtype.
    let max = match (op, a.out) {
        (Op::Linear(args), Some(format)) if args.weight.shape().len() == 1 => round::max_finite(format),
        _ => a.max,
    };
    let values = op.as_ref().map(|_, t| t.to_f64_vec());
    let terms: Box<dyn Fn(usize) -> Terms> = match (op, values) {
        (Op::Matmul(args), Op::Matmul(v)) => matmul(args, v, got.shape()),
        (Op::Linear(args), Op::Linear(v)) => linear(args, v),
        (Op::Conv2d(args), Op::Conv2d(v)) => conv2d(args, v, got.shape()),
        _ => return Vec::new(),
    };
    (0..got.len())
        .filter_map(|index| {
            let (terms, g) = (terms(index), got.get_f64(index));
            let sum = Sum::of(&terms);
            let row = if g.is_nan() {
                sum.may_overflow_against_infinity(&a, max).then_some(OVERFLOW_AGAINST_INFINITY)
            } else {
                let skipped = terms.padded.iter().any(|w| !w.is_finite());
                (skipped && sum.allows(g, &a, max, terms.products.len())).then_some(PADDED_WEIGHT)
            };
            row.map(|row| Open { output: 0, index, row, allowed: true })
        })
        .collect()
}

/// What the terms over the input make together.
#[derive(Default)]
struct Sum {
    nan: bool,
    /// A term is minus infinity, plus infinity.
    infinite: [bool; 2],
    /// Of the finite terms: minus the negative ones, the positive ones.
    magnitude: [f64; 2],
}

impl Sum {
    fn of(terms: &Terms) -> Sum {
        let mut sum = Sum::default();
        let products = terms.products.iter().map(|&(x, w)| (x * w, x.is_infinite() || w.is_infinite()));
        for (term, infinite) in products.chain([(terms.bias, terms.bias.is_infinite())]) {
            let side = usize::from(term > 0.0);
            if term.is_nan() {
                sum.nan = true;
            } else if infinite {
                sum.infinite[side] = true;
            } else {
                sum.magnitude[side] += term.abs();
            }
        }
        sum
    }

    fn may_overflow_against_infinity(&self, a: &Arithmetic, max: f64) -> bool {
        let reaches = |m: f64| m * (1.0 + 4.0 * a.u_out) >= max;
        !self.nan
            && match self.infinite {
                [false, true] => reaches(self.magnitude[0]),
                [true, false] => reaches(self.magnitude[1]),
                _ => false,
            }
    }

    /// Is `got`, not NaN, what a sum of these terms may be?
    fn allows(&self, got: f64, a: &Arithmetic, max: f64, terms: usize) -> bool {
        let [minus, plus] = self.magnitude;
        match self.infinite {
            _ if self.nan => false,
            [true, true] => false,
            [false, true] => got == f64::INFINITY,
            [true, false] => got == f64::NEG_INFINITY,
            _ if minus + plus >= max => true,
            _ => {
                let (y, n) = (plus - minus, terms as f64 + 1.0);
                // Twice, for the sums here are float64's own.
                let bound = a.stored(y, 2.0 * a.gamma(n) * (minus + plus) + n * a.eta);
                let reaches = a.out.is_some_and(|f| y.abs() + bound >= round::max_finite(f));
                (got - y).abs() <= bound
                    || (reaches && got.is_infinite() && got.is_sign_negative() == y.is_sign_negative())
            }
        }
    }
}

fn matmul(args: &Matmul<Arc<HostTensor>>, v: Matmul<Vec<f64>>, out: &[usize]) -> Box<dyn Fn(usize) -> Terms> {
    let (left, right) = (args.input.shape().to_vec(), args.other.shape().to_vec());
    let (rank_l, rank_r) = (left.len(), right.len());
    let k = left[rank_l - 1];
    let (m, n) =
        (if rank_l > 1 { left[rank_l - 2] } else { 1 }, if rank_r > 1 { right[rank_r - 1] } else { 1 });
    let batch = &out[..out.len() - usize::from(rank_l > 1) - usize::from(rank_r > 1)];
    let at_l = Broadcast::new(&left[..rank_l.saturating_sub(2)], batch);
    let at_r = Broadcast::new(&right[..rank_r.saturating_sub(2)], batch);
    Box::new(move |i| {
        let (batch, row, column) = (i / (m * n), i / n % m, i % n);
        let (l, r) = ((at_l.at(batch) * m + row) * k, at_r.at(batch) * k * n + column);
        Terms { products: (0..k).map(|j| (v.input[l + j], v.other[r + j * n])).collect(), ..Terms::default() }
    })
}

fn linear(args: &Linear<Arc<HostTensor>>, v: Linear<Vec<f64>>) -> Box<dyn Fn(usize) -> Terms> {
    let k = args.input.shape()[args.input.shape().len() - 1];
    let n = if args.weight.shape().len() == 2 { args.weight.shape()[0] } else { 1 };
    Box::new(move |i| {
        let (row, column) = (i / n * k, i % n * k);
        let bias = v.bias.as_ref().map_or(0.0, |b| b[if b.len() == 1 { 0 } else { i % n }]);
        let products = (0..k).map(|j| (v.input[row + j], v.weight[column + j])).collect();
        Terms { products, bias, ..Terms::default() }
    })
}

fn conv2d(args: &Conv2d<Arc<HostTensor>>, v: Conv2d<Vec<f64>>, out: &[usize]) -> Box<dyn Fn(usize) -> Terms> {
    let shape = args.weight.shape();
    let (out_channels, channels, kernel) = (shape[0], shape[1], [shape[2], shape[3]]);
    let plane = <[usize; 2]>::try_from(&args.input.shape()[args.input.shape().len() - 2..])
        .expect("a valid input of conv2d has two spatial dimensions");
    let area = [out[out.len() - 2], out[out.len() - 1]];
    let groups = args.groups.max(1) as usize;
    let pad = match args.padding {
        Padding::Explicit(pad) => pad,
        Padding::Valid => [0, 0],
        Padding::Same => [0, 1].map(|d| args.dilation[d] * (kernel[d] as i64 - 1) / 2),
    };
    let (stride, dilation) = (args.stride, args.dilation);
    Box::new(move |i| {
        let o = [i / area[1] % area[0], i % area[1]];
        let (channel, image) =
            (i / (area[0] * area[1]) % out_channels, i / (area[0] * area[1] * out_channels));
        let first = image * groups + channel / (out_channels / groups);
        let mut terms = Terms { bias: v.bias.as_ref().map_or(0.0, |b| b[channel]), ..Terms::default() };
        for c in 0..channels {
            for ky in 0..kernel[0] {
                for kx in 0..kernel[1] {
                    let w = v.weight[((channel * channels + c) * kernel[0] + ky) * kernel[1] + kx];
                    let at = |d: usize, tap: usize| {
                        let p = o[d] as i64 * stride[d] + tap as i64 * dilation[d] - pad[d];
                        usize::try_from(p).ok().filter(|&p| p < plane[d])
                    };
                    match (at(0, ky), at(1, kx)) {
                        (Some(y), Some(x)) => {
                            let input = ((first * channels + c) * plane[0] + y) * plane[1] + x;
                            terms.products.push((v.input[input], w));
                        }
                        _ => terms.padded.push(w),
                    }
                }
            }
        }
        terms
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const INF: f32 = f32::INFINITY;

    fn t(shape: &[usize], values: &[f32]) -> Arc<HostTensor> {
        Arc::new(HostTensor::f32(shape, values))
    }

    fn rows(op: &Op<Arc<HostTensor>>, got: HostTensor) -> Vec<(usize, &'static str)> {
        open_elements(op, &got).iter().map(|o| (o.index, o.row.what)).collect()
    }

    fn convolution(weight: [f32; 3], bias: Option<f32>) -> Op<Arc<HostTensor>> {
        Op::Conv2d(Conv2d {
            input: t(&[1, 1, 1, 4], &[2.0, 3.0, 5.0, 7.0]),
            weight: t(&[1, 1, 1, 3], &weight),
            bias: bias.map(|b| t(&[1], &[b])),
            stride: [1, 1],
            padding: Padding::Explicit([0, 1]),
            dilation: [1, 1],
            groups: 1,
        })
    }

    #[test]
    fn padding_under_an_infinite_or_nan_weight_may_be_skipped() {
        let out = |v: [f32; 4]| HostTensor::f32(&[1, 1, 1, 4], &v);
        for bad in [INF, f32::NAN] {
            let op = convolution([bad, 10.0, 1.0], None);
            // At the left edge 2 * 10 + 3 is left; elsewhere the weight meets the input.
            assert_eq!(rows(&op, out([23.0, INF, INF, INF])), [(0, PADDED_WEIGHT.what)]);
            assert_eq!(rows(&op, out([f32::NAN, INF, INF, INF])), []);
            assert_eq!(rows(&op, out([22.0, INF, INF, INF])), []);
            assert_eq!(rows(&op, out([INF, INF, INF, INF])), []);
        }
        let op = convolution([INF, -INF, 1.0], None);
        assert_eq!(rows(&op, out([-INF; 4])), [(0, PADDED_WEIGHT.what)]);
        let finite = convolution([1.0, 10.0, 1.0], None);
        assert_eq!(rows(&finite, out([23.0; 4])), []);
    }

    #[test]
    fn finite_terms_that_overflow_against_an_infinity_may_be_nan() {
        let nan = HostTensor::f32(&[1], &[f32::NAN]);
        let linear = |x: f32, bias: f32| {
            Op::Linear(Linear {
                input: t(&[2], &[x, x]),
                weight: t(&[1, 2], &[-2.0, 1.0]),
                bias: Some(t(&[1], &[bias])),
            })
        };
        assert_eq!(rows(&linear(2e38, INF), nan.clone()), [(0, OVERFLOW_AGAINST_INFINITY.what)]);
        assert_eq!(rows(&linear(2e38, -INF), nan.clone()), []);
        assert_eq!(rows(&linear(1e38, INF), nan.clone()), []);
        assert_eq!(rows(&linear(2e38, INF), HostTensor::f32(&[1], &[1.0])), []);
        let product =
            Op::Matmul(Matmul { input: t(&[3], &[INF, 3e38, 3e38]), other: t(&[3, 1], &[1.0, -1.0, -1.0]) });
        assert_eq!(rows(&product, nan), [(0, OVERFLOW_AGAINST_INFINITY.what)]);
    }
}
