//! Random valid calls of the ops that have a native kernel.

use half::{bf16, f16};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use ulpian_spec::ops::add::Add;
use ulpian_spec::ops::div::Div;
use ulpian_spec::ops::dropout::Dropout;
use ulpian_spec::ops::flatten::Flatten;
use ulpian_spec::ops::linear::Linear;
use ulpian_spec::ops::matmul::Matmul;
use ulpian_spec::ops::mul::Mul;
use ulpian_spec::ops::relu::Relu;
use ulpian_spec::ops::{RoundingMode, Scalar, TensorOrScalar};
use ulpian_spec::{DType, HostTensor, Op, OpKind, Storage};

/// What a tensor's elements are drawn from.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Values {
    /// Some tenths to some tens.
    Moderate,
    /// Any bits, and often a NaN, an infinity, a zero of either sign, a subnormal number.
    Any,
}

/// Draws calls of one dtype.
pub(crate) struct Calls {
    rng: ChaCha8Rng,
    dtype: DType,
    values: Values,
}

impl Calls {
    pub(crate) fn new(dtype: DType, seed: u64) -> Calls {
        Calls { rng: ChaCha8Rng::seed_from_u64(seed), dtype, values: Values::Moderate }
    }

    /// A call that inference takes, over values of one of both kinds.
    pub(crate) fn draw(&mut self, kind: OpKind, values: Values) -> Op<HostTensor> {
        self.values = values;
        loop {
            let op = self.candidate(kind);
            if op.as_ref().map(|_, t| t.tensor_type()).infer().is_ok() {
                return op;
            }
        }
    }

