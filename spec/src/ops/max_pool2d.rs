//! `torch.nn.functional.max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
//! return_indices=False)`.

use super::args::{ArgReader, ArgWriter};
use super::{op_args, shapes};
use crate::{DType, InferError, TensorType, ValueRef};

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

impl MaxPool2d<ValueRef> {
    pub(crate) fn parse(args: &mut ArgReader<'_>) -> Result<Self, InferError> {
        let kernel_size = args.required_pair("kernel_size")?;
        Ok(MaxPool2d {
            input: args.tensor("input")?,
            kernel_size,
            stride: args.nullable_pair("stride")?.unwrap_or(kernel_size),
            padding: args.pair("padding", [0, 0])?,
            dilation: args.pair("dilation", [1, 1])?,
            ceil_mode: args.bool("ceil_mode", false)?,
            return_indices: args.bool("return_indices", false)?,
        })
    }

    pub(crate) fn write(&self, args: &mut ArgWriter<'_>) {
        args.tensor("input", self.input);
        args.pair("kernel_size", self.kernel_size);
        args.pair_unless_default("stride", self.stride, self.kernel_size);
        args.pair_unless_default("padding", self.padding, [0, 0]);
        args.pair_unless_default("dilation", self.dilation, [1, 1]);
        args.unless_default("ceil_mode", self.ceil_mode, false);
        args.unless_default("return_indices", self.return_indices, false);
    }
}

impl MaxPool2d<TensorType> {
    pub(crate) fn infer(&self) -> Result<Vec<TensorType>, InferError> {
        let (leading, sizes) = shapes::planes("max_pool2d", &self.input)?;
        shapes::refuse_bool("input", &self.input, "max_pool2d")?;
        // Only the batch may be empty.
        let batch = self.input.shape.len() - 3;
        if self.input.shape[batch..].contains(&0) {
            return Err(InferError::argument(
                "input",
                format!("only the batch may be empty, got {}", self.input),
            ));
        }
        let least = [
            ("kernel_size", self.kernel_size, 1),
            ("stride", self.stride, 1),
            ("padding", self.padding, 0),
            ("dilation", self.dilation, 1),
        ];
        for (argument, values, least) in least {
            for v in values {
                if v < least || v > i64::from(i32::MAX) {
                    return Err(InferError::argument(
                        argument,
                        format!("expected {least} to {}, got {v}", i32::MAX),
                    ));
                }
            }
        }
        let mut shape = leading.to_vec();
        for (axis, size) in sizes.into_iter().enumerate() {
            shape.push(self.output_size(axis, size)?);
        }
        let values = TensorType::new(self.input.dtype, shape);
        let indices = self.return_indices.then(|| TensorType::new(DType::I64, values.shape.clone()));
        Ok(std::iter::once(values).chain(indices).collect())
    }

    /// The number of windows along an axis; the attributes are known to be positive and below 2^31.
    fn output_size(&self, axis: usize, size: usize) -> Result<usize, InferError> {
        let [kernel, stride, padding, dilation] =
            [self.kernel_size, self.stride, self.padding, self.dilation].map(|pair| i128::from(pair[axis]));
        if 2 * padding > kernel {
            return Err(InferError::argument(
                "padding",
                format!("{padding} is more than half of kernel_size {kernel}"),
            ));
        }
        let size = size as i128;
        let span = dilation * (kernel - 1) + 1;
        let slack = size + 2 * padding - span + if self.ceil_mode { stride - 1 } else { 0 };
        let mut count = slack.div_euclid(stride) + 1;
        if self.ceil_mode && (count - 1) * stride >= size + padding {
            count -= 1;
        }
        if count < 1 {
            return Err(InferError::argument(
                "kernel_size",
                format!(
                    "a window that spans {span} does not fit into {size} elements and twice {padding} of padding"
                ),
            ));
        }
        usize::try_from(count)
            .map_err(|_| InferError::argument("input", format!("{} is too large", self.input)))
    }
}
