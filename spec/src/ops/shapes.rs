//! Shape rules that several ops share.

use crate::{DType, InferError, TensorType};

/// The shape that both broadcast to.
///
/// # Errors
/// Names `argument`, the second one.
pub(super) fn broadcast(
    a: &TensorType,
    argument: &'static str,
    b: &TensorType,
) -> Result<Vec<usize>, InferError> {
    broadcast_shapes(&a.shape, &b.shape).ok_or_else(|| {
        InferError::argument(
            argument,
            format!(
                "{b} does not broadcast with {a}: aligned at the last dimension, each pair of sizes must be equal or hold a 1"
            ),
        )
    })
}

/// The shape that both broadcast to, if there is one.
pub(super) fn broadcast_shapes(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let rank = a.len().max(b.len());
    let size = |s: &[usize], i: usize| (i + s.len()).checked_sub(rank).map_or(1, |i| s[i]);
    (0..rank)
        .map(|i| match (size(a, i), size(b, i)) {
            (x, y) if x == y => Some(x),
            (1, y) => Some(y),
            (x, 1) => Some(x),
            _ => None,
        })
        .collect()
}

/// A dimension counted from the front, for a tensor of `rank` dimensions. A 0-dimensional tensor counts as having one.
///
/// # Errors
/// Where it is out of range.
pub(super) fn dimension(argument: &'static str, dim: i64, rank: usize) -> Result<usize, InferError> {
    let count = rank.max(1) as i64;
    let index = if dim < 0 { dim.saturating_add(count) } else { dim };
    if (0..count).contains(&index) {
        return Ok(index as usize);
    }
    Err(InferError::argument(
        argument,
        format!(
            "dimension {dim} is out of range; for a {rank}-dimensional input it is in [{}, {}]",
            -count,
            count - 1
        ),
    ))
}

/// # Errors
/// Where the dtype is not a floating-point one.
pub(super) fn require_float(argument: &'static str, t: &TensorType, op: &str) -> Result<(), InferError> {
    if t.dtype.is_float() {
        return Ok(());
    }
    Err(InferError::argument(
        argument,
        format!("{op} takes float64, float32, float16 or bfloat16, got {t}; convert it first"),
    ))
}

/// # Errors
/// Where the dtype is bool.
pub(super) fn refuse_bool(argument: &'static str, t: &TensorType, op: &str) -> Result<(), InferError> {
    if t.dtype != DType::Bool {
        return Ok(());
    }
    Err(InferError::argument(argument, format!("{op} does not take bool, got {t}; convert it first")))
}

/// # Errors
/// Where the dtype differs from that of `like`.
pub(super) fn require_dtype(
    argument: &'static str,
    t: &TensorType,
    like_argument: &str,
    like: &TensorType,
) -> Result<(), InferError> {
    if t.dtype == like.dtype {
        return Ok(());
    }
    Err(InferError::argument(
        argument,
        format!("expected {}, the dtype of {like_argument}, got {t}; these are not promoted", like.dtype),
    ))
}

/// # Errors
/// Where the shape is another one.
pub(super) fn require_shape(
    argument: &'static str,
    t: &TensorType,
    shape: &[usize],
) -> Result<(), InferError> {
    if t.shape == shape {
        return Ok(());
    }
    Err(InferError::argument(argument, format!("expected a tensor of shape {shape:?}, got {t}")))
}

/// Splits (N, C, H, W) or (C, H, W) into its leading sizes and [H, W].
///
/// # Errors
/// Where the input has another number of dimensions.
pub(super) fn planes<'t>(op: &str, t: &'t TensorType) -> Result<(&'t [usize], [usize; 2]), InferError> {
    match t.shape[..] {
        [.., h, w] if t.shape.len() == 3 || t.shape.len() == 4 => Ok((&t.shape[..t.shape.len() - 2], [h, w])),
        _ => Err(InferError::argument("input", format!("{op} takes (N, C, H, W) or (C, H, W), got {t}"))),
    }
}

/// Parameters all have the input's dtype, or are all float32 beside a float16 or bfloat16 input.
///
/// # Errors
/// Names the first that does not go with the rest.
pub(super) fn require_parameter_dtypes(
    input: &TensorType,
    parameters: &[(&'static str, &Option<TensorType>)],
) -> Result<(), InferError> {
    let mut given = parameters.iter().filter_map(|(argument, t)| t.as_ref().map(|t| (*argument, t)));
    let Some((first_argument, first)) = given.next() else { return Ok(()) };
    let narrow = matches!(input.dtype, DType::F16 | DType::BF16);
    if first.dtype != input.dtype && !(narrow && first.dtype == DType::F32) {
        let also = if narrow { " or float32" } else { "" };
        return Err(InferError::argument(
            first_argument,
            format!("expected {}, the dtype of input{also}, got {first}", input.dtype),
        ));
    }
    given.try_for_each(|(argument, t)| require_dtype(argument, t, first_argument, first))
}
