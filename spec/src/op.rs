//! The one list of ops. Everything that exists once per op is generated from [`for_each_op!`](crate::for_each_op)
//! or checked against it.

use crate::ops::args::{ArgReader, ArgWriter};
use crate::{InferError, TensorType, ValueRef, ops};

/// Calls `$callback!` with one row per op: `(Variant, stem, [aliases])`. The stem is PyTorch's name and the name of every
/// file about the op.
#[macro_export]
macro_rules! for_each_op {
    ($callback:ident) => {
        $callback! {
            (Flatten, flatten, []),
            (Mul, mul, ["__mul__"]),
            (Div, div, []),
            (Softmax, softmax, []),
            (AdaptiveAvgPool2d, adaptive_avg_pool2d, []),
            (Matmul, matmul, []),
            (MaxPool2d, max_pool2d, []),
            (BatchNorm, batch_norm, []),
            (Dropout, dropout, []),
            (Relu, relu, []),
            (Conv2d, conv2d, []),
            (Gelu, gelu, []),
            (Linear, linear, []),
            (LayerNorm, layer_norm, []),
            (Add, add, ["__add__"]),
        }
    };
}

macro_rules! define_op {
    ($(($variant:ident, $stem:ident, [$($alias:literal),*]),)*) => {
        /// One op with its arguments, over operands of type `T`.
        ///
        /// `T` is [`ValueRef`](crate::ValueRef) in a case, [`TensorType`](crate::TensorType) in inference, and a tensor
        /// of some kind in evaluation; [`Op::try_map`] goes from one to the next.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Op<T> {
            $(#[allow(missing_docs)] $variant(ops::$stem::$variant<T>),)*
        }

        /// The name of an op, without arguments.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum OpKind {
            $(#[allow(missing_docs)] $variant,)*
        }

        impl OpKind {
            /// Every op, in the order of the list.
            pub const ALL: &'static [OpKind] = &[$(OpKind::$variant),*];

            /// PyTorch's name.
            pub const fn name(self) -> &'static str {
                match self { $(OpKind::$variant => stringify!($stem),)* }
            }

            /// The other names it is accepted under.
            pub const fn aliases(self) -> &'static [&'static str] {
                match self { $(OpKind::$variant => &[$($alias),*],)* }
            }

            /// The names of its arguments.
            pub const fn arguments(self) -> &'static [&'static str] {
                match self { $(OpKind::$variant => ops::$stem::$variant::<()>::ARGUMENTS,)* }
            }

            /// The op of this name or alias.
            pub fn from_name(name: &str) -> Option<OpKind> {
                match name {
                    $(stringify!($stem) $(| $alias)* => Some(OpKind::$variant),)*
                    _ => None,
                }
            }
        }

        impl<T> Op<T> {
            /// Which op it is.
            pub const fn kind(&self) -> OpKind {
                match self { $(Op::$variant(_) => OpKind::$variant,)* }
            }

            /// The same op over other operands. `f` receives the argument's name and the operand.
            pub fn try_map<U, E>(self, mut f: impl FnMut(&'static str, T) -> Result<U, E>) -> Result<Op<U>, E> {
                Ok(match self { $(Op::$variant(args) => Op::$variant(args.try_map(&mut f)?),)* })
            }

            /// The same op over references to its operands.
            pub fn as_ref(&self) -> Op<&T> {
                match self { $(Op::$variant(args) => Op::$variant(args.as_ref()),)* }
            }
        }

        impl Op<ValueRef> {
            /// Reads the arguments of an op.
            ///
            /// # Errors
            /// The argument at fault and what is wrong with it.
            pub fn parse(kind: OpKind, args: &mut ArgReader<'_>) -> Result<Self, InferError> {
                Ok(match kind { $(OpKind::$variant => Op::$variant(ops::$stem::$variant::parse(args)?),)* })
            }

            /// Writes the arguments, but those at their default.
            pub fn write(&self, args: &mut ArgWriter<'_>) {
                match self { $(Op::$variant(op) => op.write(args),)* }
            }
        }

        impl Op<TensorType> {
            /// The dtype and shape of every result, by PyTorch's rules.
            ///
            /// # Errors
            /// The argument at fault and what would be right, where PyTorch rejects the call.
            pub fn infer(&self) -> Result<Vec<TensorType>, InferError> {
                match self { $(Op::$variant(op) => op.infer(),)* }
            }
        }
    };
}
for_each_op!(define_op);

impl<T> Op<T> {
    /// The same op over other operands, where making them cannot fail.
    pub fn map<U>(self, mut f: impl FnMut(&'static str, T) -> U) -> Op<U> {
        match self.try_map(|name, t| Ok::<U, std::convert::Infallible>(f(name, t))) {
            Ok(op) => op,
            Err(never) => match never {},
        }
    }

    /// The tensor operands with their arguments' names, in the order of PyTorch's signature.
    pub fn operands(&self) -> Vec<(&'static str, &T)> {
        let mut list = Vec::new();
        self.as_ref().map(|name, t| list.push((name, t)));
        list
    }
}

impl std::fmt::Display for OpKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}
