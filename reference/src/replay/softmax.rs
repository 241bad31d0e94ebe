//! softmax in float32: shift by the maximum, exp, sum, scale.
//!
//! Formula: e_j = exp(x_j - m), y_i = e_i / sum e_j (or e_i * (1 / sum)), sums left to right, exp correctly rounded.
//! Cost: |y| (u|x - m| + e_exp + gamma_{n-1} + u): sound. Without the shift, exp overflows from x = 88.8 on.

use ulpian_spec::{DType, HostTensor, Op};

use super::lanes::{f32s, store};

/// Shifted, divided. Sound.
pub(super) fn shifted(op: &Op<&HostTensor>) -> Option<Vec<HostTensor>> {
    along(op, |row| {
        let m = row.iter().fold(f32::NEG_INFINITY, |m, &x| m.max(x));
        let e: Vec<f32> = row.iter().map(|&x| core_math::expf(x - m)).collect();
        let sum = e.iter().fold(0.0f32, |s, &x| s + x);
        e.into_iter().map(|x| x / sum).collect()
    })
}

/// Not shifted: infinities over infinities where exp overflows.
pub(super) fn unshifted(op: &Op<&HostTensor>) -> Option<Vec<HostTensor>> {
    along(op, |row| {
        let e: Vec<f32> = row.iter().map(|&x| core_math::expf(x)).collect();
        let sum = e.iter().fold(0.0f32, |s, &x| s + x);
        e.into_iter().map(|x| x / sum).collect()
    })
}

fn along(op: &Op<&HostTensor>, f: impl Fn(&[f32]) -> Vec<f32>) -> Option<Vec<HostTensor>> {
    let Op::Softmax(args) = op else { return None };
    let dtype = args.dtype.unwrap_or(args.input.dtype());
    if dtype != args.input.dtype() || !matches!(dtype, DType::F32 | DType::F16 | DType::BF16) {
        return None;
    }
    let x = f32s(args.input)?;
    let shape = args.input.shape();
    let rank = shape.len() as i64;
    let dim = usize::try_from(if args.dim < 0 { args.dim + rank } else { args.dim }).ok()?;
    let (n, inner) = (*shape.get(dim)?, shape[dim + 1..].iter().product::<usize>());
    let mut y = vec![0.0f32; x.len()];
    for outer in 0..x.len().checked_div(n * inner).unwrap_or(0) {
        for i in 0..inner {
            let at = |k: usize| (outer * n + k) * inner + i;
            let row: Vec<f32> = (0..n).map(|k| x[at(k)]).collect();
            for (k, value) in f(&row).into_iter().enumerate() {
                y[at(k)] = value;
            }
        }
    }
    Some(vec![store(dtype, shape, y)?])
}
