//! Elements for which PyTorch's documentation allows several answers: one table, a reason per row.

mod sums;

use std::sync::Arc;

use ulpian_reference::round;
use ulpian_spec::ops::max_pool2d::MaxPool2d;
use ulpian_spec::ops::{RoundingMode, TensorOrScalar};
use ulpian_spec::{HostTensor, Op, Storage};

use super::bounds::Broadcast;

/// How far the documentation leaves an element open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Openness {
    /// It gives no value, or contradicts itself: nobody can agree with it.
    Undefined,
    /// It is silent on a side question that PyTorch's kernels answer; another answer is no fault.
    Silent,
}

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    /// What is open.
    pub what: &'static str,
    /// Why.
    pub reason: &'static str,
    /// How far.
    pub openness: Openness,
}

const SOFTMAX_MINUS_INF: Row = Row {
    what: "softmax of a slice of minus infinities",
    reason: "exp(x_i) / sum exp(x_j) is 0 / 0; NaN, zeros and the uniform distribution are all in use",
    openness: Openness::Undefined,
};
const SOFTMAX_PLUS_INF: Row = Row {
    what: "softmax of a slice with an infinity",
    reason: "exp(x_i) / sum exp(x_j) is inf / inf; NaN and the limit are both in use",
    openness: Openness::Undefined,
};
const SOFTMAX_NARROWED: Row = Row {
    what: "softmax of numbers that overflow in its `dtype`",
    reason: "the documentation converts the input first, where they are infinities; over the real numbers a conversion changes \
             nothing",
    openness: Openness::Silent,
};
const FLOOR_OF_INFINITY: Row = Row {
    what: "floor division of an infinity",
    reason: "the documentation says both `rounds the result of the division down` (an infinity) and `equivalent to Python's \
             //` (NaN)",
    openness: Openness::Undefined,
};
const FLOOR_BY_INFINITY: Row = Row {
    what: "floor division by an infinity of the other sign",
    reason: "the documentation says both `rounds the result of the division down` (-0 stays -0) and `equivalent to Python's //` \
             (-1)",
    openness: Openness::Undefined,
};
const RELU_NAN: Row = Row {
    what: "relu of NaN",
    reason: "max(x, 0) does not say which operand wins; PyTorch's kernels return NaN",
    openness: Openness::Silent,
};
const POOL_NAN: Row = Row {
    what: "max_pool2d over a window with NaN",
    reason: "whether NaN or the greatest number wins is not documented, nor which of several NaN is named; cuDNN has a switch for \
             the first, PyTorch's CPU kernels name the last",
    openness: Openness::Silent,
};
const POOL_TIE: Row = Row {
    what: "which of several equal maxima max_pool2d names",
    reason: "the documentation does not order ties; PyTorch's kernels name the first",
    openness: Openness::Silent,
};

/// Every row.
#[cfg(test)]
const TABLE: [Row; 10] = [
    SOFTMAX_MINUS_INF,
    SOFTMAX_PLUS_INF,
    SOFTMAX_NARROWED,
    FLOOR_OF_INFINITY,
    FLOOR_BY_INFINITY,
    RELU_NAN,
    POOL_NAN,
    POOL_TIE,
    sums::PADDED_WEIGHT,
    sums::OVERFLOW_AGAINST_INFINITY,
];

/// The sign of a zero, for every op that computes.
pub(super) const SIGN_OF_ZERO: &str = "the sign of a zero is not documented for this op";

/// An open element of a result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Open {
    /// Which result.
    pub output: usize,
    /// Row-major position.
    pub index: usize,
    /// Why it is open.
    pub row: Row,
    /// What was returned is one of the answers allowed.
    pub allowed: bool,
}

