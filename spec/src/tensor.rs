//! Tensors in host memory: dense, row-major, one typed vector each.

use half::{bf16, f16};

use crate::DType;

/// The elements of a [`HostTensor`], row-major.
#[derive(Debug, Clone, PartialEq)]
pub enum Storage {
    /// float64
    F64(Vec<f64>),
    /// float32
    F32(Vec<f32>),
    /// float16
    F16(Vec<f16>),
    /// bfloat16
    BF16(Vec<bf16>),
    /// int64
    I64(Vec<i64>),
    /// int32
    I32(Vec<i32>),
    /// int16
    I16(Vec<i16>),
    /// int8
    I8(Vec<i8>),
    /// uint8
    U8(Vec<u8>),
    /// bool, each 0 or 1
    Bool(Vec<u8>),
}

/// Runs `$body` with `$v` bound to the typed vector of a [`Storage`]; a bool's is a `Vec<u8>`.
#[macro_export]
macro_rules! with_storage {
    ($storage:expr, $v:ident => $body:expr) => {
        match $storage {
            $crate::Storage::F64($v) => $body,
            $crate::Storage::F32($v) => $body,
            $crate::Storage::F16($v) => $body,
            $crate::Storage::BF16($v) => $body,
            $crate::Storage::I64($v) => $body,
            $crate::Storage::I32($v) => $body,
            $crate::Storage::I16($v) => $body,
            $crate::Storage::I8($v) => $body,
            $crate::Storage::U8($v) => $body,
            $crate::Storage::Bool($v) => $body,
        }
    };
}

impl Storage {
    /// The element type.
    pub fn dtype(&self) -> DType {
        match self {
            Storage::F64(_) => DType::F64,
            Storage::F32(_) => DType::F32,
            Storage::F16(_) => DType::F16,
            Storage::BF16(_) => DType::BF16,
            Storage::I64(_) => DType::I64,
            Storage::I32(_) => DType::I32,
            Storage::I16(_) => DType::I16,
            Storage::I8(_) => DType::I8,
            Storage::U8(_) => DType::U8,
            Storage::Bool(_) => DType::Bool,
        }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        with_storage!(self, v => v.len())
    }

    /// Is there no element?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Zeros (false) of this dtype.
    pub fn zeros(dtype: DType, len: usize) -> Storage {
        match dtype {
            DType::F64 => Storage::F64(vec![0.0; len]),
            DType::F32 => Storage::F32(vec![0.0; len]),
            DType::F16 => Storage::F16(vec![f16::ZERO; len]),
            DType::BF16 => Storage::BF16(vec![bf16::ZERO; len]),
            DType::I64 => Storage::I64(vec![0; len]),
            DType::I32 => Storage::I32(vec![0; len]),
            DType::I16 => Storage::I16(vec![0; len]),
            DType::I8 => Storage::I8(vec![0; len]),
            DType::U8 => Storage::U8(vec![0; len]),
            DType::Bool => Storage::Bool(vec![0; len]),
        }
    }

    /// The elements from little-endian bytes, as safetensors stores them; a trailing part of an element is dropped.
    /// A bool byte other than 0 counts as true.
    pub fn from_le_bytes(dtype: DType, bytes: &[u8]) -> Storage {
        macro_rules! read {
            ($variant:ident, $t:ty) => {
                Storage::$variant(
                    bytes
                        .chunks_exact(size_of::<$t>())
                        .map(|c| <$t>::from_le_bytes(c.try_into().unwrap_or_default()))
                        .collect(),
                )
            };
        }
        match dtype {
            DType::F64 => read!(F64, f64),
            DType::F32 => read!(F32, f32),
            DType::F16 => read!(F16, f16),
            DType::BF16 => read!(BF16, bf16),
            DType::I64 => read!(I64, i64),
            DType::I32 => read!(I32, i32),
            DType::I16 => read!(I16, i16),
            DType::I8 => Storage::I8(bytes.iter().map(|&b| b as i8).collect()),
            DType::U8 => Storage::U8(bytes.to_vec()),
            DType::Bool => Storage::Bool(bytes.iter().map(|&b| u8::from(b != 0)).collect()),
        }
    }

