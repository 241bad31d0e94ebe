//! conv2d: sums of products over windows.

use std::borrow::Cow;
use std::sync::Arc;

use rayon::prelude::*;
use ulpian_spec::ops::Padding;
use ulpian_spec::ops::conv2d::Conv2d;
use ulpian_spec::{Enclosure, OpKind};

use super::products::{Factors, Kind, Precision, TERMS, accumulate, figures, matrix, suits_single};
use super::{Levels, Operand, Row};

pub(super) const ROW: Row = Row {
    kind: OpKind::Conv2d,
    bound: "gamma_K |x| * |w|, K = C / groups kH kW; with a bias gamma_{K+1} (|x| * |w| + |bias|)",
    reason: "K products and their sum in any order, as a matrix product; Winograd and FFT transforms are not covered, since \
             they lose more and PyTorch's documentation does not announce them",
    blas: true,
};

/// The windows of one group of one image, as the (C/groups kH kW, oH oW) matrix of a matrix product; padding is 0.
struct Windows {
    channels: usize,
    kernel: [usize; 2],
    plane: [usize; 2],
    out: [usize; 2],
    stride: [usize; 2],
    pad: [i64; 2],
    dilation: [usize; 2],
}

impl Windows {
    /// Number of rows of the matrix.
    fn terms(&self) -> usize {
        self.channels * self.kernel[0] * self.kernel[1]
    }

    /// The image is the matrix.
    fn are_the_image(&self) -> bool {
        self.kernel == [1, 1] && self.stride == [1, 1] && self.pad == [0, 0] && self.out == self.plane
    }

    /// Calls `f` for the parts of a row of the matrix that lie within the image: where they begin in the row, and their elements,
    /// every `stride[1]`-th of a slice.
    fn each_part<'i, T>(&self, row: usize, image: &'i [T], mut f: impl FnMut(usize, &'i [T])) {
        let [height, width] = self.plane.map(|size| size as i64);
        let (kx, rest) = (row % self.kernel[1], row / self.kernel[1]);
        let (ky, channel) = (rest % self.kernel[0], rest / self.kernel[0]);
        let stride = self.stride[1] as i64;
        // Column ox reads ox * stride + shift.
        let shift = (kx * self.dilation[1]) as i64 - self.pad[1];
        let first = ceiling((-shift).max(0), stride);
        let end = ceiling((width - shift).max(0), stride).min(self.out[1] as i64);
        if first >= end {
            return;
        }
        for oy in 0..self.out[0] {
            let y = (oy * self.stride[0] + ky * self.dilation[0]) as i64 - self.pad[0];
            if (0..height).contains(&y) {
                let line = (channel as i64 * height + y) * width;
                let from = (line + first * stride + shift) as usize;
                let last = (line + (end - 1) * stride + shift) as usize;
                f(oy * self.out[1] + first as usize, &image[from..=last]);
            }
        }
    }

    /// The matrix.
    fn unfold<T: Precision>(&self, image: &[T]) -> Vec<T> {
        let area = self.out[0] * self.out[1];
        let mut columns = vec![T::zero(); self.terms() * area];
        columns.par_chunks_mut(area.max(1)).enumerate().for_each(|(row, to)| {
            self.each_part(row, image, |start, from| match self.stride[1] {
                1 => to[start..start + from.len()].copy_from_slice(from),
                stride => {
                    to[start..].iter_mut().zip(from.iter().step_by(stride)).for_each(|(to, &x)| *to = x)
                }
            });
        });
        columns
    }

    /// Adds the product of one row of weights and the matrix, which need not be built for that, to `to`.
    fn add_single<T: Precision>(&self, weights: &[T], image: &[T], to: &mut [f64], kind: Kind) {
        let mut sums = vec![T::zero(); to.len()];
        for (row, &w) in weights.iter().enumerate() {
            self.each_part(row, image, |start, from| match self.stride[1] {
                1 => {
                    sums[start..start + from.len()].iter_mut().zip(from).for_each(|(s, &x)| *s = *s + w * x);
                }
                stride => {
                    let from = from.iter().step_by(stride);
                    sums[start..].iter_mut().zip(from).for_each(|(s, &x)| *s = *s + w * x);
                }
            });
        }
        to.iter_mut().zip(sums).for_each(|(to, sum)| *to += sum.settle(weights.len(), kind));
    }
}