/// The open elements of a call among those results that were observed.
pub(super) fn open_elements(op: &Op<Arc<HostTensor>>, results: &[Option<Arc<HostTensor>>]) -> Vec<Open> {
    let Some(Some(got)) = results.first() else {
        return pool(op, results);
    };
    let open = |index, row, allowed| Open { output: 0, index, row, allowed };
    match op {
        Op::Softmax(args) if got.shape() == args.input.shape() => {
            let given = args.input.to_f64_vec();
            let x: Vec<f64> = match got.dtype().float_format() {
                Some(format) => given.iter().map(|&v| round::round_f64(format, v)).collect(),
                None => return Vec::new(),
            };
            let shape = args.input.shape();
            let (size, inner) = if shape.is_empty() {
                (1, 1)
            } else {
                let dim = if args.dim < 0 { args.dim + shape.len() as i64 } else { args.dim } as usize;
                (shape[dim], shape[dim + 1..].iter().product::<usize>())
            };
            let mut found = Vec::new();
            if size == 0 || x.iter().all(|v| v.is_finite()) {
                return found;
            }
            for lane in 0..x.len() / size {
                let at = |j: usize| (lane / inner * size + j) * inner + lane % inner;
                let lane: Vec<f64> = (0..size).map(|j| x[at(j)]).collect();
                let narrowed = (0..size).any(|j| x[at(j)].is_infinite() && given[at(j)].is_finite());
                let all_minus = lane.iter().all(|&v| v == f64::NEG_INFINITY);
                let row = if lane.iter().any(|v| v.is_nan()) {
                    continue;
                } else if narrowed && (all_minus || lane.contains(&f64::INFINITY)) {
                    SOFTMAX_NARROWED
                } else if all_minus {
                    SOFTMAX_MINUS_INF
                } else if lane.contains(&f64::INFINITY) {
                    SOFTMAX_PLUS_INF
                } else {
                    continue;
                };
                let maxima =
                    lane.iter().filter(|&&v| v == lane.iter().copied().fold(v, f64::max)).count() as f64;
                for (j, v) in lane.iter().enumerate() {
                    let g = got.get_f64(at(j));
                    let share = if *v == f64::INFINITY || all_minus { 1.0 / maxima } else { 0.0 };
                    let allowed = g.is_nan() || (g - share).abs() <= share / 128.0 || (all_minus && g == 0.0);
                    found.push(open(at(j), row, allowed));
                }
            }
            found
        }
        Op::Div(args) if args.rounding_mode == Some(RoundingMode::Floor) && got.dtype().is_float() => {
            let divisor: Box<dyn Fn(usize) -> f64> = match &args.other {
                TensorOrScalar::Scalar(s) => {
                    let s = s.as_f64();
                    Box::new(move |_| s)
                }
                TensorOrScalar::Tensor(t) => {
                    let (t, at) = (Arc::clone(t), Broadcast::new(t.shape(), got.shape()));
                    Box::new(move |i| t.get_f64(at.at(i)))
                }
            };
            let left = Broadcast::new(args.input.shape(), got.shape());
            (0..got.len())
                .filter_map(|i| {
                    let (a, b, g) = (args.input.get_f64(left.at(i)), divisor(i), got.get_f64(i));
                    if a.is_infinite() && b.is_finite() && b != 0.0 {
                        Some(open(i, FLOOR_OF_INFINITY, g.is_nan() || g == a / b))
                    } else if b.is_infinite() && a.is_finite() && a != 0.0 && (a < 0.0) != (b < 0.0) {
                        Some(open(i, FLOOR_BY_INFINITY, g == 0.0 || g == -1.0))
                    } else {
                        None
                    }
                })
                .collect()
        }
        Op::Relu(args) if got.dtype().is_float() && got.shape() == args.input.shape() => {
            with_nan(&args.input)
                .map(|i| {
                    let g = got.get_f64(i);
                    open(i, RELU_NAN, g.is_nan() || g == 0.0)
                })
                .collect()
        }
        Op::Matmul(_) | Op::Linear(_) | Op::Conv2d(_) => sums::open_elements(op, got),
        _ => pool(op, results),
    }
}

/// `got` with every open element that was answered within what is allowed replaced by `truth`'s.
pub(super) fn settle(
    got: &HostTensor,
    truth: &HostTensor,
    output: usize,
    open: &[Open],
) -> Option<HostTensor> {
    if got.tensor_type() != truth.tensor_type() || !open.iter().any(|o| o.output == output && o.allowed) {
        return None;
    }
    let mut storage = got.storage().clone();
    macro_rules! copy {
        ($($variant:ident),*) => {
            match (&mut storage, truth.storage()) {
                $((Storage::$variant(to), Storage::$variant(from)) => {
                    open.iter().filter(|o| o.output == output && o.allowed).for_each(|o| to[o.index] = from[o.index]);
                })*
                _ => return None,
            }
        };
    }
    copy!(F64, F32, F16, BF16, I64, I32, I16, I8, U8, Bool);
    HostTensor::new(got.shape(), storage)
}

