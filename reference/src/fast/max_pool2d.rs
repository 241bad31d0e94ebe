//! max_pool2d for float dtypes.
//!
//! Formula: the greatest of a window, the first of equal ones, and its position in the plane. Selection is exact: every radius
//! is 0.
//!
//! Special values: windows with a NaN, and empty ones, are left pending (both results). A window of -inf alone gives its first
//! element.

use rayon::prelude::*;
use ulpian_spec::ops::max_pool2d::MaxPool2d;
use ulpian_spec::{DType, HostTensor, Storage, TensorType};

use super::Candidate;
use super::gemm::Element;
use super::matmul::as_f32;

pub(super) fn max_pool2d(op: &MaxPool2d<&HostTensor>, types: &[TensorType]) -> Option<Vec<Candidate>> {
    let [.., height, width] = *op.input.shape() else { return None };
    let [.., out_height, out_width] = types[0].shape[..] else { return None };
    let (size, out) = ([height, width], [out_height, out_width]);
    let found = match op.input.storage() {
        Storage::F64(x) => positions(op, x, size, out),
        _ => positions(op, &as_f32(op.input)?, size, out),
    };
    let pending: Vec<usize> =
        found.iter().enumerate().filter(|(_, at)| at.is_none()).map(|(i, _)| i).collect();
    let (plane, out_plane) = (height * width, (out_height * out_width).max(1));
    // A pending element's place is taken by its plane's first, or by nothing in an empty plane.
    let at = |i: usize| i / out_plane * plane + found[i].unwrap_or(0);
    if plane == 0 {
        return None;
    }
    let indices = 0..found.len();
    let value = match op.input.storage() {
        Storage::F64(x) => Storage::F64(indices.map(|i| x[at(i)]).collect()),
        Storage::F32(x) => Storage::F32(indices.map(|i| x[at(i)]).collect()),
        Storage::F16(x) => Storage::F16(indices.map(|i| x[at(i)]).collect()),
        Storage::BF16(x) => Storage::BF16(indices.map(|i| x[at(i)]).collect()),
        _ => return None,
    };
    let candidate = |ty: &TensorType, center: Vec<f64>, value: Storage| Candidate {
        ty: ty.clone(),
        radius: vec![0.0; center.len()],
        center,
        low: Vec::new(),
        value,
        pending: pending.clone(),
    };
    let center = (0..found.len()).map(|i| op.input.get_f64(at(i))).collect();
    let mut results = vec![candidate(&types[0], center, value)];
    if let Some(ty) = types.get(1) {
        if ty.dtype != DType::I64 || plane > 1 << 53 {
            return None;
        }
        let center = found.iter().map(|at| at.unwrap_or(0) as f64).collect();
        let value = Storage::I64(found.iter().map(|at| at.unwrap_or(0) as i64).collect());
        results.push(candidate(ty, center, value));
    }
    Some(results)
}

/// The position within its plane of every window's greatest element; `None` for one that is empty or holds a NaN.
fn positions<E: Element>(
    op: &MaxPool2d<&HostTensor>,
    x: &[E],
    size: [usize; 2],
    out: [usize; 2],
) -> Vec<Option<usize>> {
    let window = |i: usize, d: usize| {
        let dilation = op.dilation[d];
        let start = i as i64 * op.stride[d] - op.padding[d];
        let end = (start + (op.kernel_size[d] - 1) * dilation + 1).min(size[d] as i64);
        let inside = if start < 0 { start + (-start + dilation - 1) / dilation * dilation } else { start };
        (inside as usize..end.max(inside) as usize).step_by(dilation as usize)
    };
    let planes = x.len() / (size[0] * size[1]).max(1);
    (0..planes * out[0])
        .into_par_iter()
        .flat_map_iter(|line| {
            let (plane, i) = (line / out[0], line % out[0]);
            let x = &x[plane * size[0] * size[1]..][..size[0] * size[1]];
            let rows = window(i, 0);
            (0..out[1]).map(move |j| {
                let mut best: Option<(f64, usize)> = None;
                for y in rows.clone() {
                    for column in window(j, 1) {
                        let at = y * size[1] + column;
                        let v = x[at].wide();
                        if v.is_nan() {
                            return None;
                        }
                        if best.is_none_or(|(most, _)| v > most) {
                            best = Some((v, at));
                        }
                    }
                }
                best.map(|(_, at)| at)
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use ulpian_spec::Op;

    use super::super::tests::{Data, KINDS, Random, assert_agrees, tensor};
    use super::*;

    #[test]
    fn every_attribute_with_indices() {
        let mut random = Random(0x9001);
        for round in 0..60 {
            let dtype = DType::FLOATS[round % 4];
            let kind = if round % 2 == 0 { Data::Integers } else { KINDS[round / 2 % 6] };
            let (h, w) = (6 + random.below(5), 7 + random.below(5));
            let x = tensor(&mut random, dtype, &[2, h, w], kind);
            let kernel = [1 + random.below(3), 1 + random.below(3)];
            let stride = [1 + random.below(3), 1 + random.below(3)];
            let padding = kernel.map(|k| random.below(k / 2 + 1));
            let dilation = [1 + random.below(2), 1 + random.below(2)];
            let wide = |a: [usize; 2]| a.map(|n| n as i64);
            let op = MaxPool2d {
                input: &x,
                kernel_size: wide(kernel),
                stride: wide(stride),
                padding: wide(padding),
                dilation: wide(dilation),
                ceil_mode: round % 3 == 0,
                return_indices: round % 2 == 0,
            };
            let op = Op::MaxPool2d(op);
            let types = op.clone().map(|_, t| t.tensor_type()).infer().expect("valid");
            assert_eq!(assert_agrees(&op, &types), 0);
        }
        let x =
            HostTensor::f32(&[1, 2, 3], &[f32::NAN, 1.0, f32::NEG_INFINITY, 0.0, -0.0, f32::NEG_INFINITY]);
        let op = Op::MaxPool2d(MaxPool2d {
            input: &x,
            kernel_size: [2, 1],
            stride: [1, 1],
            padding: [0, 0],
            dilation: [1, 1],
            ceil_mode: false,
            return_indices: true,
        });
        let types = op.clone().map(|_, t| t.tensor_type()).infer().expect("valid");
        assert_eq!(assert_agrees(&op, &types), 2);
    }
}
