//! The formulas of the 15 ops over [`Real`], written from PyTorch's documentation.

use std::cmp::Ordering;

use rug::Float;
use rug::float::Constant;
use ulpian_spec::ops::{GeluApproximate, Padding, RoundingMode, Scalar, TensorOrScalar};
use ulpian_spec::{DType, HostTensor, Op};

use crate::real::{FREE_ZERO, PLUS_ZERO, Real, SLACK, exp, sum, tiny};

/// A tensor of exact results.
#[derive(Debug, Clone)]
pub struct Tensor {
    pub dtype: DType,
    pub shape: Vec<usize>,
    pub data: Vec<Real>,
}

impl Tensor {
    pub fn from_host(t: &HostTensor, prec: u32) -> Tensor {
        let data = (0..t.len())
            .map(|i| match t.get_i64(i) {
                Some(n) => Real::from_int(n, prec),
                None => Real::from_f64(t.get_f64(i), prec),
            })
            .collect();
        Tensor { dtype: t.dtype(), shape: t.shape().to_vec(), data }
    }

    /// The element for the multi-index of a broadcast result.
    fn at(&self, index: &[usize]) -> &Real {
        let skip = index.len() - self.shape.len();
        let flat = self
            .shape
            .iter()
            .zip(&index[skip..])
            .fold(0, |flat, (&size, &i)| flat * size + if size == 1 { 0 } else { i });
        &self.data[flat]
    }
}

fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
    let count: usize = shape.iter().product();
    (0..count).map(|i| ulpian_spec::tensor::unravel(i, shape)).collect()
}

fn broadcast_shapes(a: &[usize], b: &[usize]) -> Vec<usize> {
    let n = a.len().max(b.len());
    (0..n)
        .map(|i| {
            let get = |s: &[usize]| (i + s.len()).checked_sub(n).map_or(1, |j| s[j]);
            if get(a) == 1 { get(b) } else { get(a) }
        })
        .collect()
}

/// PyTorch's result dtype of two operands, one of which may be a Python scalar.
fn promoted(a: &Tensor, b: &TensorOrScalar<&Tensor>) -> DType {
    match b {
        TensorOrScalar::Tensor(t) if t.shape.is_empty() == a.shape.is_empty() => a.dtype.promote(t.dtype),
        TensorOrScalar::Tensor(t) => a.dtype.promote(t.dtype),
        TensorOrScalar::Scalar(Scalar::Float(_)) if !a.dtype.is_float() => DType::F32,
        TensorOrScalar::Scalar(Scalar::Int(_)) if a.dtype == DType::Bool => DType::I64,
        TensorOrScalar::Scalar(_) => a.dtype,
    }
}

fn scalar(s: Scalar, prec: u32) -> Real {
    match s {
        Scalar::Bool(b) => Real::from_int(i64::from(b), prec),
        Scalar::Int(n) => Real::from_int(n, prec),
        Scalar::Float(x) => Real::from_f64(x, prec),
    }
}

fn pointwise(
    a: &Tensor,
    b: &TensorOrScalar<&Tensor>,
    dtype: DType,
    prec: u32,
    f: impl Fn(&Real, &Real) -> Real,
) -> Tensor {
    let scalar_shape: Vec<usize> = Vec::new();
    let shape = broadcast_shapes(
        &a.shape,
        match b {
            TensorOrScalar::Tensor(t) => &t.shape,
            TensorOrScalar::Scalar(_) => &scalar_shape,
        },
    );
    let data = indices(&shape)
        .iter()
        .map(|i| match b {
            TensorOrScalar::Tensor(t) => f(a.at(i), t.at(i)),
            TensorOrScalar::Scalar(s) => f(a.at(i), &scalar(*s, prec)),
        })
        .map(|x| in_dtype(x, dtype, prec))
        .collect();
    Tensor { dtype, shape, data }
}

fn in_dtype(x: Real, dtype: DType, prec: u32) -> Real {
    if dtype.is_float() { x } else { Real::from_int(x.wrapped(dtype), prec) }
}

fn map(a: &Tensor, f: impl Fn(&Real) -> Real) -> Tensor {
    Tensor { data: a.data.iter().map(f).collect(), ..a.clone() }
}

