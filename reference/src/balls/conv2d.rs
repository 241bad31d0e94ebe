//! conv2d: cross-correlation over zero-padded planes, by [`super::dot`]'s product.
//!
//! Per image and group, the weights are a matrix with a row per output channel, and the windows are its right operand with a column
//! per output position; the columns are gathered as the product needs them. Padding contributes exact zeros; an unknown
//! weight there leaves the result unknown (0 times an infinity is NaN).

use rayon::prelude::*;
use ulpian_spec::ops::Padding;
use ulpian_spec::ops::conv2d::Conv2d;

use super::Width;
use super::dot::{self, Columns, Rows, product};
use super::linear::add_bias;
use super::tensor::Balls;
use super::wide::{self, Norms};
use crate::fast::conv2d::{Geometry, Patches};
use crate::fast::gemm::Matrix;

pub(super) fn evaluate(args: &Conv2d<&Balls>, shape: &[usize], width: Width) -> Balls {
    let (input, weight) = (args.input, args.weight);
    if width == Width::Wide
        && let Some(geometry) = Geometry::new(args, input.shape(), weight.shape(), shape)
    {
        return wide(args, &geometry, shape);
    }
    let [.., channels, height, width] = *input.shape() else {
        unreachable!("inference demands three or four dimensions")
    };
    let [outputs, group_channels, kernel_h, kernel_w] = *weight.shape() else {
        unreachable!("inference demands four dimensions")
    };
    let [.., out_h, out_w] = *shape else { unreachable!("inference gives three or four dimensions") };
    let groups = args.groups as usize;
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
    // Channel, row and column of each tap, and row and column of each position's first tap, counted from the padding's corner.
    let taps: Vec<[usize; 3]> = (0..depth)
        .map(|k| {
            let (tap, channel) = (k % (kernel_h * kernel_w), k / (kernel_h * kernel_w));
            [channel, tap / kernel_w * dilation_h, tap % kernel_w * dilation_w]
        })
        .collect();
    let starts: Vec<[usize; 2]> =
        (0..positions).map(|position| [position / out_w * stride_h, position % out_w * stride_w]).collect();
    let mut out = Balls::zeros(shape);
    let (hi, lo, radius) = out.parts_mut();
    let size = (group_outputs * positions).max(1);
    hi.par_chunks_mut(size)
        .zip(lo.par_chunks_mut(size))
        .zip(radius.par_chunks_mut(size))
        .enumerate()
        .for_each(|(task, ((hi, lo), radius))| {
            let (image, group) = (task / groups, task % groups);
            let first_channel = image * channels + group * group_channels;
            let index = |k: usize, position: usize| {
                let ([channel, down, right], start) = (taps[k], starts[position]);
                // Above and to the left of the plane these wrap round to more than its size.
                let row = (start[0] + down).wrapping_sub(pad_top);
                let column = (start[1] + right).wrapping_sub(pad_left);
                (row < height && column < width)
                    .then(|| ((first_channel + channel) * height + row) * width + column)
            };
            let filters = Rows::of(weight, group * group_outputs * depth, group_outputs * depth, depth);
            product(filters, &Columns { tensor: input, smallest, count: positions, index }, hi, lo, radius);
        });
    if let Some(bias) = args.bias {
        add_bias(&mut out, bias, positions.max(1));
    }
    out
}

fn wide(args: &Conv2d<&Balls>, g: &Geometry, shape: &[usize]) -> Balls {
    let (input, weight) = (args.input, args.weight);
    let (rows, columns, terms) = (g.filters, g.columns(), g.terms());
    let tasks = g.images * g.groups;
    let size = rows * columns;
    let of_filters = |data: &[f64]| wide::squares(data, rows * g.groups, terms, [terms, 1]);
    let filters =
        Norms::of_squares(of_filters(weight.highs()), wide::rest(weight).as_deref().map(of_filters), terms);
    let rest = wide::rest(input);
    let underflow = wide::underflows(input, weight);
    let (mut hi, mut radius) = (vec![0.0; size * tasks], vec![0.0; size * tasks]);
    hi.par_chunks_mut(size.max(1)).zip(radius.par_chunks_mut(size.max(1))).enumerate().for_each(
        |(task, (hi, radius))| {
            let first = task % g.groups * rows;
            let planes = g.planes(input.highs(), task);
            let patches = Patches::new(g, &planes);
            let rest = rest.as_deref().map(|rest| Patches::new(g, &g.planes(rest, task)).squares());
            let right = Norms::of_squares(patches.squares(), rest, terms);
            let problem = wide::Problem {
                a: Matrix { data: &weight.highs()[first * terms..], row_stride: terms, col_stride: 1 },
                b: &patches,
                left: &filters.rows(first..first + rows),
                right: &right,
                rows,
                columns,
                terms,
                bias: args.bias.map_or(wide::Bias::None, |bias| wide::Bias::Rows(bias, first)),
                underflow,
                bands: rayon::current_num_threads().div_ceil(tasks.max(1)),
            };
            wide::product(&problem, hi, radius);
        },
    );
    Balls::of_parts(shape, hi, radius)
}
