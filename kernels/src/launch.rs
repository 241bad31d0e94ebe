//! What a launch of a native kernel is given.

use ulpian_spec::ops::{Scalar, TensorOrScalar};
use ulpian_spec::{DType, HostTensor, Op, TensorType};

/// Operands that a launch may have, as `struct Launch` in `cu/ieee.cuh`.
pub const OPERANDS: usize = 5;

/// A launch of one kernel, over bytes of the host. The layout of sizes and scalars is that which the head of `cu/<op>.cu` states.
#[derive(Debug, Clone, PartialEq)]
pub struct Launch {
    /// The entry's name, `<op>_<dtype>`, in `cu/<op>.cu`.
    pub kernel: String,
    /// Dtype and shape of what it writes, dense and row-major.
    pub result: TensorType,
    /// Dense, row-major, little-endian; `None` where absent. At most [`OPERANDS`].
    pub operands: Vec<Option<Vec<u8>>>,
    /// `sizes[0]` is the number of threads that have something to do.
    pub sizes: Vec<i64>,
    /// Numbers, already rounded to what the kernel computes in.
    pub scalars: Vec<f64>,
}

impl Launch {
    /// The launches of a call, one a result; `None` where the op has no native kernel for it: integers and bool, operands of
    /// several dtypes, dropout in training without a mask. The call must be one that inference accepts.
    pub fn of(op: &Op<&HostTensor>) -> Option<Vec<Launch>> {
        let types = op.as_ref().map(|_, t| t.tensor_type()).infer().ok()?;
        crate::ops::launches(op, &types)
    }

    /// A launch that writes `result`, a thread an element, with neither operands nor scalars yet; `None` where the result is no
    /// floating-point tensor.
    pub(crate) fn elementwise(kernel: &str, result: &TensorType) -> Option<Launch> {
        let elements = result.elements().and_then(|n| i64::try_from(n).ok())?;
        result.dtype.is_float().then(|| Launch {
            kernel: format!("{kernel}_{}", result.dtype),
            result: result.clone(),
            operands: Vec::new(),
            sizes: vec![elements],
            scalars: Vec::new(),
        })
    }

    /// Appends an operand.
    pub(crate) fn operand(&mut self, t: &HostTensor) {
        self.operands.push(Some(t.storage().to_le_bytes()));
    }

    /// Appends an operand of the result's dtype; `None` where it has another.
    pub(crate) fn same_dtype(&mut self, t: &HostTensor) -> Option<()> {
        (t.dtype() == self.result.dtype).then(|| self.operand(t))
    }

    /// Appends a scalar, rounded to what the result's dtype is computed in.
    pub(crate) fn scalar(&mut self, s: Scalar) {
        self.scalars.push(match s {
            s if self.result.dtype == DType::F64 => s.as_f64(),
            Scalar::Int(n) => f64::from(n as f32),
            s => f64::from(s.as_f64() as f32),
        });
    }

    /// Appends sizes.
    pub(crate) fn sizes(&mut self, sizes: impl IntoIterator<Item = usize>) {
        self.sizes.extend(sizes.into_iter().map(|n| n as i64));
    }

    /// Appends `input` and `other`, and of their broadcast to the result's shape: rank, shape, strides of both.
    pub(crate) fn pair(&mut self, input: &HostTensor, other: &TensorOrScalar<&HostTensor>) -> Option<()> {
        let shape = self.result.shape.clone();
        self.same_dtype(input)?;
        let other_shape = match other {
            TensorOrScalar::Tensor(t) => {
                self.same_dtype(t)?;
                t.shape()
            }
            TensorOrScalar::Scalar(s) => {
                self.operands.push(None);
                self.scalar(*s);
                &[]
            }
        };
        self.sizes([shape.len()]);
        self.sizes(shape.iter().copied());
        self.sizes(strides(input.shape(), shape.len(), 1));
        self.sizes(strides(other_shape, shape.len(), 1));
        Some(())
    }

    /// Length of what it writes, in bytes.
    pub fn result_bytes(&self) -> usize {
        self.result.elements().unwrap_or(0) * self.result.dtype.size()
    }
}

/// The strides of a dense tensor in a broadcast shape of this rank, in units of `unit`; 0 where it is broadcast.
pub(crate) fn strides(shape: &[usize], rank: usize, unit: usize) -> Vec<usize> {
    let mut strides = vec![0; rank];
    let mut stride = unit;
    for (i, &size) in shape.iter().enumerate().rev() {
        strides[rank - shape.len() + i] = if size == 1 { 0 } else { stride };
        stride *= size;
    }
    strides
}