/// All results of an op.
pub fn run(op: &Op<&Tensor>, prec: u32) -> Vec<Tensor> {
    let one = |t: Tensor| vec![t];
    match op {
        Op::Flatten(a) => {
            let n = a.input.shape.len();
            let wrap = |d: i64| if d < 0 { (d + n.max(1) as i64) as usize } else { d as usize };
            let mut shape = a.input.shape.clone();
            if n == 0 {
                shape = vec![1];
            } else {
                let (s, e) = (wrap(a.start_dim), wrap(a.end_dim));
                let joined = shape[s..=e].iter().product();
                shape.splice(s..=e, [joined]);
            }
            one(Tensor { shape, ..a.input.clone() })
        }
        Op::Add(a) => {
            let alpha = scalar(a.alpha, prec);
            one(pointwise(a.input, &a.other, promoted(a.input, &a.other), prec, |x, y| {
                x.add(&y.mul(&alpha, prec), prec)
            }))
        }
        Op::Mul(a) => {
            one(pointwise(a.input, &a.other, promoted(a.input, &a.other), prec, |x, y| x.mul(y, prec)))
        }
        Op::Div(a) => {
            let mut dtype = promoted(a.input, &a.other);
            if a.rounding_mode.is_none() && !dtype.is_float() {
                dtype = DType::F32;
            }
            one(pointwise(a.input, &a.other, dtype, prec, |x, y| match a.rounding_mode {
                None => x.div(y, prec),
                Some(mode) => rounded(&x.div(y, prec), mode, prec),
            }))
        }
        Op::Softmax(a) => one(softmax(a.input, a.dim, a.dtype, prec)),
        Op::Relu(a) => one(map(a.input, |x| match x {
            Real::Zero { negative, .. } => Real::Zero { negative: *negative, free: true },
            x if x.negative() == Some(true) => PLUS_ZERO,
            x => x.clone(),
        })),
        Op::Gelu(a) => one(map(a.input, |x| match a.approximate {
            GeluApproximate::None => gelu(x, prec),
            GeluApproximate::Tanh => gelu_tanh(x, prec),
        })),
        Op::Dropout(a) => {
            if !a.training || a.p == 0.0 {
                return one(a.input.clone());
            }
            let keep = Real::from_int(1, prec).sub(&Real::from_f64(a.p, prec), prec);
            let data = (0..a.input.data.len())
                .map(|i| {
                    let x = &a.input.data[i];
                    let kept = a.p < 1.0 && a.mask.is_some_and(|m| !matches!(m.data[i], Real::Zero { .. }));
                    if kept {
                        return x.div(&keep, prec);
                    }
                    match x {
                        Real::Nan | Real::Inf { .. } => Real::Nan,
                        x => Real::Zero { negative: x.negative() == Some(true), free: true },
                    }
                })
                .collect();
            one(Tensor { data, ..a.input.clone() })
        }
        Op::Matmul(a) => one(matmul(a.input, a.other, prec)),
        Op::Linear(a) => {
            let k = *a.input.shape.last().expect("one dimension at least");
            let mut shape = a.input.shape.clone();
            shape.pop();
            if a.weight.shape.len() == 2 {
                shape.push(a.weight.shape[0]);
            }
            let n = if a.weight.shape.len() == 2 { a.weight.shape[0] } else { 1 };
            let rows = a.input.data.len() / k.max(1);
            let mut data = Vec::new();
            for r in 0..rows {
                for c in 0..n {
                    let mut terms: Vec<Real> = (0..k)
                        .map(|i| a.input.data[r * k + i].mul(&a.weight.data[c * k + i], prec))
                        .collect();
                    if let Some(b) = a.bias {
                        terms.push(b.data[c % b.data.len()].clone());
                    }
                    data.push(in_dtype(sum(&terms, prec), a.input.dtype, prec));
                }
            }
            one(Tensor { dtype: a.input.dtype, shape, data })
        }
        Op::Conv2d(a) => one(conv2d(a, prec)),
        Op::AdaptiveAvgPool2d(a) => {
            let n = a.input.shape.len();
            let (h, w) = (a.input.shape[n - 2], a.input.shape[n - 1]);
            let oh = a.output_size[0].map_or(h, |x| x as usize);
            let ow = a.output_size[1].map_or(w, |x| x as usize);
            let mut shape = a.input.shape.clone();
            (shape[n - 2], shape[n - 1]) = (oh, ow);
            let data = indices(&shape)
                .iter()
                .map(|index| {
                    let mut terms = Vec::new();
                    let mut at = index.clone();
                    let (i, j) = (index[n - 2], index[n - 1]);
                    for y in (i * h) / oh..((i + 1) * h).div_ceil(oh) {
                        for x in (j * w) / ow..((j + 1) * w).div_ceil(ow) {
                            (at[n - 2], at[n - 1]) = (y, x);
                            terms.push(a.input.at(&at).clone());
                        }
                    }
                    sum(&terms, prec).div(&Real::from_int(terms.len() as i64, prec), prec)
                })
                .collect();
            one(Tensor { dtype: a.input.dtype, shape, data })
        }
        Op::MaxPool2d(a) => max_pool2d(a, prec),
        Op::LayerNorm(a) => {
            let length = a.normalized_shape.iter().product::<i64>() as usize;
            let mut data = Vec::new();
            for row in a.input.data.chunks(length) {
                let [mean, var, _] = statistics(row, prec);
                let eps = Real::from_f64(a.eps, prec);
                for (i, x) in row.iter().enumerate() {
                    let (w, b) = (a.weight.map(|w| &w.data[i]), a.bias.map(|b| &b.data[i]));
                    data.push(normalized(x, &mean, &var, &eps, w, b, prec));
                }
            }
            one(Tensor { dtype: a.input.dtype, shape: a.input.shape.clone(), data })
        }
        Op::BatchNorm(a) => batch_norm(a, prec),
    }
}