    /// The elements as little-endian bytes.
    pub fn to_le_bytes(&self) -> Vec<u8> {
        // By chunks of known length, which become vector instructions.
        macro_rules! bytes {
            ($v:expr, $t:ty) => {{
                let mut bytes = vec![0; $v.len() * size_of::<$t>()];
                for (to, x) in bytes.chunks_exact_mut(size_of::<$t>()).zip($v) {
                    to.copy_from_slice(&x.to_le_bytes());
                }
                bytes
            }};
        }
        match self {
            Storage::U8(v) | Storage::Bool(v) => v.clone(),
            Storage::I8(v) => bytes!(v, i8),
            Storage::F64(v) => bytes!(v, f64),
            Storage::F32(v) => bytes!(v, f32),
            Storage::F16(v) => bytes!(v, f16),
            Storage::BF16(v) => bytes!(v, bf16),
            Storage::I64(v) => bytes!(v, i64),
            Storage::I32(v) => bytes!(v, i32),
            Storage::I16(v) => bytes!(v, i16),
        }
    }
}

/// A tensor's dtype and shape.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TensorType {
    /// Element type.
    pub dtype: DType,
    /// Sizes, outermost first; empty for a 0-dimensional tensor.
    pub shape: Vec<usize>,
}

impl TensorType {
    /// A tensor type.
    pub fn new(dtype: DType, shape: impl Into<Vec<usize>>) -> TensorType {
        TensorType { dtype, shape: shape.into() }
    }

    /// Number of elements; `None` where it overflows `usize`.
    pub fn elements(&self) -> Option<usize> {
        elements_of(&self.shape)
    }
}

impl std::fmt::Display for TensorType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{:?}", self.dtype, self.shape)
    }
}

/// Product of the sizes; `None` where it overflows `usize`. A zero size makes it 0 whatever the others are.
pub fn elements_of(shape: &[usize]) -> Option<usize> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1usize, |n, &s| n.checked_mul(s))
}

/// A dense, row-major tensor in host memory.
///
/// Equality is elementwise IEEE equality (NaN differs from itself); use [`HostTensor::same_bits`] for bits.
#[derive(Debug, Clone, PartialEq)]
pub struct HostTensor {
    shape: Vec<usize>,
    storage: Storage,
}

impl HostTensor {
    /// A tensor of this shape over these elements; `None` where their number differs from the shape's.
    pub fn new(shape: impl Into<Vec<usize>>, storage: Storage) -> Option<HostTensor> {
        let shape = shape.into();
        (elements_of(&shape) == Some(storage.len())).then_some(HostTensor { shape, storage })
    }

    /// A float32 tensor; panics where the number of elements differs from the shape's. For tests and examples.
    #[track_caller]
    pub fn f32(shape: &[usize], data: &[f32]) -> HostTensor {
        HostTensor::new(shape, Storage::F32(data.to_vec())).expect("the shape's size is the data's length")
    }

    /// A float64 tensor; panics where the number of elements differs from the shape's. For tests and examples.
    #[track_caller]
    pub fn f64(shape: &[usize], data: &[f64]) -> HostTensor {
        HostTensor::new(shape, Storage::F64(data.to_vec())).expect("the shape's size is the data's length")
    }

