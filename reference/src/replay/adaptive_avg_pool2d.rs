//! adaptive_avg_pool2d by PyTorch's CPU kernel: the window's sum, then two divisions.
//!
//! Formula: s = sum of the window, rows first, in float32; y = (s / height) / width.
//! Cost: gamma_{n+1} mean|x|, as any order; but the sum overflows where the mean does not.
//! Source: `aten/src/ATen/native/cpu/AdaptiveAvgPoolKernel.cpp` of PyTorch.

use ulpian_spec::{HostTensor, Op};

use super::lanes::{f32s, store};

/// Sum, then divide, where no sum overflows. Sound.
pub(super) fn sequential_mean(op: &Op<&HostTensor>) -> Option<Vec<HostTensor>> {
    let (result, overflowed) = kernel(op)?;
    (!overflowed).then(|| vec![result])
}

/// The same where a sum of finite values overflowed.
pub(super) fn sum_then_divide(op: &Op<&HostTensor>) -> Option<Vec<HostTensor>> {
    let (result, overflowed) = kernel(op)?;
    overflowed.then(|| vec![result])
}

fn kernel(op: &Op<&HostTensor>) -> Option<(HostTensor, bool)> {
    let Op::AdaptiveAvgPool2d(args) = op else { return None };
    let x = f32s(args.input)?;
    let shape = args.input.shape();
    let [outer @ .., height, width] = shape else { return None };
    let size = |given: Option<i64>, own: usize| given.map_or(Some(own), |n| usize::try_from(n).ok());
    let (oh, ow) = (size(args.output_size[0], *height)?, size(args.output_size[1], *width)?);
    let window =
        |i: usize, input: usize, output: usize| (i * input / output, ((i + 1) * input).div_ceil(output));
    let (mut y, mut overflowed) = (Vec::new(), false);
    for plane in x.chunks_exact((height * width).max(1)) {
        for i in 0..oh {
            let (top, bottom) = window(i, *height, oh);
            for j in 0..ow {
                let (left, right) = window(j, *width, ow);
                let values = (top..bottom).flat_map(|r| &plane[r * width + left..r * width + right]);
                let sum = values.clone().fold(0.0f32, |s, &v| s + v);
                overflowed |= !sum.is_finite() && values.clone().all(|v| v.is_finite());
                y.push(sum / (bottom - top) as f32 / (right - left) as f32);
            }
        }
    }
    let shape = [outer, &[oh, ow]].concat();
    Some((store(args.input.dtype(), &shape, y)?, overflowed))
}
