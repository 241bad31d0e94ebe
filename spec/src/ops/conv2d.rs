//! `torch.nn.functional.conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1)`.

use super::{Padding, op_args};

op_args! {
    /// Cross-correlation over zero-padded planes.
    Conv2d {
        /// (N, C, H, W) or (C, H, W).
        Required input,
        /// (O, C / groups, kH, kW)
        Required weight,
        /// (O)
        Optional bias,
        ;
        /// Step of the window.
        stride: [i64; 2],
        /// Zero padding.
        padding: Padding,
        /// Step within the window.
        dilation: [i64; 2],
        /// Channels are split into this many independent groups.
        groups: i64,
    }
}