pub(super) fn levels(args: &Conv2d<&Operand<'_>>, truth: &[Arc<Enclosure>]) -> Vec<Levels> {
    let y = &truth[0];
    let w_shape = args.weight.shape;
    let (kernel, channels) = ([w_shape[2], w_shape[3]], w_shape[1]);
    let out_channels = w_shape[0];
    let groups = args.groups.max(1) as usize;
    let out_shape = y.value.shape();
    let (out, plane) = (
        [out_shape[out_shape.len() - 2], out_shape[out_shape.len() - 1]],
        [args.input.shape[args.input.shape.len() - 2], args.input.shape[args.input.shape.len() - 1]],
    );
    let dilation = args.dilation.map(|d| d as usize);
    let pad = match args.padding {
        Padding::Explicit(p) => p,
        Padding::Valid => [0, 0],
        Padding::Same => [0, 1].map(|d| (dilation[d] * (kernel[d].saturating_sub(1))) as i64 / 2),
    };
    let k = channels * kernel[0] * kernel[1];
    let windows =
        Windows { channels, kernel, plane, out, stride: args.stride.map(|s| s as usize), pad, dilation };

    let sizes = Sizes { windows, groups, filters: out_channels / groups, len: y.len() };
    let (mut scale, mut carried) = match suits_single(y.value.dtype(), args.input, args.weight, k) {
        Some(exact) => sums::<f32>(args, &sizes, exact),
        None => sums::<f64>(args, &sizes, false),
    };
    if let Some(bias) = args.bias {
        let area = (out[0] * out[1]).max(1);
        scale.par_chunks_mut(area).enumerate().for_each(|(i, s)| {
            let b = bias.values[i % out_channels].abs();
            s.iter_mut().for_each(|s| *s += b);
        });
        if let Some(errors) = &bias.error {
            let carried = carried.get_or_insert_with(|| vec![0.0; y.len()]);
            carried.par_chunks_mut(area).enumerate().for_each(|(i, carried)| {
                let error = errors[i % out_channels];
                carried.iter_mut().for_each(|c| *c += error);
            });
        }
    }
    vec![figures(y, scale, carried, k as f64, args.bias.is_some())]
}

struct Sizes {
    windows: Windows,
    groups: usize,
    /// Filters of a group.
    filters: usize,
    /// Elements of the result.
    len: usize,
}

