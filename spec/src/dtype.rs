//! Element types and PyTorch's promotion lattice.

use serde::{Deserialize, Serialize};

/// An element type, named as PyTorch names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DType {
    /// IEEE binary64.
    #[serde(rename = "float64")]
    F64,
    /// IEEE binary32.
    #[serde(rename = "float32")]
    F32,
    /// IEEE binary16.
    #[serde(rename = "float16")]
    F16,
    /// bfloat16: binary32's exponent, 8 bits of precision.
    #[serde(rename = "bfloat16")]
    BF16,
    /// Two's complement, 64 bits.
    #[serde(rename = "int64")]
    I64,
    /// Two's complement, 32 bits.
    #[serde(rename = "int32")]
    I32,
    /// Two's complement, 16 bits.
    #[serde(rename = "int16")]
    I16,
    /// Two's complement, 8 bits.
    #[serde(rename = "int8")]
    I8,
    /// Unsigned, 8 bits.
    #[serde(rename = "uint8")]
    U8,
    /// One byte, 0 or 1.
    Bool,
}

/// The parameters of a binary floating-point format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FloatFormat {
    /// Significand bits, the hidden one included: 53, 24, 11, 8.
    pub precision: u32,
    /// Exponent of the least normal number: -1022, -126, -14, -126.
    pub min_exponent: i32,
    /// Exponent of the greatest finite number: 1023, 127, 15, 127.
    pub max_exponent: i32,
}

impl FloatFormat {
    /// Exponent of the least subnormal number: -1074, -149, -24, -133.
    pub const fn least_exponent(self) -> i32 {
        self.min_exponent - (self.precision as i32 - 1)
    }

    /// Unit roundoff u = 2^-precision.
    pub fn unit_roundoff(self) -> f64 {
        power_of_two(-(self.precision as i32))
    }
}

/// 2^e for -1022 <= e <= 1023.
pub(crate) const fn power_of_two(e: i32) -> f64 {
    f64::from_bits(((e + 1023) as u64) << 52)
}

impl DType {
    /// Every element type.
    pub const ALL: [DType; 10] = [
        DType::F64,
        DType::F32,
        DType::F16,
        DType::BF16,
        DType::I64,
        DType::I32,
        DType::I16,
        DType::I8,
        DType::U8,
        DType::Bool,
    ];

    /// The floating-point element types.
    pub const FLOATS: [DType; 4] = [DType::F64, DType::F32, DType::F16, DType::BF16];

    /// PyTorch's name, such as `float32`.
    pub const fn name(self) -> &'static str {
        match self {
            DType::F64 => "float64",
            DType::F32 => "float32",
            DType::F16 => "float16",
            DType::BF16 => "bfloat16",
            DType::I64 => "int64",
            DType::I32 => "int32",
            DType::I16 => "int16",
            DType::I8 => "int8",
            DType::U8 => "uint8",
            DType::Bool => "bool",
        }
    }

    /// The dtype with this PyTorch name (`float32`, also `torch.float32`, `float`, `half`, `double`, `long`, `int`).
    pub fn from_name(name: &str) -> Option<DType> {
        let name = name.strip_prefix("torch.").unwrap_or(name);
        Some(match name {
            "float64" | "double" => DType::F64,
            "float32" | "float" => DType::F32,
            "float16" | "half" => DType::F16,
            "bfloat16" => DType::BF16,
            "int64" | "long" => DType::I64,
            "int32" | "int" => DType::I32,
            "int16" | "short" => DType::I16,
            "int8" => DType::I8,
            "uint8" => DType::U8,
            "bool" => DType::Bool,
            _ => return None,
        })
    }

    /// Bytes of one element.
    pub const fn size(self) -> usize {
        match self {
            DType::F64 | DType::I64 => 8,
            DType::F32 | DType::I32 => 4,
            DType::F16 | DType::BF16 | DType::I16 => 2,
            DType::I8 | DType::U8 | DType::Bool => 1,
        }
    }

    /// Is this a floating-point type?
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F64 | DType::F32 | DType::F16 | DType::BF16)
    }

    /// Is this an integer type? `bool` is not one.
    pub const fn is_integer(self) -> bool {
        !self.is_float() && !matches!(self, DType::Bool)
    }

    /// The format of a floating-point type.
    pub const fn float_format(self) -> Option<FloatFormat> {
        Some(match self {
            DType::F64 => FloatFormat { precision: 53, min_exponent: -1022, max_exponent: 1023 },
            DType::F32 => FloatFormat { precision: 24, min_exponent: -126, max_exponent: 127 },
            DType::F16 => FloatFormat { precision: 11, min_exponent: -14, max_exponent: 15 },
            DType::BF16 => FloatFormat { precision: 8, min_exponent: -126, max_exponent: 127 },
            _ => return None,
        })
    }

    /// The least and greatest value of an integer type or bool.
    pub const fn integer_range(self) -> Option<(i64, i64)> {
        Some(match self {
            DType::I64 => (i64::MIN, i64::MAX),
            DType::I32 => (i32::MIN as i64, i32::MAX as i64),
            DType::I16 => (i16::MIN as i64, i16::MAX as i64),
            DType::I8 => (i8::MIN as i64, i8::MAX as i64),
            DType::U8 => (0, 255),
            DType::Bool => (0, 1),
            _ => return None,
        })
    }

    /// `torch.promote_types`: the dtype of an op over tensors of the two dtypes, both of dimension >= 1.
    pub fn promote(self, other: DType) -> DType {
        use DType::{BF16, Bool, F16, F32, I8, I16, U8};
        if self == other {
            return self;
        }
        match (self, other) {
            (Bool, d) | (d, Bool) => d,
            (F16, BF16) | (BF16, F16) => F32,
            (U8, I8) | (I8, U8) => I16,
            (a, b) if a.is_float() && b.is_float() => {
                if a.size() >= b.size() {
                    a
                } else {
                    b
                }
            }
            (a, b) if a.is_float() != b.is_float() => {
                if a.is_float() {
                    a
                } else {
                    b
                }
            }
            (a, b) => {
                if a.size() >= b.size() {
                    a
                } else {
                    b
                }
            }
        }
    }
}

impl std::fmt::Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}
