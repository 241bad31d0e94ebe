//! linear: sum over k of input[…, k] weight[j, k], plus bias[j].
//!
//! Special values: those of the products and the sum, as in matmul.

use ulpian_spec::ops::linear::Linear;

use super::sum::Sum;
use super::{Context, Source, Value};

pub(super) fn element(args: &Linear<Source<'_>>, at: usize, cx: &Context<'_>) -> Value {
    let input = cx.shape(&args.input);
    let weight = cx.shape(&args.weight);
    let inner = input[input.len() - 1];
    let columns = if weight.len() == 1 { 1 } else { weight[0] };
    let (row, column) = (at / columns, at % columns);
    let mut sum = Sum::new(cx.prec);
    for k in 0..inner {
        sum.push_product(&cx.get(&args.input, row * inner + k), &cx.get(&args.weight, column * inner + k));
    }
    if let Some(bias) = &args.bias {
        let scalar = cx.shape(bias).iter().product::<usize>() == 1;
        sum.push(&cx.get(bias, if scalar { 0 } else { column }));
    }
    cx.finish(sum.finish())
}