/// |w| * |x| and what the operands' errors add.
fn sums<T: Precision>(
    args: &Conv2d<&Operand<'_>>,
    sizes: &Sizes,
    exact: bool,
) -> (Vec<f64>, Option<Vec<f64>>) {
    let &Sizes { ref windows, groups, filters, len } = sizes;
    let (k, area) = (windows.terms(), windows.out[0] * windows.out[1]);
    let image = windows.channels * windows.plane[0] * windows.plane[1];
    let inexact = args.input.error.is_some() || args.weight.error.is_some();
    let (mut scale, mut carried) = (vec![0.0; len], inexact.then(|| vec![0.0; len]));
    if filters * area == 0 || image == 0 {
        return (scale, carried);
    }
    let factors = Factors::<T>::new(args.weight, args.input, exact);
    let one = |index: usize, scale: &mut [f64], mut carried: Option<&mut [f64]>| {
        let group = index % groups;
        let own = group * filters * k..(group + 1) * filters * k;
        let image_of = |erring| &factors.right.storage(erring)[index * image..(index + 1) * image];
        let mut unfolded: [Option<Cow<'_, [T]>>; 2] = [None, None];
        for (kind, weights, erring) in factors.sums() {
            let to = match (kind, &mut carried) {
                (Kind::Carried, Some(carried)) => &mut **carried,
                _ => &mut *scale,
            };
            let weights = &weights[own.clone()];
            if T::SINGLE && filters == 1 && k <= TERMS {
                windows.add_single(weights, image_of(erring), to, kind);
                continue;
            }
            let columns = unfolded[usize::from(erring)].get_or_insert_with(|| {
                let image = image_of(erring);
                if windows.are_the_image() { Cow::Borrowed(image) } else { Cow::Owned(windows.unfold(image)) }
            });
            accumulate(matrix(weights, filters, k), matrix(columns, k, area), to, kind);
        }
    };
    let size = filters * area;
    match &mut carried {
        Some(carried) => scale
            .par_chunks_mut(size)
            .zip(carried.par_chunks_mut(size))
            .enumerate()
            .for_each(|(i, (s, c))| one(i, s, Some(c))),
        None => scale.par_chunks_mut(size).enumerate().for_each(|(i, s)| one(i, s, None)),
    }
    (scale, carried)
}

/// n / d, rounded up, for n >= 0 and d > 0.
fn ceiling(n: i64, d: i64) -> i64 {
    (n + d - 1) / d
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum of magnitudes over the window of every result, from the definition.
    fn naive(w: &Windows, groups: usize, filters: usize, x: &[f64], weight: &[f64]) -> Vec<f64> {
        let [height, width] = w.plane;
        let mut all = Vec::new();
        for filter in 0..groups * filters {
            let group = filter / filters;
            for (oy, ox) in (0..w.out[0]).flat_map(|oy| (0..w.out[1]).map(move |ox| (oy, ox))) {
                let mut sum = 0.0;
                for k in 0..w.terms() {
                    let (c, ky, kx) =
                        (k / w.kernel[1] / w.kernel[0], k / w.kernel[1] % w.kernel[0], k % w.kernel[1]);
                    let y = (oy * w.stride[0] + ky * w.dilation[0]) as i64 - w.pad[0];
                    let column = (ox * w.stride[1] + kx * w.dilation[1]) as i64 - w.pad[1];
                    if (0..height as i64).contains(&y) && (0..width as i64).contains(&column) {
                        let at = ((group * w.channels + c) * height + y as usize) * width + column as usize;
                        sum += (x[at] * weight[filter * w.terms() + k]).abs();
                    }
                }
                all.push(sum);
            }
        }
        all
    }

    #[test]
    fn sums_are_those_of_the_definition() {
        let cases = [
            // channels, groups, filters of each, kernel, stride, padding, dilation
            (3, 1, 4, [3, 2], [1, 1], [1, 0], [1, 1]),
            (2, 2, 3, [3, 3], [2, 3], [1, 2], [1, 1]),
            (1, 4, 1, [3, 3], [1, 1], [1, 1], [1, 1]),
            (1, 4, 1, [3, 2], [2, 2], [2, 1], [2, 3]),
            (5, 1, 2, [1, 1], [1, 1], [0, 0], [1, 1]),
            (5, 1, 2, [1, 1], [2, 1], [0, 0], [1, 1]),
            (1, 1, 1, [1, 4], [1, 1], [0, 9], [1, 5]),
        ];
        let plane = [6, 7];
        for (channels, groups, filters, kernel, stride, pad, dilation) in cases {
            let out = [0, 1].map(|d| {
                let reach = dilation[d] * (kernel[d] - 1) + 1;
                (plane[d] + 2 * pad[d] - reach) / stride[d] + 1
            });
            let windows =
                Windows { channels, kernel, plane, out, stride, pad: pad.map(|p| p as i64), dilation };
            let x_shape = [1, groups * channels, plane[0], plane[1]];
            let w_shape = [groups * filters, channels, kernel[0], kernel[1]];
            let data = |n: usize, salt: usize| {
                (0..n).map(|i| ((i * 37 + salt) % 23) as f64 - 9.0).collect::<Vec<f64>>()
            };
            let operand = |shape, salt| {
                let values = data(<[usize]>::iter(shape).product(), salt);
                Operand { shape, dtype: ulpian_spec::DType::F32, values: Cow::Owned(values), error: None }
            };
            let (input, weight) = (operand(&x_shape, 1), operand(&w_shape, 5));
            let expected = naive(&windows, groups, filters, &input.values, &weight.values);
            let args = Conv2d {
                input: &input,
                weight: &weight,
                bias: None,
                stride: stride.map(|s| s as i64),
                padding: Padding::Explicit(pad.map(|p| p as i64)),
                dilation: dilation.map(|d| d as i64),
                groups: groups as i64,
            };
            let sizes = Sizes { windows, groups, filters, len: expected.len() };
            let (double, single) = (sums::<f64>(&args, &sizes, false).0, sums::<f32>(&args, &sizes, true).0);
            assert_eq!(double, expected, "{kernel:?} {stride:?}");
            for (s, e) in single.iter().zip(&expected) {
                assert!(s >= e && *s <= e * (1.0 + 1e-4), "{kernel:?} {stride:?}: {s} for {e}");
            }
        }
    }
}
