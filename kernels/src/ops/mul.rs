//! mul (`cu/mul.cu`).

use ulpian_spec::ops::mul::Mul;
use ulpian_spec::{HostTensor, TensorType};

use crate::Launch;

pub(super) fn launches(args: &Mul<&HostTensor>, results: &[TensorType]) -> Option<Vec<Launch>> {
    let mut launch = Launch::elementwise("mul", &results[0])?;
    launch.pair(args.input, &args.other)?;
    Some(vec![launch])
}
