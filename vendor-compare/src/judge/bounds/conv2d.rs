//! conv2d: sums of products over windows.

use std::sync::Arc;

use rayon::prelude::*;
use ulpian_spec::ops::Padding;
use ulpian_spec::ops::conv2d::Conv2d;
use ulpian_spec::{Enclosure, OpKind};

use super::products::{Matrix, accumulate, figures, magnitudes};
use super::{Levels, Operand, Row};

pub(super) const ROW: Row = Row {
    kind: OpKind::Conv2d,
    bound: "gamma_K |x| * |w|, K = C / groups kH kW; with a bias gamma_{K+1} (|x| * |w| + |bias|)",
    reason: "K products and their sum in any order, as a matrix product; Winograd and FFT transforms are not covered, since \
             they lose more and PyTorch's documentation does not announce them",
    blas: true,
};

/// The windows of one group of one image as a (C/groups kH kW, oH oW) matrix; padding is 0.
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
    fn unfold(&self, image: &[f64]) -> Vec<f64> {
        let [oh, ow] = self.out;
        let mut columns = vec![0.0; self.channels * self.kernel[0] * self.kernel[1] * oh * ow];
        for (row, to) in columns.chunks_mut((oh * ow).max(1)).enumerate() {
            let (kx, rest) = (row % self.kernel[1], row / self.kernel[1]);
            let (ky, channel) = (rest % self.kernel[0], rest / self.kernel[0]);
            let from = &image[channel * self.plane[0] * self.plane[1]..][..self.plane[0] * self.plane[1]];
            for oy in 0..oh {
                let y = (oy * self.stride[0] + ky * self.dilation[0]) as i64 - self.pad[0];
                if y < 0 || y >= self.plane[0] as i64 {
                    continue;
                }
                for ox in 0..ow {
                    let x = (ox * self.stride[1] + kx * self.dilation[1]) as i64 - self.pad[1];
                    if x >= 0 && x < self.plane[1] as i64 {
                        to[oy * ow + ox] = from[y as usize * self.plane[1] + x as usize];
                    }
                }
            }
        }
        columns
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
    let windows =
        Windows { channels, kernel, plane, out, stride: args.stride.map(|s| s as usize), pad, dilation };

    let inexact = args.input.error.is_some() || args.weight.error.is_some();
    let (x, w) = (magnitudes(&args.input.values), magnitudes(&args.weight.values));
    let k = channels * kernel[0] * kernel[1];
    let per_group = out_channels / groups;
    let (in_size, out_size) = (channels * plane[0] * plane[1], per_group * out[0] * out[1]);
    let mut scale = vec![0.0; y.len()];
    let mut carried = vec![0.0; if inexact { y.len() } else { 0 }];
    let one = |index: usize, scale: &mut [f64], carried: Option<&mut [f64]>| {
        let group = index % groups;
        let columns = windows.unfold(&x[index * in_size..][..in_size]);
        let errors = args.input.error.as_deref().map(|e| windows.unfold(&e[index * in_size..][..in_size]));
        let at = group * per_group * k..(group + 1) * per_group * k;
        accumulate(
            Matrix {
                magnitude: &w[at.clone()],
                error: args.weight.error.as_deref().map(|e| &e[at]),
                rows: per_group,
                columns: k,
                transposed: false,
            },
            Matrix {
                magnitude: &columns,
                error: errors.as_deref(),
                rows: k,
                columns: out[0] * out[1],
                transposed: false,
            },
            scale,
            carried,
        );
    };
    if out_size > 0 && in_size > 0 {
        if inexact {
            scale
                .par_chunks_mut(out_size)
                .zip(carried.par_chunks_mut(out_size))
                .enumerate()
                .for_each(|(i, (s, c))| one(i, s, Some(c)));
        } else {
            scale.par_chunks_mut(out_size).enumerate().for_each(|(i, s)| one(i, s, None));
        }
    }
    if let Some(bias) = args.bias {
        let area = (out[0] * out[1]).max(1);
        scale.par_chunks_mut(area).enumerate().for_each(|(i, s)| {
            let b = bias.values[i % out_channels].abs();
            s.iter_mut().for_each(|s| *s += b);
        });
    }
    vec![figures(y, scale, inexact.then_some(carried), k as f64, args.bias.is_some())]
}
