//! conv2d: cross-correlation over zero-padded planes, by [`super::dot`]'s product.
//!
//! Per image and group, the weights are a matrix with a row per output channel, and the windows are its right operand with a column
//! per output position; the columns are gathered as the product needs them. Padding contributes exact zeros; an unknown
//! weight there leaves the result unknown (0 times an infinity is NaN).

use ulpian_spec::ops::Padding;
use ulpian_spec::ops::conv2d::Conv2d;

use super::dot::{self, Columns, Rows, product};
use super::linear::add_bias;
use super::tensor::Balls;

pub(super) fn evaluate(args: &Conv2d<&Balls>, shape: &[usize]) -> Balls {
    let (input, weight) = (args.input, args.weight);
    let [.., channels, height, width] = *input.shape() else {
        unreachable!("inference demands three or four dimensions")
    };
    let [outputs, group_channels, kernel_h, kernel_w] = *weight.shape() else {
        unreachable!("inference demands four dimensions")
    };
    let [.., out_h, out_w] = *shape else { unreachable!("inference gives three or four dimensions") };
    let groups = args.groups as usize;
    let images = input.shape().len().checked_sub(4).map_or(1, |d| input.shape()[d]);
    let [stride_h, stride_w] = args.stride.map(|x| x as usize);
    let [dilation_h, dilation_w] = args.dilation.map(|x| x as usize);
    let [pad_top, pad_left] = match args.padding {
        Padding::Explicit(p) => p.map(|x| x as usize),
        Padding::Valid => [0, 0],
        Padding::Same => [dilation_h * (kernel_h - 1) / 2, dilation_w * (kernel_w - 1) / 2],
    };
    let group_outputs = outputs / groups;
    let depth = group_channels * kernel_h * kernel_w;
    let positions = out_h * out_w;
    let smallest = dot::smallest(input);
    let mut out = Balls::zeros(shape);
    let (hi, lo, radius) = out.parts_mut();
    for image in 0..images {
        for group in 0..groups {
            let first_channel = image * channels + group * group_channels;
            let index = |k: usize, position: usize| {
                let (tap, channel) = (k % (kernel_h * kernel_w), k / (kernel_h * kernel_w));
                let row = (position / out_w * stride_h + tap / kernel_w * dilation_h).checked_sub(pad_top)?;
                let column =
                    (position % out_w * stride_w + tap % kernel_w * dilation_w).checked_sub(pad_left)?;
                (row < height && column < width)
                    .then(|| ((first_channel + channel) * height + row) * width + column)
            };
            let to = (image * outputs + group * group_outputs) * positions;
            let to = to..to + group_outputs * positions;
            product(
                Rows::of(weight, group * group_outputs * depth, group_outputs * depth, depth),
                &Columns { tensor: input, smallest, count: positions, index },
                &mut hi[to.clone()],
                &mut lo[to.clone()],
                &mut radius[to],
            );
        }
    }
    match args.bias {
        None => out,
        Some(bias) => add_bias(&out, bias, positions.max(1)),
    }
}
