//! `torch.nn.functional.max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
//! return_indices=False)`.

use super::op_args;

op_args! {
    /// Maximum over windows; the padding is minus infinity. The second result, where asked for, holds the position of the
    /// maximum in the input plane (int64).
    MaxPool2d {
        /// (N, C, H, W) or (C, H, W).
        Required input,
        ;
        /// (height, width) of the window.
        kernel_size: [i64; 2],
        /// Step of the window; `kernel_size` by default.
        stride: [i64; 2],
        /// Padding on each side, at most half the kernel.
        padding: [i64; 2],
        /// Step within the window.
        dilation: [i64; 2],
        /// Round the output size up; a last window that would start beyond the padded input is dropped.
        ceil_mode: bool,
        /// Also return the positions.
        return_indices: bool,
    }
}
