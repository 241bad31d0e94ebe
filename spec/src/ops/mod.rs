//! Each op's arguments, with their parsing, defaults, and shape and dtype inference, in a file of its own.

use crate::DType;

pub mod adaptive_avg_pool2d;
pub mod add;
pub mod args;
pub mod batch_norm;
pub mod conv2d;
pub mod div;
pub mod dropout;
pub mod flatten;
pub mod gelu;
pub mod layer_norm;
pub mod linear;
pub mod matmul;
pub mod max_pool2d;
pub mod mul;
pub mod relu;
mod shapes;
pub mod softmax;

/// A Python scalar. It takes part in type promotion by its category alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scalar {
    /// `bool`
    Bool(bool),
    /// `int`
    Int(i64),
    /// `float`: a float64, taken exactly.
    Float(f64),
}

impl Scalar {
    /// The value as float64 (an `int` beyond 2^53 is rounded).
    pub fn as_f64(self) -> f64 {
        match self {
            Scalar::Bool(b) => f64::from(u8::from(b)),
            Scalar::Int(i) => i as f64,
            Scalar::Float(x) => x,
        }
    }
}

/// An operand that PyTorch takes as a tensor or as a Python scalar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TensorOrScalar<T> {
    /// A tensor.
    Tensor(T),
    /// A Python scalar.
    Scalar(Scalar),
}

/// The `rounding_mode` of div.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoundingMode {
    /// Toward zero.
    Trunc,
    /// Toward minus infinity.
    Floor,
}

/// The `padding` of conv2d.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Padding {
    /// Rows and columns of zeros on each side.
    Explicit([i64; 2]),
    /// `"same"`: dilation * (kernel - 1) in all, the odd one at the end; stride must be 1.
    Same,
    /// `"valid"`: none.
    Valid,
}

/// The `approximate` of gelu.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GeluApproximate {
    /// x Phi(x), by the error function.
    None,
    /// 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
    Tanh,
}

/// An operand that must be there.
pub type Required<T> = T;

/// An operand that may be absent.
pub type Optional<T> = Option<T>;

/// Declares an op's arguments over operands of type `T`: first the operands, each [`Required`], [`Optional`] or
/// [`TensorOrScalar`], in the order of PyTorch's signature, then the other arguments.
macro_rules! op_args {
    (
        $(#[$meta:meta])*
        $name:ident {
            $( $(#[$operand_meta:meta])* $kind:ident $operand:ident, )*
            ;
            $( $(#[$attr_meta:meta])* $attr:ident: $ty:ty, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name<T> {
            $( $(#[$operand_meta])* pub $operand: $crate::ops::$kind<T>, )*
            $( $(#[$attr_meta])* pub $attr: $ty, )*
        }

        impl<T> $name<T> {
            /// The names of the arguments.
            pub const ARGUMENTS: &'static [&'static str] = &[$(stringify!($operand),)* $(stringify!($attr),)*];

            /// The same arguments over other operands. `f` receives the argument's name and the operand.
            pub fn try_map<U, E>(
                self,
                f: &mut impl FnMut(&'static str, T) -> Result<U, E>,
            ) -> Result<$name<U>, E> {
                Ok($name {
                    $( $operand: $crate::ops::map_operand!($kind, self.$operand, f, stringify!($operand)), )*
                    $( $attr: self.$attr, )*
                })
            }

            /// The same arguments over references to the operands.
            pub fn as_ref(&self) -> $name<&T> {
                $name {
                    $( $operand: $crate::ops::operand_as_ref!($kind, self.$operand), )*
                    $( $attr: self.$attr.clone(), )*
                }
            }
        }
    };
}

macro_rules! map_operand {
    (Required, $e:expr, $f:ident, $name:expr) => {
        $f($name, $e)?
    };
    (Optional, $e:expr, $f:ident, $name:expr) => {
        match $e {
            Some(t) => Some($f($name, t)?),
            None => None,
        }
    };
    (TensorOrScalar, $e:expr, $f:ident, $name:expr) => {
        match $e {
            $crate::ops::TensorOrScalar::Tensor(t) => $crate::ops::TensorOrScalar::Tensor($f($name, t)?),
            $crate::ops::TensorOrScalar::Scalar(s) => $crate::ops::TensorOrScalar::Scalar(s),
        }
    };
}

macro_rules! operand_as_ref {
    (Required, $e:expr) => {
        &$e
    };
    (Optional, $e:expr) => {
        $e.as_ref()
    };
    (TensorOrScalar, $e:expr) => {
        match &$e {
            $crate::ops::TensorOrScalar::Tensor(t) => $crate::ops::TensorOrScalar::Tensor(t),
            $crate::ops::TensorOrScalar::Scalar(s) => $crate::ops::TensorOrScalar::Scalar(*s),
        }
    };
}

use {map_operand, op_args, operand_as_ref};
