//! The native kernels' arithmetic: for each op that has a kernel of ours (`kernels/cu/<op>.cu`), the same fixed order of IEEE
//! operations, so that on hardware that follows IEEE 754 the bits are equal.
//!
//! Formula, order and special values are those of the kernel's header; each file here names what it repeats. float64 is computed
//! in float64, float32, float16 and bfloat16 in float32, with one rounding to 16 bits at the end. A bit of NaN's payload is
//! nobody's: compare with [`HostTensor::same_bits`].

mod add;
mod broadcast;
mod div;
mod dropout;
mod element;
mod flatten;
mod linear;
mod matmul;
mod mul;
mod relu;

use ulpian_spec::{DType, HostTensor, Op};

/// Runs `$run::<E>($args)` for the element type of a floating-point dtype.
macro_rules! by_dtype {
    ($dtype:expr, $run:path, $args:expr) => {
        match $dtype {
            DType::F64 => $run(element::Of::<f64>::NEW, $args),
            DType::F32 => $run(element::Of::<f32>::NEW, $args),
            DType::F16 => $run(element::Of::<half::f16>::NEW, $args),
            DType::BF16 => $run(element::Of::<half::bf16>::NEW, $args),
            _ => None,
        }
    };
}

/// The bits that the native kernel of `op` gives, one tensor a result; `None` where there is no kernel for it: an op without
/// one, integers and bool, operands of several dtypes, dropout in training without a mask. The call must be one that
/// inference accepts.
pub fn run(op: &Op<&HostTensor>) -> Option<Vec<HostTensor>> {
    match op {
        Op::Relu(args) => by_dtype!(args.input.dtype(), relu::run, args),
        Op::Add(args) => by_dtype!(args.input.dtype(), add::run, args),
        Op::Mul(args) => by_dtype!(args.input.dtype(), mul::run, args),
        Op::Div(args) => by_dtype!(args.input.dtype(), div::run, args),
        Op::Flatten(args) => by_dtype!(args.input.dtype(), flatten::run, args),
        Op::Dropout(args) => by_dtype!(args.input.dtype(), dropout::run, args),
        Op::Matmul(args) => by_dtype!(args.input.dtype(), matmul::run, args),
        Op::Linear(args) => by_dtype!(args.input.dtype(), linear::run, args),
        _ => None,
    }
}
