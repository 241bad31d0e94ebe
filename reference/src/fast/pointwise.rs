//! The frame of pointwise ops with two operands: broadcasting, conversion, rounding.
//!
//! Method: the result in blocks; each operand's part of a block is brought to float64, the op's formula gives every element
//! as hi + lo within an extra bound, hi = fl(hi + lo). For a narrow dtype the centre is hi and the radius |lo| + extra, and
//! what that does not round is rounded from all three; a float64 result keeps lo.
//!
//! Cost: fresh memory is most of it (a page is dearer than its 512 results). Radii come as zeros that no page stands behind yet,
//! and a block whose results are all exact, as nearly all are of products and sums of narrow dtypes, leaves them so: it writes 8
//! bytes of centre and the value.
//!
//! Special values: where hi is NaN or infinite the element is its own value, as IEEE 754 has it, if an operand was not finite
//! or the divisor was zero; overflow of float64 itself is left pending. A zero keeps IEEE 754's sign.

use half::{bf16, f16};
use rayon::prelude::*;
use ulpian_spec::ops::{Scalar, TensorOrScalar};
use ulpian_spec::{DType, HostTensor, Storage, TensorType};

use super::decide::{Narrow, decide_inline, round_exact_inline};
use super::matmul::with_narrow;
use super::{Candidate, vectorize};
use crate::round::round_interval;

/// Elements of a block, and of a task.
const BLOCK: usize = 512;
const CHUNK: usize = 1 << 15;

/// An element as hi + lo within a bound.
pub(super) type Triple = (f64, f64, f64);

