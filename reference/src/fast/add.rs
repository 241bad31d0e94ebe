//! add.
//!
//! Formula: x + alpha y.
//!
//! Method: TwoProd for alpha y = p + p', TwoSum for x + p = s + s'; s' + p' = l + l' by TwoSum again, hi + lo = TwoSum(s, l), and
//! |l'| is what is left. With alpha = 1 (or another for which p' = 0) nothing is.
//!
//! Range: TwoProd is exact where |p| >= 2^-968 or p = 0 by a zero; otherwise q is the error rounded, off by at most 2^-1075.

use ulpian_spec::ops::add::Add;
use ulpian_spec::{HostTensor, TensorType};

use super::Candidate;
use super::pointwise::{Operand, Triple, evaluate, exact};
use crate::eft::two_sum;

pub(super) fn add(op: &Add<&HostTensor>, ty: &TensorType) -> Option<Candidate> {
    let operands = [Operand::tensor(op.input, ty)?, Operand::other(&op.other, ty)?];
    let alpha = exact(op.alpha)?;
    if alpha == 1.0 {
        return evaluate(
            operands,
            ty,
            #[inline(always)]
            |x, y| {
                let (s, e) = two_sum(x, y);
                (s, e, beyond(x, y, s))
            },
        );
    }
    let finite = alpha.is_finite();
    evaluate(
        operands,
        ty,
        #[inline(always)]
        move |x, y| {
            let (p, q, lost) = product(alpha, y);
            let (s, e) = two_sum(x, p);
            let (l, rest) = two_sum(e, q);
            let (hi, lo) = two_sum(s, l);
            // A sum without error keeps the sign that its zero has, an infinite one is itself.
            let hi = if l == 0.0 || !s.is_finite() { s } else { hi };
            // Nor can a product, which may only have overflowed, change what is not finite.
            let hi = if !x.is_finite() && finite && y.is_finite() { x } else { hi };
            (hi, lo, lost + rest.abs() + beyond(x, p, s))
        },
    )
}

/// Infinite where TwoSum may overflow on the way, else 0.
#[inline(always)]
fn beyond(x: f64, y: f64, s: f64) -> f64 {
    // 2^1022
    let limit = f64::from_bits((1022 + 1023) << 52);
    if (x.abs() > limit) | (y.abs() > limit) | (s.abs() > limit) | s.is_nan() { f64::INFINITY } else { 0.0 }
}

/// p + q = a b within a bound, p = fl(a b).
#[inline(always)]
pub(super) fn product(a: f64, b: f64) -> Triple {
    let p = a * b;
    let q = a.mul_add(b, -p);
    // 2^-968
    let safe = (p.abs() >= f64::from_bits((1023 - 968) << 52)) | (a == 0.0) | (b == 0.0);
    (p, q, if safe { 0.0 } else { f64::from_bits(1) })
}

#[cfg(test)]
mod tests {
    use ulpian_spec::ops::{Scalar, TensorOrScalar};
    use ulpian_spec::{DType, Op};

    use super::super::tests::{KINDS, Random, assert_agrees, special_pairs, tensor};
    use super::*;

    #[test]
    fn every_kind_of_data_and_alpha() {
        let mut random = Random(0xadd_add);
        for dtype in DType::FLOATS {
            for kind in KINDS {
                let x = tensor(&mut random, dtype, &[6, 1, 31], kind);
                let y = tensor(&mut random, dtype, &[5, 31], kind);
                for alpha in [Scalar::Int(1), Scalar::Int(-3), Scalar::Float(0.1), Scalar::Float(1e-300)] {
                    let op = Op::Add(Add { input: &x, other: TensorOrScalar::Tensor(&y), alpha });
                    assert_agrees(&op, &[TensorType::new(dtype, [6, 5, 31])]);
                }
                let other = TensorOrScalar::Scalar(Scalar::Float(0.3));
                let op = Op::Add(Add { input: &x, other, alpha: Scalar::Int(1) });
                assert_eq!(assert_agrees(&op, &[x.tensor_type()]), 0);
            }
            let (x, y) = special_pairs(dtype);
            let infinite = f64::INFINITY;
            for alpha in
                [1.0, -1.0, 0.0, 0.1, 1e300, -f64::MAX, 1e-300, infinite, f64::NAN].map(Scalar::Float)
            {
                let op = Op::Add(Add { input: &x, other: TensorOrScalar::Tensor(&y), alpha });
                assert_agrees(&op, &[x.tensor_type()]);
            }
        }
    }
}