fn rounded(x: &Real, mode: RoundingMode, prec: u32) -> Real {
    let Real::Num(v) = x else {
        return x.clone();
    };
    // A quotient that ought to be an integer is one exactly: MPFR rounds exact results to themselves.
    let n = match mode {
        RoundingMode::Floor => v.clone().floor(),
        RoundingMode::Trunc => v.clone().trunc(),
    };
    if n.is_zero() {
        Real::Zero { negative: mode == RoundingMode::Trunc && v.is_sign_negative(), free: false }
    } else {
        Real::Num(Float::with_val(prec, n))
    }
}

fn softmax(x: &Tensor, dim: i64, dtype: Option<DType>, prec: u32) -> Tensor {
    let n = x.shape.len();
    let dtype = dtype.unwrap_or(x.dtype);
    if n == 0 {
        let y = match &x.data[0] {
            Real::Nan | Real::Inf { .. } => Real::Nan,
            _ => Real::from_int(1, prec),
        };
        return Tensor { dtype, shape: vec![], data: vec![y] };
    }
    let axis = if dim < 0 { (dim + n as i64) as usize } else { dim as usize };
    let mut data = x.data.clone();
    let stride: usize = x.shape[axis + 1..].iter().product();
    let length = x.shape[axis];
    for start in 0..data.len() {
        if length == 0 || start / stride % length != 0 {
            continue;
        }
        let row: Vec<usize> = (0..length).map(|k| start + k * stride).collect();
        let mut max = Real::Inf { negative: true };
        for &i in &row {
            if matches!(x.data[i], Real::Nan) || greater(&x.data[i], &max) {
                max = x.data[i].clone();
                if matches!(max, Real::Nan) {
                    break;
                }
            }
        }
        let powers: Vec<Real> = row.iter().map(|&i| exp(&x.data[i].sub(&max, prec), prec)).collect();
        let total = sum(&powers, prec);
        for (&i, p) in row.iter().zip(&powers) {
            data[i] = p.div(&total, prec);
        }
    }
    Tensor { dtype, shape: x.shape.clone(), data }
}

/// a > b over the extended reals.
fn greater(a: &Real, b: &Real) -> bool {
    compare(a, b) == Some(Ordering::Greater)
}

fn compare(a: &Real, b: &Real) -> Option<Ordering> {
    let key = |x: &Real| match x {
        Real::Nan => None,
        Real::Inf { negative } => Some((if *negative { -1 } else { 1 }, Float::new(64))),
        Real::Zero { .. } => Some((0, Float::new(64))),
        Real::Num(x) => Some((0, x.clone())),
    };
    let ((a_class, a), (b_class, b)) = (key(a)?, key(b)?);
    if a_class == b_class { a.partial_cmp(&b) } else { Some(a_class.cmp(&b_class)) }
}

