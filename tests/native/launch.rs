//! What a launch of a native kernel is given for a call: the layout that each `kernels/cu/<op>.cu` states.

use ulpian_spec::ops::{RoundingMode, Scalar, TensorOrScalar};
use ulpian_spec::{DType, HostTensor, Op, TensorType};

/// A launch of one kernel, over host memory.
pub(crate) struct Launch {
    kernel: String,
    /// Dtype and shape of what it writes.
    pub(crate) result: TensorType,
    operands: Vec<Option<Vec<u8>>>,
    sizes: Vec<i64>,
    scalars: Vec<f64>,
}

impl Launch {
    /// The launches of a call, one a result.
    pub(crate) fn of(op: &Op<&HostTensor>) -> Vec<Launch> {
        let types = op.as_ref().map(|_, t| t.tensor_type()).infer().expect("the call is valid");
        let dtype = types[0].dtype;
        let mut launch = Launch {
            kernel: format!("{}_{dtype}", op.kind()),
            operands: Vec::new(),
            sizes: vec![types[0].elements().expect("small") as i64],
            scalars: Vec::new(),
            result: types[0].clone(),
        };
        let shape = launch.result.shape.clone();
        match op {
            Op::Relu(args) => launch.operand(args.input),
            Op::Flatten(args) => launch.operand(args.input),
            Op::Add(args) => {
                launch.scalar(dtype, args.alpha);
                launch.pair(args.input, &args.other, &shape);
            }
            Op::Mul(args) => launch.pair(args.input, &args.other, &shape),
            Op::Div(args) => {
                launch.sizes.push(match args.rounding_mode {
                    None => 0,
                    Some(RoundingMode::Trunc) => 1,
                    Some(RoundingMode::Floor) => 2,
                });
                launch.pair(args.input, &args.other, &shape);
            }
            Op::Dropout(args) => {
                launch.operand(args.input);
                let mask = args.mask.map(|m| m.to_f64_vec().iter().map(|&x| u8::from(x != 0.0)).collect());
                launch.operands.push(mask);
                launch.sizes.push(match args.p {
                    _ if !args.training => 0,
                    0.0 => 0,
                    1.0 => 2,
                    _ => 1,
                });
                launch.scalar(dtype, Scalar::Float(1.0 - args.p));
            }
            Op::Matmul(args) => {
                let (a, b) = (args.input.shape(), args.other.shape());
                let inner = a[a.len() - 1];
                let rows = if a.len() > 1 { a[a.len() - 2] } else { 1 };
                let columns = if b.len() > 1 { b[b.len() - 1] } else { 1 };
                let (left, right) = (&a[..a.len().max(2) - 2], &b[..b.len().max(2) - 2]);
                let (left, right) =
                    (if a.len() < 2 { &[] } else { left }, if b.len() < 2 { &[] } else { right });
                let batch = &shape[..left.len().max(right.len())];
                launch.operand(args.input);
                launch.operand(args.other);
                launch.sizes.extend([rows, columns, inner].map(|n| n as i64));
                launch.sizes.push(batch.len() as i64);
                launch.sizes.extend(batch.iter().map(|&n| n as i64));
                launch.sizes.extend(strides(left, batch.len(), rows * inner));
                launch.sizes.extend(strides(right, batch.len(), inner * columns));
            }
            Op::Linear(args) => {
                launch.operand(args.input);
                launch.operand(args.weight);
                launch.operands.push(args.bias.map(|t| t.storage().to_le_bytes()));
                let weight = args.weight.shape();
                let columns = if weight.len() > 1 { weight[0] } else { 1 };
                let stride = args.bias.is_some_and(|t| !t.shape().is_empty());
                launch.sizes.extend([columns as i64, weight[weight.len() - 1] as i64, i64::from(stride)]);
            }
            _ => panic!("{} has no native kernel", op.kind()),
        }
        vec![launch]
    }

    fn operand(&mut self, t: &HostTensor) {
        self.operands.push(Some(t.storage().to_le_bytes()));
    }

    /// A scalar, rounded to what `dtype` is computed in.
    fn scalar(&mut self, dtype: DType, s: Scalar) {
        self.scalars.push(match s {
            Scalar::Int(n) if dtype != DType::F64 => f64::from(n as f32),
            s if dtype != DType::F64 => f64::from(s.as_f64() as f32),
            s => s.as_f64(),
        });
    }

    fn pair(&mut self, input: &HostTensor, other: &TensorOrScalar<&HostTensor>, shape: &[usize]) {
        self.operand(input);
        let other_shape = match other {
            TensorOrScalar::Tensor(t) => {
                self.operand(t);
                t.shape()
            }
            TensorOrScalar::Scalar(s) => {
                self.operands.push(None);
                self.scalar(input.dtype(), *s);
                &[]
            }
        };
        self.sizes.push(shape.len() as i64);
        self.sizes.extend(shape.iter().map(|&n| n as i64));
        self.sizes.extend(strides(input.shape(), shape.len(), 1));
        self.sizes.extend(strides(other_shape, shape.len(), 1));
    }

    /// Appends it to a file of launches (`host.cpp`).
    pub(crate) fn write(&self, file: &mut Vec<u8>) {
        let mut number = |n: i64, data: &[u8]| {
            file.extend(n.to_le_bytes());
            file.extend(data);
        };
        number(self.kernel.len() as i64, self.kernel.as_bytes());
        number(self.result_bytes() as i64, &[]);
        for i in 0..5 {
            match self.operands.get(i).and_then(Option::as_ref) {
                Some(data) => number(data.len() as i64, data),
                None => number(-1, &[]),
            }
        }
        let sizes: Vec<u8> = self.sizes.iter().flat_map(|n| n.to_le_bytes()).collect();
        let scalars: Vec<u8> = self.scalars.iter().flat_map(|x| x.to_le_bytes()).collect();
        number(sizes.len() as i64, &sizes);
        number(scalars.len() as i64, &scalars);
    }

    /// Length of what it writes.
    pub(crate) fn result_bytes(&self) -> usize {
        self.result.elements().expect("small") * self.result.dtype.size()
    }
}

/// The strides of a dense tensor in a broadcast shape of this rank, in units of `unit`.
fn strides(shape: &[usize], rank: usize, unit: usize) -> Vec<i64> {
    let mut strides = vec![0; rank];
    let mut stride = unit;
    for (i, &size) in shape.iter().enumerate().rev() {
        strides[rank - shape.len() + i] = if size == 1 { 0 } else { stride as i64 };
        stride *= size;
    }
    strides
}
