//! matmul: sum over k of input[…, i, k] other[…, k, j], with PyTorch's rules for one-dimensional and batched operands.
//!
//! Special values: those of the products and the sum: 0 * inf and inf - inf are NaN. A zero is +0 of free sign; an empty sum is
//! +0. Integers wrap.

use ulpian_spec::ops::matmul::Matmul;

use super::sum::Sum;
use super::{Context, Source, Value, index};

pub(super) fn element(args: &Matmul<Source<'_>>, at: usize, cx: &Context<'_>) -> Value {
    let (a, b) = (cx.shape(&args.input), cx.shape(&args.other));
    let (vector_a, vector_b) = (a.len() == 1, b.len() == 1);
    let inner = a[a.len() - 1];
    let columns = if vector_b { 1 } else { b[b.len() - 1] };
    let rows = if vector_a { 1 } else { a[a.len() - 2] };
    let (column, rest) = (at % columns, at / columns);
    let (row, batch) = (rest % rows, rest / rows);
    let out = cx.out_shape();
    let matrix_axes = usize::from(!vector_a) + usize::from(!vector_b);
    let batch_shape = &out[..out.len() - matrix_axes];
    let operand_batch = |shape: &[usize]| {
        let batch_axes = shape.len().saturating_sub(2);
        index::broadcast(batch, batch_shape, &shape[..batch_axes])
    };
    let a_start = (operand_batch(a) * rows + row) * inner;
    let b_start = operand_batch(b) * inner * columns + column;
    let mut sum = Sum::new(cx.prec);
    for k in 0..inner {
        sum.push_product(&cx.get(&args.input, a_start + k), &cx.get(&args.other, b_start + k * columns));
    }
    cx.finish(sum.finish())
}
