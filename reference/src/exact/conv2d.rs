//! conv2d: sum over c, u, v of input[n, g C/groups + c, i s - p + u d, j s - p + v d] weight[o, c, u, v], plus bias[o], the input
//! zero outside.
//!
//! Special values: those of the products and the sum; the padding's zeros take part, so an infinite weight over padding gives
//! NaN, as in PyTorch 2.11 on CPU. `padding="same"` puts the odd row or column at the end. Integers wrap.

use ulpian_spec::ops::Padding;
use ulpian_spec::ops::conv2d::Conv2d;

use super::sum::Sum;
use super::{Context, Source, Value, index};

pub(super) fn element(args: &Conv2d<Source<'_>>, at: usize, cx: &Context<'_>) -> Value {
    let input = cx.shape(&args.input);
    let weight = cx.shape(&args.weight);
    let (_, height, width) = index::planes(input);
    let channels = input[input.len() - 3];
    let (out_channels, group_channels, kernel_h, kernel_w) = (weight[0], weight[1], weight[2], weight[3]);
    let (_, out_h, out_w) = index::planes(cx.out_shape());
    let (j, rest) = (at % out_w, at / out_w);
    let (i, rest) = (rest % out_h, rest / out_h);
    let (channel, batch) = (rest % out_channels, rest / out_channels);
    let group = channel / (out_channels / args.groups as usize);
    let kernel = [kernel_h, kernel_w];
    let pad = |axis: usize| match args.padding {
        Padding::Explicit(p) => p[axis],
        Padding::Same => args.dilation[axis] * (kernel[axis] as i64 - 1) / 2,
        Padding::Valid => 0,
    };
    let position = |axis: usize, out: usize, tap: usize, size: usize| {
        let p = out as i64 * args.stride[axis] - pad(axis) + tap as i64 * args.dilation[axis];
        (0..size as i64).contains(&p).then_some(p as usize)
    };
    let mut sum = Sum::new(cx.prec);
    for c in 0..group_channels {
        let plane = (batch * channels + group * group_channels + c) * height;
        for u in 0..kernel_h {
            let row = position(0, i, u, height);
            for v in 0..kernel_w {
                let w = cx.get(&args.weight, ((channel * group_channels + c) * kernel_h + u) * kernel_w + v);
                let x = match (row, position(1, j, v, width)) {
                    (Some(y), Some(x)) => cx.get(&args.input, (plane + y) * width + x),
                    _ => Value::ZERO,
                };
                sum.push_product(&x, &w);
            }
        }
    }
    if let Some(bias) = &args.bias {
        sum.push(&cx.get(bias, channel));
    }
    cx.finish(sum.finish())
}