/// One operand under the result's shape.
pub(super) enum Operand<'a> {
    Number(f64),
    Same(&'a HostTensor),
    /// Per dimension of the result, innermost first: its size and the operand's step.
    Steps(&'a HostTensor, Vec<(usize, usize)>),
}

impl<'a> Operand<'a> {
    /// `None` for dtypes other than `ty`'s, where a conversion would come first.
    pub(super) fn tensor(tensor: &'a HostTensor, ty: &TensorType) -> Option<Operand<'a>> {
        if tensor.dtype() != ty.dtype || !ty.dtype.is_float() {
            return None;
        }
        let shape = tensor.shape();
        if shape == ty.shape {
            return Some(Operand::Same(tensor));
        }
        if tensor.len() == 1 {
            return Some(Operand::Number(tensor.get_f64(0)));
        }
        let mut stride = 1;
        let steps = ty.shape.iter().rev().enumerate().map(|(d, &size)| {
            match shape.len().checked_sub(d + 1).map(|d| shape[d]) {
                Some(n) if n > 1 => {
                    let step = stride;
                    stride *= n;
                    (size, step)
                }
                _ => (size, 0),
            }
        });
        Some(Operand::Steps(tensor, steps.collect()))
    }

    /// As [`Operand::tensor`], or a scalar: a float taken exactly, an integer of at most 53 bits.
    pub(super) fn other(other: &TensorOrScalar<&'a HostTensor>, ty: &TensorType) -> Option<Operand<'a>> {
        match *other {
            TensorOrScalar::Tensor(t) => Operand::tensor(t, ty),
            TensorOrScalar::Scalar(s) => exact(s).map(Operand::Number),
        }
    }

    /// Elements `first..` of the broadcast operand.
    #[inline(always)]
    fn load(&self, first: usize, to: &mut [f64]) {
        match self {
            Operand::Number(x) => to.fill(*x),
            Operand::Same(t) => match t.storage() {
                Storage::F32(v) => {
                    for (to, &x) in to.iter_mut().zip(&v[first..]) {
                        *to = f64::from(x);
                    }
                }
                Storage::F64(v) => to.copy_from_slice(&v[first..][..to.len()]),
                Storage::F16(v) => {
                    for (to, x) in to.iter_mut().zip(&v[first..]) {
                        *to = f64::from(x.to_f32());
                    }
                }
                Storage::BF16(v) => {
                    for (to, x) in to.iter_mut().zip(&v[first..]) {
                        *to = f64::from(f32::from_bits(u32::from(x.to_bits()) << 16));
                    }
                }
                _ => {}
            },
            Operand::Steps(t, steps) => {
                for (i, to) in to.iter_mut().enumerate() {
                    let (mut rest, mut at) = (first + i, 0);
                    for &(size, step) in steps {
                        at += rest % size * step;
                        rest /= size;
                    }
                    *to = t.get_f64(at);
                }
            }
        }
    }
}

/// The scalar, where float64 holds it.
pub(super) fn exact(scalar: Scalar) -> Option<f64> {
    match scalar {
        Scalar::Int(i) if i.unsigned_abs() > 1 << 53 => None,
        s => Some(s.as_f64()),
    }
}

/// Evaluates `formula` elementwise. `whole` says whether an infinite or NaN result of these operands is IEEE 754's own.
pub(super) fn evaluate(
    [x, y]: [Operand<'_>; 2],
    ty: &TensorType,
    formula: impl Fn(f64, f64) -> Triple + Sync + Copy,
) -> Option<Candidate> {
    if ty.dtype == DType::F64 {
        return Some(float64(&x, &y, ty, formula));
    }
    with_narrow!(ty.dtype, narrow(&x, &y, ty, formula))
}

/// Is an infinite or NaN `hi` right, rather than an overflow of float64?
#[inline(always)]
fn proper(x: f64, y: f64, hi: f64) -> bool {
    !(x.is_finite() && y.is_finite()) || y == 0.0 && (x == 0.0 || hi.is_infinite())
}

fn narrow<T: Narrow>(
    x: &Operand<'_>,
    y: &Operand<'_>,
    ty: &TensorType,
    formula: impl Fn(f64, f64) -> Triple + Sync + Copy,
) -> Candidate {
    let len = ty.shape.iter().product();
    let (mut center, mut radius, mut value) = (vec![0.0; len], vec![0.0; len], vec![T::default(); len]);
    let format = ty.dtype.float_format().expect("a float dtype");
    let pending = center
        .par_chunks_mut(CHUNK)
        .zip(radius.par_chunks_mut(CHUNK))
        .zip(value.par_chunks_mut(CHUNK))
        .enumerate()
        .flat_map_iter(|(t, ((center, radius), value))| {
            let mut pending = Vec::new();
            let mut list = Vec::new();
            let (mut xs, mut ys, mut errors) = ([0.0; BLOCK], [0.0; BLOCK], [0.0; BLOCK]);
            for (b, ((c, r), v)) in center
                .chunks_mut(BLOCK)
                .zip(radius.chunks_mut(BLOCK))
                .zip(value.chunks_mut(BLOCK))
                .enumerate()
            {
                let first = t * CHUNK + b * BLOCK;
                let (xs, ys) = (&mut xs[..c.len()], &mut ys[..c.len()]);
                let errors = &mut errors[..c.len()];
                let mut unusual = false;
                list.clear();
                vectorize(
                    #[inline(always)]
                    || {
                        x.load(first, xs);
                        y.load(first, ys);
                        let operands = xs.iter().zip(ys.iter());
                        let mut exact = true;
                        for (((&x, &y), c), e) in operands.zip(c.iter_mut()).zip(errors.iter_mut()) {
                            let (hi, lo, extra) = formula(x, y);
                            *c = hi;
                            *e = (lo.abs() + extra) * (1.0 + f64::EPSILON);
                            exact &= (*e == 0.0) & (hi.abs() < f64::INFINITY);
                        }
                        if exact {
                            round_exact_inline(c, v);
                            return;
                        }
                        r.copy_from_slice(errors);
                        // Zeros have signs, and infinities and NaN no radius.
                        unusual = c.iter().any(|&c| (c == 0.0) | !c.is_finite());
                        decide_inline(c, r, v, 0, &mut list);
                    },
                );
                if unusual {
                    for i in 0..c.len() {
                        if c[i].abs() < f64::INFINITY && c[i] != 0.0 {
                            continue;
                        }
                        let whole =
                            c[i] == 0.0 && r[i] == 0.0 || !c[i].is_finite() && proper(xs[i], ys[i], c[i]);
                        let at = list.binary_search(&i);
                        if whole {
                            r[i] = 0.0;
                            T::narrow(&[c[i] as f32], &mut v[i..=i]);
                            if let Ok(at) = at {
                                list.remove(at);
                            }
                        } else if let Err(at) = at {
                            list.insert(at, i);
                        }
                    }
                }
                list.retain(|&i| {
                    let (hi, lo, extra) = formula(xs[i], ys[i]);
                    match round_interval(format, hi, lo, extra) {
                        Some(rounded) => {
                            T::narrow(&[rounded as f32], &mut v[i..=i]);
                            false
                        }
                        None => true,
                    }
                });
                pending.extend(list.iter().map(|i| first + i));
            }
            pending
        })
        .collect();
    Candidate { ty: ty.clone(), center, low: Vec::new(), radius, value: T::into_storage(value), pending }
}

fn float64(
    x: &Operand<'_>,
    y: &Operand<'_>,
    ty: &TensorType,
    formula: impl Fn(f64, f64) -> Triple + Sync + Copy,
) -> Candidate {
    let len = ty.shape.iter().product();
    let (mut center, mut radius, mut low) = (vec![0.0; len], vec![0.0; len], vec![0.0; len]);
    let format = DType::F64.float_format().expect("a float dtype");
    let pending = center
        .par_chunks_mut(CHUNK)
        .zip(radius.par_chunks_mut(CHUNK))
        .zip(low.par_chunks_mut(CHUNK))
        .enumerate()
        .flat_map_iter(|(t, ((center, radius), low))| {
            let mut pending = Vec::new();
            let (mut xs, mut ys) = ([0.0; BLOCK], [0.0; BLOCK]);
            for (b, ((c, r), l)) in
                center.chunks_mut(BLOCK).zip(radius.chunks_mut(BLOCK)).zip(low.chunks_mut(BLOCK)).enumerate()
            {
                let first = t * CHUNK + b * BLOCK;
                let (xs, ys) = (&mut xs[..c.len()], &mut ys[..c.len()]);
                let mut unusual = false;
                vectorize(
                    #[inline(always)]
                    || {
                        x.load(first, xs);
                        y.load(first, ys);
                        let operands = xs.iter().zip(ys.iter());
                        for (((&x, &y), c), (r, l)) in
                            operands.zip(c.iter_mut()).zip(r.iter_mut().zip(l.iter_mut()))
                        {
                            (*c, *l, *r) = formula(x, y);
                            // With no extra bound hi is the rounding already.
                            unusual |= (*r != 0.0) | !c.is_finite();
                        }
                    },
                );
                for i in (0..c.len()).filter(|_| unusual) {
                    if !c[i].is_finite() {
                        (l[i], r[i]) = (0.0, 0.0);
                        if !proper(xs[i], ys[i], c[i]) {
                            pending.push(first + i);
                        }
                    } else if r[i] != 0.0 && round_interval(format, c[i], l[i], r[i]) != Some(c[i]) {
                        pending.push(first + i);
                    }
                }
            }
            pending
        })
        .collect();
    let value = Storage::F64(center.clone());
    Candidate { ty: ty.clone(), center, low, radius, value, pending }
}