/// 0.5 x erfc(-x / sqrt 2).
fn gelu(x: &Real, prec: u32) -> Real {
    match x {
        Real::Inf { negative: true } => Real::Zero { negative: true, free: true },
        Real::Num(v) => {
            let root = Float::with_val(prec, 2).sqrt();
            let z = -Float::with_val(prec, v / &root);
            // log2 of e^(z^2), about: MPFR's erfc may not return where this is vast.
            let bits = z.to_f64().powi(2) * std::f64::consts::LOG2_E;
            if bits > 1e7 && z.is_sign_positive() {
                return tiny(true, prec);
            }
            // 1 - erfc(|z|) / 2 rounds to 1 where erfc(|z|) < 2^-bits is below half a unit.
            let y: Float =
                if z.is_sign_negative() && bits > f64::from(prec + 8) { v.clone() } else { z.erfc() * v / 2 };
            if y.is_zero() { tiny(v.is_sign_negative(), prec) } else { Real::Num(below(y, v)) }
        }
        other => other.clone(),
    }
}

/// 0.5 x (1 + tanh t) as x e^2t / (e^2t + 1).
fn gelu_tanh(x: &Real, prec: u32) -> Real {
    match x {
        Real::Inf { negative: true } => Real::Zero { negative: true, free: true },
        Real::Num(v) => {
            let root = (Float::with_val(prec, 2) / Float::with_val(prec, Constant::Pi)).sqrt();
            let coefficient = Float::with_val(prec, 44715) / 1_000_000;
            let cube = Float::with_val(prec, v * v) * v * coefficient;
            let t2: Float = (cube + v) * root * 2;
            let y = if t2.is_sign_negative() {
                let e = t2.exp();
                Float::with_val(prec, v * &e) / (e + 1)
            } else {
                let e = (-t2).exp();
                v / (e + Float::with_val(prec, 1))
            };
            if y.is_zero() {
                tiny(v.is_sign_negative(), prec)
            } else {
                Real::Num(below(Float::with_val(prec, y), v))
            }
        }
        other => other.clone(),
    }
}

/// gelu of a positive number is less than it; where MPFR's rounding hides that, a little is taken off.
fn below(y: Float, x: &Float) -> Float {
    if y == *x {
        let less = y.clone() >> (y.prec() - SLACK - 100);
        y - less
    } else {
        y
    }
}

fn matmul(a: &Tensor, b: &Tensor, prec: u32) -> Tensor {
    let (va, vb) = (a.shape.len() == 1, b.shape.len() == 1);
    let a_shape: Vec<usize> = if va { vec![1, a.shape[0]] } else { a.shape.clone() };
    let b_shape: Vec<usize> = if vb { vec![b.shape[0], 1] } else { b.shape.clone() };
    let (na, nb) = (a_shape.len(), b_shape.len());
    let (m, k, n) = (a_shape[na - 2], a_shape[na - 1], b_shape[nb - 1]);
    let batch = broadcast_shapes(&a_shape[..na - 2], &b_shape[..nb - 2]);
    let a = Tensor { shape: a_shape, ..a.clone() };
    let b = Tensor { shape: b_shape, ..b.clone() };
    let mut data = Vec::new();
    for index in indices(&batch) {
        for i in 0..m {
            for j in 0..n {
                let terms: Vec<Real> = (0..k)
                    .map(|l| {
                        let (mut ia, mut ib) = (index.clone(), index.clone());
                        ia.extend([i, l]);
                        ib.extend([l, j]);
                        a.at(&ia).mul(b.at(&ib), prec)
                    })
                    .collect();
                data.push(in_dtype(sum(&terms, prec), a.dtype, prec));
            }
        }
    }
    let mut shape = batch;
    if !va {
        shape.push(m);
    }
    if !vb {
        shape.push(n);
    }
    Tensor { dtype: a.dtype, shape, data }
}

