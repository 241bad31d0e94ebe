//! linear: input @ weight^T + bias, by [`super::dot`]'s product; adding the bias rounds once more.

use ulpian_spec::ops::linear::Linear;

use super::Width;
use super::dot::{Columns, Rows, product, smallest};
use super::tensor::Balls;
use super::wide::{self, Norms};
use crate::fast::gemm::Matrix;

pub(super) fn evaluate(args: &Linear<&Balls>, shape: &[usize], width: Width) -> Balls {
    let features = args.input.shape().last().copied().unwrap_or(1);
    let outputs = if args.weight.shape().len() > 1 { args.weight.shape()[0] } else { 1 };
    if width == Width::Wide {
        return wide(args, shape, features, outputs);
    }
    let mut out = Balls::zeros(shape);
    let (hi, lo, radius) = out.parts_mut();
    product(
        Rows::of(args.input, 0, args.input.len(), features),
        &Columns {
            tensor: args.weight,
            smallest: smallest(args.weight),
            count: outputs,
            index: |k: usize, j: usize| Some(j * features + k),
        },
        hi,
        lo,
        radius,
    );
    if let Some(bias) = args.bias {
        add_bias(&mut out, bias, 1);
    }
    out
}

fn wide(args: &Linear<&Balls>, shape: &[usize], features: usize, outputs: usize) -> Balls {
    let (x, w) = (args.input, args.weight);
    let rows = shape.iter().product::<usize>() / outputs.max(1);
    let norms = |balls: &Balls, count: usize| {
        let of = |data: &[f64]| wide::squares(data, count, features, [features, 1]);
        Norms::of_squares(of(balls.highs()), wide::rest(balls).map(|rest| of(&rest)), features)
    };
    let (left, right) = (norms(x, rows), norms(w, outputs));
    let (mut hi, mut radius) = (vec![0.0; rows * outputs], vec![0.0; rows * outputs]);
    let problem = wide::Problem {
        a: Matrix { data: x.highs(), row_stride: features, col_stride: 1 },
        b: &Matrix { data: w.highs(), row_stride: 1, col_stride: features },
        left: &left,
        right: &right,
        rows,
        columns: outputs,
        terms: features,
        bias: args.bias.map_or(wide::Bias::None, wide::Bias::Columns),
        underflow: wide::underflows(x, w),
        bands: rayon::current_num_threads(),
    };
    wide::product(&problem, &mut hi, &mut radius);
    Balls::of_parts(shape, hi, radius)
}

/// Adds element i / `inner` mod len of `bias` to element i.
pub(super) fn add_bias(out: &mut Balls, bias: &Balls, inner: usize) {
    out.update(
        #[inline(always)]
        |i, ball| ball.add(bias.get(i / inner % bias.len())),
    );
}
