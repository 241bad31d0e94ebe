//! dropout (`cu/dropout.cu`).

use ulpian_spec::ops::Scalar;
use ulpian_spec::ops::dropout::Dropout;
use ulpian_spec::{HostTensor, TensorType};

use crate::Launch;

pub(super) fn launches(args: &Dropout<&HostTensor>, results: &[TensorType]) -> Option<Vec<Launch>> {
    let mut launch = Launch::elementwise("dropout", &results[0])?;
    launch.operand(args.input);
    let mode = match args.p {
        _ if !args.training => 0,
        0.0 => 0,
        1.0 => 2,
        _ => 1,
    };
    let mask = match args.mask {
        Some(mask) if mode == 1 => Some(bytes(mask)?),
        None if mode == 1 => return None,
        _ => None,
    };
    launch.operands.push(mask);
    launch.sizes([mode]);
    launch.scalar(Scalar::Float(1.0 - args.p));
    Some(vec![launch])
}

/// A byte an element, 0 or 1; `None` where the mask holds something else.
fn bytes(mask: &HostTensor) -> Option<Vec<u8>> {
    let byte = |x: f64| match x {
        0.0 => Some(0),
        1.0 => Some(1),
        _ => None,
    };
    mask.to_f64_vec().into_iter().map(byte).collect()
}