fn conv2d(a: &ulpian_spec::ops::conv2d::Conv2d<&Tensor>, prec: u32) -> Tensor {
    let batched = a.input.shape.len() == 4;
    let mut in_shape = a.input.shape.clone();
    if !batched {
        in_shape.insert(0, 1);
    }
    let input = Tensor { shape: in_shape.clone(), ..a.input.clone() };
    let w = &a.weight.shape;
    // Rows and columns of zeros before and after.
    let pads: [[i64; 2]; 2] = [0, 1].map(|d| match a.padding {
        Padding::Valid => [0, 0],
        Padding::Explicit(p) => [p[d], p[d]],
        Padding::Same => {
            let total = a.dilation[d] * (w[d + 2] as i64 - 1);
            [total / 2, total - total / 2]
        }
    });
    let out = [0, 1].map(|d| {
        let size = in_shape[d + 2] as i64 + pads[d][0] + pads[d][1];
        ((size - a.dilation[d] * (w[d + 2] as i64 - 1) - 1) / a.stride[d] + 1) as usize
    });
    let shape = vec![in_shape[0], w[0], out[0], out[1]];
    let per_group = w[0] / a.groups as usize;
    let data = indices(&shape)
        .iter()
        .map(|o| {
            let mut terms = Vec::new();
            for c in 0..w[1] {
                for u in 0..w[2] {
                    for v in 0..w[3] {
                        let y = o[2] as i64 * a.stride[0] + u as i64 * a.dilation[0] - pads[0][0];
                        let x = o[3] as i64 * a.stride[1] + v as i64 * a.dilation[1] - pads[1][0];
                        let inside = y >= 0 && x >= 0 && y < in_shape[2] as i64 && x < in_shape[3] as i64;
                        let value = if inside {
                            input.at(&[o[0], o[1] / per_group * w[1] + c, y as usize, x as usize]).clone()
                        } else {
                            PLUS_ZERO
                        };
                        terms.push(value.mul(a.weight.at(&[o[1], c, u, v]), prec));
                    }
                }
            }
            if let Some(b) = a.bias {
                terms.push(b.data[o[1]].clone());
            }
            in_dtype(sum(&terms, prec), input.dtype, prec)
        })
        .collect();
    let shape = if batched { shape } else { shape[1..].to_vec() };
    Tensor { dtype: input.dtype, shape, data }
}

fn max_pool2d(a: &ulpian_spec::ops::max_pool2d::MaxPool2d<&Tensor>, prec: u32) -> Vec<Tensor> {
    let n = a.input.shape.len();
    let out = [0, 1].map(|d| {
        let size = a.input.shape[n - 2 + d] as i64;
        let span = size + 2 * a.padding[d] - a.dilation[d] * (a.kernel_size[d] - 1) - 1;
        let mut o = if a.ceil_mode {
            (span + a.stride[d] - 1).div_euclid(a.stride[d])
        } else {
            span.div_euclid(a.stride[d])
        } + 1;
        if a.ceil_mode && (o - 1) * a.stride[d] >= size + a.padding[d] {
            o -= 1;
        }
        o as usize
    });
    let mut shape = a.input.shape.clone();
    (shape[n - 2], shape[n - 1]) = (out[0], out[1]);
    let (h, w) = (a.input.shape[n - 2] as i64, a.input.shape[n - 1] as i64);
    let (mut values, mut positions) = (Vec::new(), Vec::new());
    for index in indices(&shape) {
        let mut best: Option<(Real, i64)> = None;
        for u in 0..a.kernel_size[0] {
            for v in 0..a.kernel_size[1] {
                let y = index[n - 2] as i64 * a.stride[0] - a.padding[0] + u * a.dilation[0];
                let x = index[n - 1] as i64 * a.stride[1] - a.padding[1] + v * a.dilation[1];
                if y < 0 || x < 0 || y >= h || x >= w {
                    continue;
                }
                let mut at = index.clone();
                (at[n - 2], at[n - 1]) = (y as usize, x as usize);
                let value = a.input.at(&at);
                let take = match &best {
                    None => true,
                    Some((b, _)) => matches!(value, Real::Nan) || greater(value, b),
                };
                if take {
                    best = Some((value.clone(), y * w + x));
                }
            }
        }
        let (value, position) = best.expect("a window holds an element");
        values.push(value);
        positions.push(Real::from_int(position, prec));
    }
    let mut results = vec![Tensor { dtype: a.input.dtype, shape: shape.clone(), data: values }];
    if a.return_indices {
        results.push(Tensor { dtype: DType::I64, shape, data: positions });
    }
    results
}