fn with_nan(t: &HostTensor) -> impl Iterator<Item = usize> + '_ {
    let len = if t.holds_nan() { t.len() } else { 0 };
    (0..len).filter(|&i| t.get_f64(i).is_nan())
}

fn pool(op: &Op<Arc<HostTensor>>, results: &[Option<Arc<HostTensor>>]) -> Vec<Open> {
    let Op::MaxPool2d(args) = op else {
        return Vec::new();
    };
    let x = args.input.to_f64_vec();
    let shape = args.input.shape();
    if shape.len() < 2 {
        return Vec::new();
    }
    let (h, w) = (shape[shape.len() - 2], shape[shape.len() - 1]);
    let any_nan = x.iter().any(|v| v.is_nan());
    let mut found = Vec::new();
    for (output, got) in results.iter().enumerate() {
        let Some(got) = got else { continue };
        if (output == 0 && !any_nan)
            || got.shape().len() != shape.len()
            || got.dtype().is_float() != (output == 0)
        {
            continue;
        }
        let (oh, ow) = (got.shape()[shape.len() - 2], got.shape()[shape.len() - 1]);
        for i in 0..got.len() {
            let window = window(args, (h, w), (i / ow % oh, i % ow));
            let plane = i / (oh * ow) * h * w;
            let value = |p: usize| x.get(plane + p).copied().unwrap_or(f64::NAN);
            let nan = window.iter().any(|&p| value(p).is_nan());
            let best = window.iter().map(|&p| value(p)).fold(f64::NEG_INFINITY, f64::max);
            if output == 0 {
                if nan {
                    let g = got.get_f64(i);
                    found.push(Open { output, index: i, row: POOL_NAN, allowed: g.is_nan() || g == best });
                }
                continue;
            }
            let named = got.get_i64(i).and_then(|p| usize::try_from(p).ok()).filter(|p| window.contains(p));
            if nan {
                let allowed = named.is_some_and(|p| value(p).is_nan() || value(p) == best);
                found.push(Open { output, index: i, row: POOL_NAN, allowed });
            } else if window.iter().filter(|&&p| value(p) == best).count() > 1 {
                let allowed = named.is_some_and(|p| value(p) == best);
                found.push(Open { output, index: i, row: POOL_TIE, allowed });
            }
        }
    }
    found
}

/// The positions within an input plane that a window covers.
fn window(args: &MaxPool2d<Arc<HostTensor>>, plane: (usize, usize), out: (usize, usize)) -> Vec<usize> {
    let along = |d: usize, size: usize, o: usize| {
        (0..args.kernel_size[d])
            .map(move |k| o as i64 * args.stride[d] - args.padding[d] + k * args.dilation[d])
            .filter(move |&p| p >= 0 && p < size as i64)
            .map(|p| p as usize)
            .collect::<Vec<_>>()
    };
    let columns = along(1, plane.1, out.1);
    along(0, plane.0, out.0).into_iter().flat_map(|r| columns.iter().map(move |c| r * plane.1 + c)).collect()
}

#[cfg(test)]
mod tests {
    use ulpian_spec::ops::div::Div;
    use ulpian_spec::ops::relu::Relu;
    use ulpian_spec::ops::softmax::Softmax;

    use super::*;

    fn t(values: &[f32]) -> Arc<HostTensor> {
        Arc::new(HostTensor::f32(&[values.len()], values))
    }

    #[test]
    fn every_row_has_a_reason() {
        assert!(TABLE.iter().all(|r| !r.what.is_empty() && r.reason.len() > 20));
    }

    #[test]
    fn softmax_of_minus_infinities_has_no_value() {
        let op = Op::Softmax(Softmax { input: t(&[f32::NEG_INFINITY; 3]), dim: 0, dtype: None });
        for (got, allowed) in [(f32::NAN, true), (0.0, true), (1.0 / 3.0, true), (1.0, false)] {
            let open = open_elements(&op, &[Some(t(&[got; 3]))]);
            assert_eq!(open.len(), 3);
            assert!(open.iter().all(|o| o.allowed == allowed && o.row == SOFTMAX_MINUS_INF), "{got}");
        }
        let op = Op::Softmax(Softmax { input: t(&[f32::NEG_INFINITY, 0.0]), dim: 0, dtype: None });
        assert!(open_elements(&op, &[Some(t(&[0.0, 1.0]))]).is_empty());
    }

