//! add (`cu/add.cu`).

use ulpian_spec::ops::add::Add;
use ulpian_spec::{HostTensor, TensorType};

use crate::Launch;

pub(super) fn launches(args: &Add<&HostTensor>, results: &[TensorType]) -> Option<Vec<Launch>> {
    let mut launch = Launch::elementwise("add", &results[0])?;
    launch.scalar(args.alpha);
    launch.pair(args.input, &args.other)?;
    Some(vec![launch])
}
