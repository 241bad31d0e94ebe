//! linear: input @ weight^T + bias, by [`super::dot`]'s product; adding the bias rounds once more.

use ulpian_spec::ops::linear::Linear;

use super::dot::{Columns, Rows, product, smallest};
use super::tensor::Balls;

pub(super) fn evaluate(args: &Linear<&Balls>, shape: &[usize]) -> Balls {
    let features = args.input.shape().last().copied().unwrap_or(1);
    let outputs = if args.weight.shape().len() > 1 { args.weight.shape()[0] } else { 1 };
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

/// Adds element i / `inner` mod len of `bias` to element i.
pub(super) fn add_bias(out: &mut Balls, bias: &Balls, inner: usize) {
    out.update(
        #[inline(always)]
        |i, ball| ball.add(bias.get(i / inner % bias.len())),
    );
}
