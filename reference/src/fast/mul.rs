//! mul.
//!
//! Formula: x y. Method: TwoProd, exact but for products below 2^-968, which only float64 operands reach. Products of two
//! operands of a narrow dtype are exact in float64 alone.

use ulpian_spec::ops::mul::Mul;
use ulpian_spec::{HostTensor, TensorType};

use super::Candidate;
use super::add::product;
use super::pointwise::{Operand, evaluate};

pub(super) fn mul(op: &Mul<&HostTensor>, ty: &TensorType) -> Option<Candidate> {
    let operands = [Operand::tensor(op.input, ty)?, Operand::other(&op.other, ty)?];
    evaluate(operands, ty, product)
}

#[cfg(test)]
mod tests {
    use ulpian_spec::ops::{Scalar, TensorOrScalar};
    use ulpian_spec::{DType, Op};

    use super::super::tests::{KINDS, Random, assert_agrees, special_pairs, tensor};
    use super::*;

    #[test]
    fn every_kind_of_data() {
        let mut random = Random(0x3141);
        for dtype in DType::FLOATS {
            for kind in KINDS {
                let x = tensor(&mut random, dtype, &[6, 1, 31], kind);
                let y = tensor(&mut random, dtype, &[5, 31], kind);
                let op = Op::Mul(Mul { input: &x, other: TensorOrScalar::Tensor(&y) });
                assert_agrees(&op, &[TensorType::new(dtype, [6, 5, 31])]);
                for scalar in [Scalar::Float(0.1), Scalar::Int(3), Scalar::Float(1e300), Scalar::Float(-0.0)]
                {
                    let op = Op::Mul(Mul { input: &x, other: TensorOrScalar::Scalar(scalar) });
                    assert_agrees(&op, &[x.tensor_type()]);
                }
            }
            let (x, y) = special_pairs(dtype);
            let op = Op::Mul(Mul { input: &x, other: TensorOrScalar::Tensor(&y) });
            assert_agrees(&op, &[x.tensor_type()]);
        }
    }
}