    #[test]
    fn softmax_in_a_dtype_where_the_input_overflows_may_be_nan() {
        let input = Arc::new(HostTensor::f64(&[2], &[1e6, 0.0]));
        let op = Op::Softmax(Softmax { input, dim: 0, dtype: Some(ulpian_spec::DType::F16) });
        let f16 = |bits: [u16; 2]| {
            let bytes: Vec<u8> = bits.iter().flat_map(|b| b.to_le_bytes()).collect();
            Some(Arc::new(
                HostTensor::new([2], Storage::from_le_bytes(ulpian_spec::DType::F16, &bytes)).expect("two"),
            ))
        };
        // (NaN, NaN), (1, 0) and (1/2, 1/2).
        for (bits, allowed) in [([0x7e00, 0x7e00], true), ([0x3c00, 0], true), ([0x3800, 0x3800], false)] {
            let open = open_elements(&op, &[f16(bits)]);
            assert_eq!(open.len(), 2);
            assert!(open.iter().all(|o| o.row == SOFTMAX_NARROWED));
            assert_eq!(open.iter().all(|o| o.allowed), allowed);
        }
    }

    #[test]
    fn floor_division_with_infinities_has_two_readings() {
        let inf = f32::INFINITY;
        let op = Op::Div(Div {
            input: t(&[-2.3, 2.3, inf, -inf, 2.3]),
            other: TensorOrScalar::Tensor(t(&[inf, -inf, 1.0, 1.0, inf])),
            rounding_mode: Some(RoundingMode::Floor),
        });
        let allowed =
            |got: &[f32]| open_elements(&op, &[Some(t(got))]).iter().map(|o| o.allowed).collect::<Vec<_>>();
        assert_eq!(allowed(&[-1.0, -1.0, f32::NAN, f32::NAN, 0.0]), [true; 4]);
        assert_eq!(allowed(&[-0.0, 0.0, inf, -inf, 0.0]), [true; 4]);
        assert_eq!(allowed(&[-2.0, 5.0, -inf, 0.0, 0.0]), [false; 4]);
    }

    #[test]
    fn an_index_of_an_equal_maximum_in_the_window_is_allowed() {
        let op = |x: &[f32], width: i64| {
            Op::MaxPool2d(MaxPool2d {
                input: Arc::new(HostTensor::f32(&[1, 1, x.len()], x)),
                kernel_size: [1, width],
                stride: [1, 1],
                padding: [0, 0],
                dilation: [1, 1],
                ceil_mode: false,
                return_indices: true,
            })
        };
        let index = |v: &[i64]| {
            Some(Arc::new(HostTensor::new([1, 1, v.len()], Storage::I64(v.to_vec())).expect("sizes")))
        };
        let open = open_elements(&op(&[3.0, 3.0, 1.0, 3.0], 2), &[None, index(&[1, 1, 0])]);
        assert_eq!(open.len(), 1);
        assert!(open[0].allowed && open[0].row == POOL_TIE);
        let open = open_elements(&op(&[f32::NAN, 3.0, 1.0, 0.0], 2), &[None, index(&[3, 1, 2])]);
        assert_eq!(open.iter().map(|o| o.allowed).collect::<Vec<_>>(), [false]);
        // Any NaN or the greatest number may be named where there is a NaN.
        let nan = f32::NAN;
        for (named, allowed) in [(0, true), (1, true), (2, false), (3, true), (4, false), (-1, false)] {
            let open = open_elements(&op(&[nan, nan, 1.0, 3.0], 4), &[None, index(&[named])]);
            assert_eq!(open.iter().map(|o| o.allowed).collect::<Vec<_>>(), [allowed], "{named}");
            assert_eq!(open[0].row, POOL_NAN);
        }
    }

    #[test]
    fn settling_copies_the_truth_over_allowed_answers_only() {
        let op = Op::Relu(Relu { input: t(&[f32::NAN, f32::NAN, 1.0]) });
        let got = t(&[0.0, 2.0, 1.0]);
        let open = open_elements(&op, &[Some(Arc::clone(&got))]);
        let settled = settle(&got, &t(&[f32::NAN, f32::NAN, 1.0]), 0, &open).expect("one is allowed");
        let v = settled.to_f64_vec();
        assert!(v[0].is_nan() && v[1] == 2.0 && v[2] == 1.0);
    }
}
