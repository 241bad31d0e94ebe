//! What all replays share: operands as float32, results rounded to their dtype, broadcasting, contraction.
//!
//! float16 and bfloat16 operands are exact in float32, which is also what CPUs and GPUs compute them in (PyTorch's
//! "opmath"). float64 calls are not replayed.

use std::borrow::Cow;

use half::{bf16, f16};
use ulpian_spec::{DType, HostTensor, Storage};

/// `a * b + c` with one rounding where `FMA`, with two otherwise: compilers contract the expression where the target has
/// the instruction (GCC does so by default).
#[inline(always)]
pub(super) fn mul_add<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// The elements of a float32, float16 or bfloat16 tensor.
pub(super) fn f32s(t: &HostTensor) -> Option<Vec<f32>> {
    borrowed_f32s(t).map(Cow::into_owned)
}

/// The same, not copied where they are float32 already.
pub(super) fn borrowed_f32s(t: &HostTensor) -> Option<Cow<'_, [f32]>> {
    match t.storage() {
        Storage::F32(v) => Some(Cow::Borrowed(v)),
        Storage::F16(v) => Some(v.iter().map(|x| x.to_f32()).collect()),
        Storage::BF16(v) => Some(v.iter().map(|x| x.to_f32()).collect()),
        _ => None,
    }
}

/// `x` rounded to the nearest number of `dtype` (float32, float16 or bfloat16), ties to even.
pub(super) fn round_to(dtype: DType, x: f32) -> f32 {
    match dtype {
        DType::F16 => f16::from_f32(x).to_f32(),
        DType::BF16 => bf16::from_f32(x).to_f32(),
        _ => x,
    }
}

/// A tensor of `dtype` (float32, float16 or bfloat16), each element rounded to nearest, ties to even.
pub(super) fn store(dtype: DType, shape: &[usize], data: Vec<f32>) -> Option<HostTensor> {
    let storage = match dtype {
        DType::F32 => Storage::F32(data),
        DType::F16 => Storage::F16(data.into_iter().map(f16::from_f32).collect()),
        DType::BF16 => Storage::BF16(data.into_iter().map(bf16::from_f32).collect()),
        _ => return None,
    };
    HostTensor::new(shape, storage)
}

/// The common shape of two operands; `None` where they do not broadcast.
pub(super) fn broadcast_shape(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let rank = a.len().max(b.len());
    (0..rank)
        .map(|i| {
            let size = |s: &[usize]| (i + s.len()).checked_sub(rank).map_or(1, |j| s[j]);
            match (size(a), size(b)) {
                (1, n) | (n, 1) => Some(n),
                (m, n) => (m == n).then_some(m),
            }
        })
        .collect()
}

/// For every position of `to`, row-major, the position in a tensor of shape `from` that broadcasts to it.
pub(super) fn broadcast_index(from: &[usize], to: &[usize]) -> Vec<usize> {
    let offset = to.len() - from.len();
    let mut strides = vec![0usize; to.len()];
    let mut stride = 1;
    for i in (0..from.len()).rev() {
        strides[offset + i] = if from[i] == 1 { 0 } else { stride };
        stride *= from[i];
    }
    let total: usize = to.iter().product();
    let mut list = Vec::with_capacity(total);
    let mut index = vec![0usize; to.len()];
    let mut at = 0;
    for _ in 0..total {
        list.push(at);
        for i in (0..to.len()).rev() {
            index[i] += 1;
            at += strides[i];
            if index[i] < to[i] {
                break;
            }
            at -= strides[i] * to[i];
            index[i] = 0;
        }
    }
    list
}
