//! flatten (`cu/flatten.cu`).

use ulpian_spec::ops::flatten::Flatten;
use ulpian_spec::{HostTensor, TensorType};

use crate::Launch;

pub(super) fn launches(args: &Flatten<&HostTensor>, results: &[TensorType]) -> Option<Vec<Launch>> {
    let mut launch = Launch::elementwise("flatten", &results[0])?;
    launch.operand(args.input);
    Some(vec![launch])
}
