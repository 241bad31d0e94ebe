//! `torch.nn.functional.adaptive_avg_pool2d(input, output_size)`.

use super::op_args;

op_args! {
    /// Mean over windows [floor(i H / o), ceil((i + 1) H / o)) in both directions.
    AdaptiveAvgPool2d {
        /// (N, C, H, W) or (C, H, W).
        Required input,
        ;
        /// (height, width) of the output; `None` keeps the input's.
        output_size: [Option<i64>; 2],
    }
}
