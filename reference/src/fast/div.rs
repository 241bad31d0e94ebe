//! div without a rounding mode.
//!
//! Formula: x / y. Method: q = fl(x / y); the remainder x - q y is a float64 and one FMA gives it (Markstein, IBM J. Res. Dev. 34
//! (1990), theorem on division), so x / y = q + (x - q y) / y, whose quotient rounds by u and is exact where zero.
//!
//! Range: that holds for |x|, |y| and |q| between 2^-900 and 2^900. Otherwise q is off by at most u |q|, or 2^-1075 where it is
//! subnormal.

use ulpian_spec::ops::div::Div;
use ulpian_spec::{HostTensor, TensorType};

use super::Candidate;
use super::pointwise::{Operand, Triple, evaluate};

pub(super) fn div(op: &Div<&HostTensor>, ty: &TensorType) -> Option<Candidate> {
    if op.rounding_mode.is_some() {
        return None;
    }
    evaluate([Operand::tensor(op.input, ty)?, Operand::other(&op.other, ty)?], ty, quotient)
}

#[inline(always)]
fn quotient(x: f64, y: f64) -> Triple {
    let q = x / y;
    let lo = (-q).mul_add(y, x) / y;
    let usual = |a: f64| {
        let a = a.abs();
        (a >= f64::from_bits((1023 - 900) << 52)) & (a <= f64::from_bits((1023 + 900) << 52))
    };
    let zero = (x == 0.0) & (y != 0.0);
    if zero {
        (q, 0.0, 0.0)
    } else if usual(x) & usual(y) & usual(q) {
        (q, lo, lo.abs() * f64::EPSILON)
    } else {
        (q, 0.0, q.abs() * f64::EPSILON + f64::from_bits(1))
    }
}

#[cfg(test)]
mod tests {
    use ulpian_spec::ops::{Scalar, TensorOrScalar};
    use ulpian_spec::{DType, Op};

    use super::super::tests::{KINDS, Random, assert_agrees, special_pairs, tensor};
    use super::*;

    #[test]
    fn every_kind_of_data() {
        let mut random = Random(0x2718);
        for dtype in DType::FLOATS {
            for kind in KINDS {
                let x = tensor(&mut random, dtype, &[6, 1, 31], kind);
                let y = tensor(&mut random, dtype, &[5, 31], kind);
                for other in [TensorOrScalar::Tensor(&y), TensorOrScalar::Scalar(Scalar::Float(0.1))] {
                    let shape: &[usize] =
                        if matches!(other, TensorOrScalar::Tensor(_)) { &[6, 5, 31] } else { &[6, 1, 31] };
                    let op = Op::Div(Div { input: &x, other, rounding_mode: None });
                    assert_agrees(&op, &[TensorType::new(dtype, shape)]);
                }
            }
            let (x, y) = special_pairs(dtype);
            let op = Op::Div(Div { input: &x, other: TensorOrScalar::Tensor(&y), rounding_mode: None });
            assert_agrees(&op, &[x.tensor_type()]);
        }
    }
}
