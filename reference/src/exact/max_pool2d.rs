//! max_pool2d: the maximum over rows i s - p + u d and columns j s - p + v d inside the plane; the padding is -inf. The second
//! result is the position y W + x of the maximum in the plane.
//!
//! Special values: NaN wins, and of several NaN the last one's position is returned (PyTorch 2.11's CPU kernel takes an element
//! that is greater than the best so far or NaN); of equal maxima, zeros of either sign among them, the first. A window of -inf
//! alone, or an empty one, has the position of its first element inside the plane. Exact on integers.

use std::cmp::Ordering;

use dashu_base::Sign;
use ulpian_spec::ops::max_pool2d::MaxPool2d;

use super::value::wrap;
use super::{Context, Source, Value, index};

pub(super) fn element(args: &MaxPool2d<Source<'_>>, at: usize, cx: &Context<'_>) -> Value {
    let (_, height, width) = index::planes(cx.shape(&args.input));
    let (_, out_h, out_w) = index::planes(cx.out_shape());
    let (j, rest) = (at % out_w, at / out_w);
    let (i, plane) = (rest % out_h, rest / out_h);
    let (rows, columns) = (window(args, 0, i, height), window(args, 1, j, width));
    let lowest = match cx.evaluator.nodes[cx.node].types[0].dtype.integer_range() {
        Some((low, _)) => Value::from_int(low),
        None => Value::Infinite(Sign::Negative),
    };
    // The position is `None` while balls overlap and no expression shows that they are of one number.
    let mut best = (lowest, Some(rows.start * width + columns.start));
    for y in rows.clone().step_by(args.dilation[0] as usize) {
        for x in columns.clone().step_by(args.dilation[1] as usize) {
            let position = y * width + x;
            let v = cx.get(&args.input, plane * height * width + position);
            best = greater(best, v, position, cx.prec);
        }
    }
    match cx.output {
        0 => best.0,
        _ => best.1.map_or(Value::Unknown, |p| Value::from_int(wrap(&p.into(), cx.out_dtype()))),
    }
}

/// First row or column inside the plane and the end of the window.
fn window(args: &MaxPool2d<Source<'_>>, axis: usize, out: usize, size: usize) -> std::ops::Range<usize> {
    let dilation = args.dilation[axis];
    let start = out as i64 * args.stride[axis] - args.padding[axis];
    let end = (start + (args.kernel_size[axis] - 1) * dilation + 1).min(size as i64);
    let inside = if start < 0 { start + (-start + dilation - 1) / dilation * dilation } else { start };
    inside as usize..end.max(inside) as usize
}

fn greater(
    (best, at): (Value, Option<usize>),
    v: Value,
    position: usize,
    prec: usize,
) -> (Value, Option<usize>) {
    if v.is_nan() {
        return (v, Some(position));
    }
    if best.is_nan() {
        return (best, at);
    }
    match v.compare(&best, prec) {
        Some(Ordering::Greater) => (v, Some(position)),
        Some(_) => (best, at),
        None => {
            let hull = best.to_ball(prec).zip(v.to_ball(prec)).map(|(a, b)| a.hull(&b, prec));
            (hull.map_or(Value::Unknown, Value::enclosed), None)
        }
    }
}
