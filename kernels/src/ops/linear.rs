//! linear (`cu/linear.cu`).

use ulpian_spec::ops::linear::Linear;
use ulpian_spec::{HostTensor, TensorType};

use crate::Launch;

pub(super) fn launches(args: &Linear<&HostTensor>, results: &[TensorType]) -> Option<Vec<Launch>> {
    let mut launch = Launch::elementwise("linear", &results[0])?;
    let (columns, inner) = match args.weight.shape() {
        [inner] => (1, *inner),
        [columns, inner] => (*columns, *inner),
        _ => return None,
    };
    launch.same_dtype(args.input)?;
    launch.same_dtype(args.weight)?;
    match args.bias {
        Some(bias) => launch.same_dtype(bias)?,
        None => launch.operands.push(None),
    }
    // A bias of one element is one number for all.
    let stride = args.bias.is_some_and(|t| t.shape().iter().product::<usize>() > 1);
    launch.sizes([columns, inner, usize::from(stride)]);
    Some(vec![launch])
}