/// Mean, biased and unbiased variance, as n x - S and n Q - S^2 so that exact inputs cancel exactly.
fn statistics(x: &[Real], prec: u32) -> [Real; 3] {
    if x.iter().any(|v| matches!(v, Real::Nan | Real::Inf { .. })) {
        let mean = sum(x, prec);
        return [mean, Real::Nan, Real::Nan];
    }
    let n = Real::from_int(x.len() as i64, prec);
    let s = sum(x, prec);
    let squares: Vec<Real> = x.iter().map(|v| v.mul(v, prec)).collect();
    let q = sum(&squares, prec);
    let spread = n.mul(&q, prec).sub(&s.mul(&s, prec), prec);
    let var = spread.div(&n.mul(&n, prec), prec);
    let fewer = Real::from_int(x.len() as i64 - 1, prec);
    [s.div(&n, prec), var, spread.div(&n, prec).div(&fewer, prec)]
}

fn normalized(
    x: &Real,
    mean: &Real,
    var: &Real,
    eps: &Real,
    w: Option<&Real>,
    b: Option<&Real>,
    prec: u32,
) -> Real {
    let d = x.sub(mean, prec);
    let mut root = var.add(eps, prec).sqrt(prec);
    if matches!(root, Real::Zero { .. }) {
        root = PLUS_ZERO;
    }
    // d w / root + b.
    let mut y = d.div(&root, prec);
    if let Some(w) = w {
        y = y.mul(w, prec);
    }
    if let Some(b) = b {
        y = y.add(b, prec);
    }
    match y {
        Real::Zero { negative, .. } => Real::Zero { negative, free: true },
        y => y,
    }
}

fn batch_norm(a: &ulpian_spec::ops::batch_norm::BatchNorm<&Tensor>, prec: u32) -> Vec<Tensor> {
    let shape = &a.input.shape;
    let (batch, channels) = (shape[0], shape[1]);
    let inner: usize = shape[2..].iter().product();
    let eps = Real::from_f64(a.eps, prec);
    let mut data = vec![FREE_ZERO; a.input.data.len()];
    let (mut means, mut vars) = (Vec::new(), Vec::new());
    for c in 0..channels {
        let at: Vec<usize> =
            (0..batch).flat_map(|n| (0..inner).map(move |i| (n * channels + c) * inner + i)).collect();
        let values: Vec<Real> = at.iter().map(|&i| a.input.data[i].clone()).collect();
        let (mean, var) = if a.training {
            let [mean, var, unbiased] = statistics(&values, prec);
            let momentum = Real::from_f64(a.momentum, prec);
            let rest = Real::from_int(1, prec).sub(&momentum, prec);
            let update = |old: Option<&Tensor>, new: &Real| {
                old.map(|t| match values.len() {
                    0 => t.data[c].clone(),
                    _ => t.data[c].mul(&rest, prec).add(&new.mul(&momentum, prec), prec),
                })
            };
            means.extend(update(a.running_mean, &mean));
            vars.extend(update(a.running_var, &unbiased));
            (mean, var)
        } else {
            let get = |t: Option<&Tensor>| t.expect("running statistics in evaluation").data[c].clone();
            (get(a.running_mean), get(a.running_var))
        };
        for (&i, x) in at.iter().zip(&values) {
            let (w, b) = (a.weight.map(|w| &w.data[c]), a.bias.map(|b| &b.data[c]));
            data[i] = normalized(x, &mean, &var, &eps, w, b, prec);
        }
    }
    let mut results = vec![Tensor { dtype: a.input.dtype, shape: shape.clone(), data }];
    if a.training && a.running_mean.is_some() {
        let dtype = |t: Option<&Tensor>| t.map_or(a.input.dtype, |t| t.dtype);
        results.push(Tensor { dtype: dtype(a.running_mean), shape: vec![channels], data: means });
        results.push(Tensor { dtype: dtype(a.running_var), shape: vec![channels], data: vars });
    }
    results
}
