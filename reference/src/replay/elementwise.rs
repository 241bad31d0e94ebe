//! add, mul and div: an early rounding to 16 bits, a reciprocal in place of a division, flushed subnormals, and contraction
//! of a product and a sum in two nodes.
//!
//! | hypothesis | formula | cost | where |
//! |---|---|---|---|
//! | product-16bit | fl16(a + fl16(alpha b)) | u16 \|alpha b\| before it meets a | PyTorch's CPU add for float16 and bfloat16 |
//! | reciprocal-multiply | fl(a fl(1/s)), s a scalar | 2u \|a/s\| instead of u | PyTorch's CUDA div by a Python scalar |
//! | flush-subnormals | results (and operands) below the least normal number are 0 | up to 2^-126 (float32) | CUDA -ftz, x86 FTZ and DAZ |
//! | fma-contraction | fl(a b + c) | none, but it differs from two roundings by u \|a b\| | compilers that fuse over nodes |

use ulpian_spec::ops::TensorOrScalar;
use ulpian_spec::{DType, HostTensor, Op};

use super::lanes::{broadcast_index, broadcast_shape, f32s, mul_add, round_to, store};

/// add with alpha, the product rounded to the 16-bit dtype first.
pub(super) fn product_16bit(op: &Op<&HostTensor>) -> Option<Vec<HostTensor>> {
    product_16bit_after(op, |_| 0)
}

/// The same after a body of whole pairs of 16-element vectors, which PyTorch computes as float32 FMA and rounds once.
pub(super) fn product_16bit_tail(op: &Op<&HostTensor>) -> Option<Vec<HostTensor>> {
    product_16bit_after(op, |n| n / 32 * 32)
}

fn product_16bit_after(op: &Op<&HostTensor>, body: impl Fn(usize) -> usize) -> Option<Vec<HostTensor>> {
    let Op::Add(args) = op else { return None };
    let b = Binary::new(args.input, &args.other)?;
    if b.dtype == DType::F32 {
        return None;
    }
    let alpha = round_to(b.dtype, args.alpha.as_f64() as f32);
    let body = body(b.left.len());
    b.map_indexed(|i, x, y| if i < body { alpha.mul_add(y, x) } else { x + round_to(b.dtype, alpha * y) })
}

/// add with alpha in float32 throughout, contracted where `FMA`. Sound.
pub(super) fn add_alpha<const FMA: bool>(op: &Op<&HostTensor>) -> Option<Vec<HostTensor>> {
    let Op::Add(args) = op else { return None };
    let alpha = args.alpha.as_f64() as f32;
    Binary::new(args.input, &args.other)?.map(|x, y| mul_add::<FMA>(alpha, y, x))
}

/// div by a scalar as a product with its rounded reciprocal.
pub(super) fn reciprocal_multiply(op: &Op<&HostTensor>) -> Option<Vec<HostTensor>> {
    let Op::Div(args) = op else { return None };
    let TensorOrScalar::Scalar(_) = args.other else { return None };
    if args.rounding_mode.is_some() {
        return None;
    }
    let b = Binary::new(args.input, &args.other)?;
    b.map(|x, y| x * (1.0 / y))
}

/// The correctly rounded float32 result with subnormals replaced by zeros of their sign; those of the operands too where
/// `OPERANDS`.
pub(super) fn flush_subnormals<const OPERANDS: bool>(op: &Op<&HostTensor>) -> Option<Vec<HostTensor>> {
    let operand = |x: f32| if OPERANDS { flush(x) } else { x };
    let (b, f): (_, fn(f32, f32) -> f32) = match op {
        Op::Mul(args) => (Binary::new(args.input, &args.other)?, |x, y| x * y),
        Op::Div(args) if args.rounding_mode.is_none() => {
            (Binary::new(args.input, &args.other)?, |x, y| x / y)
        }
        Op::Add(args) if args.alpha.as_f64() == 1.0 => (Binary::new(args.input, &args.other)?, |x, y| x + y),
        _ => return None,
    };
    if b.dtype != DType::F32 {
        return None;
    }
    let flushed = b.map(|x, y| flush(f(operand(x), operand(y))))?;
    let plain = b.map(f)?;
    // Where nothing was flushed this says nothing.
    (!flushed[0].same_bits(&plain[0])).then_some(flushed)
}

fn flush(x: f32) -> f32 {
    if x.is_subnormal() { 0.0f32.copysign(x) } else { x }
}

/// `mul` and then `add` of its result, as one fused kernel: the product is not rounded to the dtype. float32: one FMA.
/// 16-bit dtypes: product and sum in float32 (the product is exact there), one rounding at the end.
///
/// `product_is_other` says which operand of `add` is `mul`'s result; that operand's own value is not looked at.
pub(super) fn contract(
    mul: &Op<&HostTensor>,
    add: &Op<&HostTensor>,
    product_is_other: bool,
) -> Option<Vec<HostTensor>> {
    let (Op::Mul(mul), Op::Add(add)) = (mul, add) else { return None };
    if add.alpha.as_f64() != 1.0 {
        return None;
    }
    let factors = Binary::new(mul.input, &mul.other)?;
    let (product, addend) = match (&add.other, product_is_other) {
        (TensorOrScalar::Tensor(other), true) => (*other, TensorOrScalar::Tensor(add.input)),
        (other, false) => (add.input, *other),
        _ => return None,
    };
    let sum = Binary::new(product, &addend)?;
    if product.shape() != factors.shape || factors.dtype != sum.dtype {
        return None;
    }
    let data = sum
        .left
        .iter()
        .zip(&sum.right)
        .map(|(&p, &r)| {
            let (x, y) = factors.pair(p);
            x.mul_add(y, sum.b[r])
        })
        .collect();
    Some(vec![store(sum.dtype, &sum.shape, data)?])
}

/// Two operands of one floating-point dtype, broadcast; a scalar is rounded to float32.
struct Binary {
    dtype: DType,
    shape: Vec<usize>,
    a: Vec<f32>,
    b: Vec<f32>,
    left: Vec<usize>,
    right: Vec<usize>,
}

impl Binary {
    fn new(input: &HostTensor, other: &TensorOrScalar<&HostTensor>) -> Option<Binary> {
        let a = f32s(input)?;
        let (b, other_shape) = match other {
            TensorOrScalar::Tensor(t) if t.dtype() == input.dtype() => (f32s(t)?, t.shape()),
            TensorOrScalar::Tensor(_) => return None,
            TensorOrScalar::Scalar(s) => (vec![s.as_f64() as f32], &[][..]),
        };
        let shape = broadcast_shape(input.shape(), other_shape)?;
        let (left, right) = (broadcast_index(input.shape(), &shape), broadcast_index(other_shape, &shape));
        Some(Binary { dtype: input.dtype(), shape, a, b, left, right })
    }

    fn pair(&self, at: usize) -> (f32, f32) {
        (self.a[self.left[at]], self.b[self.right[at]])
    }

    fn map(&self, f: impl Fn(f32, f32) -> f32) -> Option<Vec<HostTensor>> {
        self.map_indexed(|_, x, y| f(x, y))
    }

    fn map_indexed(&self, f: impl Fn(usize, f32, f32) -> f32) -> Option<Vec<HostTensor>> {
        let data = (0..self.left.len())
            .map(|i| {
                let (x, y) = self.pair(i);
                f(i, x, y)
            })
            .collect();
        Some(vec![store(self.dtype, &self.shape, data)?])
    }
}