    /// Sizes, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.storage.dtype()
    }

    /// Dtype and shape.
    pub fn tensor_type(&self) -> TensorType {
        TensorType { dtype: self.dtype(), shape: self.shape.clone() }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.storage.len()
    }

    /// Is there no element?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements, row-major.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// The elements, by value.
    pub fn into_storage(self) -> Storage {
        self.storage
    }

    /// The same elements under another shape of the same size.
    pub fn reshape(self, shape: impl Into<Vec<usize>>) -> Option<HostTensor> {
        HostTensor::new(shape, self.storage)
    }

    /// Element `index` (row-major) as float64. Exact for every dtype but int64 beyond 2^53, which is rounded.
    pub fn get_f64(&self, index: usize) -> f64 {
        match &self.storage {
            Storage::F64(v) => v[index],
            Storage::F32(v) => f64::from(v[index]),
            Storage::F16(v) => f64::from(v[index]),
            Storage::BF16(v) => f64::from(v[index]),
            Storage::I64(v) => v[index] as f64,
            Storage::I32(v) => f64::from(v[index]),
            Storage::I16(v) => f64::from(v[index]),
            Storage::I8(v) => f64::from(v[index]),
            Storage::U8(v) | Storage::Bool(v) => f64::from(v[index]),
        }
    }

    /// All elements as float64; see [`HostTensor::get_f64`].
    pub fn to_f64_vec(&self) -> Vec<f64> {
        match &self.storage {
            Storage::F64(v) => v.clone(),
            Storage::F32(v) => v.iter().map(|&x| f64::from(x)).collect(),
            Storage::F16(v) => v.iter().map(|&x| f64::from(x)).collect(),
            Storage::BF16(v) => v.iter().map(|&x| f64::from(x)).collect(),
            Storage::I64(v) => v.iter().map(|&x| x as f64).collect(),
            Storage::I32(v) => v.iter().map(|&x| f64::from(x)).collect(),
            Storage::I16(v) => v.iter().map(|&x| f64::from(x)).collect(),
            Storage::I8(v) => v.iter().map(|&x| f64::from(x)).collect(),
            Storage::U8(v) | Storage::Bool(v) => v.iter().map(|&x| f64::from(x)).collect(),
        }
    }

    /// Element `index` of an integer or bool tensor; `None` for a floating-point one.
    pub fn get_i64(&self, index: usize) -> Option<i64> {
        Some(match &self.storage {
            Storage::I64(v) => v[index],
            Storage::I32(v) => i64::from(v[index]),
            Storage::I16(v) => i64::from(v[index]),
            Storage::I8(v) => i64::from(v[index]),
            Storage::U8(v) | Storage::Bool(v) => i64::from(v[index]),
            _ => return None,
        })
    }

    /// Is an element NaN?
    pub fn holds_nan(&self) -> bool {
        // Without an early exit, which would forbid vector instructions.
        match &self.storage {
            Storage::F64(v) => v.iter().fold(false, |any, x| any | x.is_nan()),
            Storage::F32(v) => v.iter().fold(false, |any, x| any | x.is_nan()),
            Storage::F16(v) => v.iter().fold(false, |any, x| any | x.is_nan()),
            Storage::BF16(v) => v.iter().fold(false, |any, x| any | x.is_nan()),
            _ => false,
        }
    }

    /// Is no element NaN or an infinity?
    ///
    /// ```
    /// use ulpian_spec::HostTensor;
    ///
    /// let x = |last| HostTensor::f32(&[3], &[1.0, -0.0, last]);
    /// assert!(x(f32::MAX).all_finite() && !x(f32::INFINITY).all_finite() && !x(f32::NAN).all_finite());
    /// assert!(x(f32::NAN).holds_nan() && !x(f32::INFINITY).holds_nan());
    /// ```
    pub fn all_finite(&self) -> bool {
        match &self.storage {
            Storage::F64(v) => v.iter().fold(true, |all, x| all & x.is_finite()),
            Storage::F32(v) => v.iter().fold(true, |all, x| all & x.is_finite()),
            Storage::F16(v) => v.iter().fold(true, |all, x| all & x.is_finite()),
            Storage::BF16(v) => v.iter().fold(true, |all, x| all & x.is_finite()),
            _ => true,
        }
    }

    /// Same dtype, shape and bits; any two NaN count as the same.
    pub fn same_bits(&self, other: &HostTensor) -> bool {
        if self.shape != other.shape {
            return false;
        }
        match (&self.storage, &other.storage) {
            (Storage::F64(a), Storage::F64(b)) => {
                a.iter().zip(b).all(|(x, y)| x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan()))
            }
            (Storage::F32(a), Storage::F32(b)) => {
                a.iter().zip(b).all(|(x, y)| x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan()))
            }
            (Storage::F16(a), Storage::F16(b)) => {
                a.iter().zip(b).all(|(x, y)| x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan()))
            }
            (Storage::BF16(a), Storage::BF16(b)) => {
                a.iter().zip(b).all(|(x, y)| x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan()))
            }
            (a, b) => a == b,
        }
    }
}

/// The multi-dimensional index of row-major position `flat`.
pub fn unravel(mut flat: usize, shape: &[usize]) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    for (i, &size) in index.iter_mut().zip(shape).rev() {
        *i = flat % size.max(1);
        flat /= size.max(1);
    }
    index
}
