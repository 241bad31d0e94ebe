//! relu (`cu/relu.cu`).

use ulpian_spec::ops::relu::Relu;
use ulpian_spec::{HostTensor, TensorType};

use crate::Launch;

pub(super) fn launches(args: &Relu<&HostTensor>, results: &[TensorType]) -> Option<Vec<Launch>> {
    let mut launch = Launch::elementwise("relu", &results[0])?;
    launch.operand(args.input);
    Some(vec![launch])
}