    fn below(&mut self, n: usize) -> usize {
        (self.rng.next_u32() as usize) % n
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// From -1 to 1.
    fn unit(&mut self) -> f64 {
        f64::from(self.rng.next_u32() as i32) / 2f64.powi(31)
    }

    fn element(&mut self) -> f64 {
        let scale = [0.1, 1.0, 30.0][self.below(3)];
        self.unit() * scale
    }

    fn tensor(&mut self, shape: &[usize]) -> HostTensor {
        let len = shape.iter().product();
        let storage = match self.dtype {
            DType::F64 => Storage::F64((0..len).map(|_| self.element()).collect()),
            DType::F32 => Storage::F32((0..len).map(|_| self.element() as f32).collect()),
            DType::F16 => Storage::F16((0..len).map(|_| f16::from_f32(self.element() as f32)).collect()),
            _ => Storage::BF16((0..len).map(|_| bf16::from_f32(self.element() as f32)).collect()),
        };
        let storage = if self.values == Values::Any { self.disturbed(&storage) } else { storage };
        HostTensor::new(shape, storage).expect("as many elements as the shape has")
    }

    /// The same elements with one in four replaced by any bits or a special value.
    fn disturbed(&mut self, storage: &Storage) -> Storage {
        let size = self.dtype.size();
        let mut bytes = storage.to_le_bytes();
        let format = self.dtype.float_format().expect("a floating-point dtype");
        let fraction = format.precision - 1;
        let infinity = ((1u64 << (8 * size as u32 - 1 - fraction)) - 1) << fraction;
        let sign = 1u64 << (8 * size - 1);
        for element in bytes.chunks_exact_mut(size) {
            if !self.one_in(4) {
                continue;
            }
            let random = self.rng.next_u64();
            let magnitude = match self.below(8) {
                0 => infinity,
                1 => infinity | 1 << (fraction - 1),
                2 => 0,
                3 => 1 + random % ((1 << fraction) - 1),
                4 => infinity - 1,
                _ => random & (sign - 1),
            };
            let bits = magnitude | if random >> 63 == 1 { sign } else { 0 };
            element.copy_from_slice(&bits.to_le_bytes()[..size]);
        }
        Storage::from_le_bytes(self.dtype, &bytes)
    }

    /// Rank 0 to 4, few elements, now and then none.
    fn shape(&mut self) -> Vec<usize> {
        let rank = self.below(5);
        (0..rank).map(|_| if self.one_in(40) { 0 } else { 1 + self.below(5) }).collect()
    }

    fn size(&mut self, most: usize) -> usize {
        if self.one_in(40) { 0 } else { 1 + self.below(most) }
    }

    /// A shape that broadcasts with this one.
    fn broadcastable(&mut self, shape: &[usize]) -> Vec<usize> {
        let kept = &shape[self.below(shape.len() + 1)..];
        kept.iter().map(|&n| if self.one_in(3) { 1 } else { n }).collect()
    }

    /// Two shapes that broadcast, either of them the larger one.
    fn shapes(&mut self) -> (Vec<usize>, Vec<usize>) {
        let shape = self.shape();
        let other = self.broadcastable(&shape);
        if self.one_in(2) { (shape, other) } else { (other, shape) }
    }

    fn scalar(&mut self) -> Scalar {
        match self.below(4) {
            0 => Scalar::Int(i64::from(self.rng.next_u32() as i32 % 100)),
            1 => Scalar::Int(1),
            _ => Scalar::Float(self.element()),
        }
    }

    fn operands(&mut self) -> (HostTensor, TensorOrScalar<HostTensor>) {
        let (a, b) = self.shapes();
        let input = self.tensor(&a);
        let other = if self.one_in(4) {
            TensorOrScalar::Scalar(self.scalar())
        } else {
            TensorOrScalar::Tensor(self.tensor(&b))
        };
        (input, other)
    }

    fn candidate(&mut self, kind: OpKind) -> Op<HostTensor> {
        match kind {
            OpKind::Relu => {
                let shape = self.shape();
                Op::Relu(Relu { input: self.tensor(&shape) })
            }
            OpKind::Flatten => {
                let shape = self.shape();
                let (start_dim, end_dim) = (self.below(9) as i64 - 4, self.below(9) as i64 - 4);
                Op::Flatten(Flatten { input: self.tensor(&shape), start_dim, end_dim })
            }
            OpKind::Add => {
                let (input, other) = self.operands();
                Op::Add(Add { input, other, alpha: self.scalar() })
            }
            OpKind::Mul => {
                let (input, other) = self.operands();
                Op::Mul(Mul { input, other })
            }
            OpKind::Div => {
                let (input, other) = self.operands();
                let modes = [None, Some(RoundingMode::Trunc), Some(RoundingMode::Floor)];
                Op::Div(Div { input, other, rounding_mode: modes[self.below(3)] })
            }
            OpKind::Dropout => {
                let shape = self.shape();
                let kept = (0..shape.iter().product()).map(|_| self.below(2) as u8).collect();
                let p = [0.0, 1.0, 0.5, 0.1, 0.3][self.below(5)];
                Op::Dropout(Dropout {
                    input: self.tensor(&shape),
                    mask: HostTensor::new(shape, Storage::Bool(kept)),
                    p,
                    training: !self.one_in(5),
                })
            }
            OpKind::Matmul => self.matmul(),
            OpKind::Linear => self.linear(),
            _ => panic!("{kind} has no native kernel"),
        }
    }

    fn matmul(&mut self) -> Op<HostTensor> {
        let (m, k, n) = (self.size(6), self.size(20), self.size(6));
        let (mut left, mut right) = self.shapes();
        left.truncate(2);
        right.truncate(2);
        let a = if self.one_in(5) { vec![k] } else { [left, vec![m, k]].concat() };
        let b = if self.one_in(5) { vec![k] } else { [right, vec![k, n]].concat() };
        Op::Matmul(Matmul { input: self.tensor(&a), other: self.tensor(&b) })
    }

    fn linear(&mut self) -> Op<HostTensor> {
        let (k, n) = (self.size(20), self.size(6));
        let mut input = self.shape();
        input.truncate(3);
        input.push(k);
        let weight = if self.one_in(5) { vec![k] } else { vec![n, k] };
        let bias = match self.below(4) {
            0 => None,
            1 => Some(vec![]),
            _ => Some(weight[..weight.len() - 1].to_vec()),
        };
        Op::Linear(Linear {
            input: self.tensor(&input),
            weight: self.tensor(&weight),
            bias: bias.map(|shape| self.tensor(&shape)),
        })
    }
}
