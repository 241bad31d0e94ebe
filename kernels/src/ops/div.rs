//! div (`cu/div.cu`).

use ulpian_spec::ops::RoundingMode;
use ulpian_spec::ops::div::Div;
use ulpian_spec::{HostTensor, TensorType};

use crate::Launch;

pub(super) fn launches(args: &Div<&HostTensor>, results: &[TensorType]) -> Option<Vec<Launch>> {
    let mut launch = Launch::elementwise("div", &results[0])?;
    launch.sizes([match args.rounding_mode {
        None => 0,
        Some(RoundingMode::Trunc) => 1,
        Some(RoundingMode::Floor) => 2,
    }]);
    launch.pair(args.input, &args.other)?;
    Some(vec![launch])
}
