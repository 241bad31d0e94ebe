//! adaptive_avg_pool2d: the mean over rows floor(i H / h) to ceil((i + 1) H / h) - 1 and columns likewise.
//!
//! Special values: those of the sum, then divided by the number of elements. A zero mean is +0 of free sign. An empty window is
//! 0 / 0, NaN.

use ulpian_spec::ops::adaptive_avg_pool2d::AdaptiveAvgPool2d;

use super::sum::Sum;
use super::{Context, Source, Value, index};

pub(super) fn element(args: &AdaptiveAvgPool2d<Source<'_>>, at: usize, cx: &Context<'_>) -> Value {
    let (_, height, width) = index::planes(cx.shape(&args.input));
    let (_, out_h, out_w) = index::planes(cx.out_shape());
    let (j, rest) = (at % out_w, at / out_w);
    let (i, plane) = (rest % out_h, rest / out_h);
    let window = |i: usize, size: usize, out: usize| i * size / out..((i + 1) * size).div_ceil(out);
    let (rows, columns) = (window(i, height, out_h), window(j, width, out_w));
    let count = rows.len() * columns.len();
    let mut sum = Sum::new(cx.prec);
    for y in rows {
        for x in columns.clone() {
            sum.push(&cx.get(&args.input, (plane * height + y) * width + x));
        }
    }
    sum.finish().div(&Value::from_int(count as i64), cx.prec)
}
