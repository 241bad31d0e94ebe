//! `torch.nn.functional.conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1)`.

use super::args::{ArgReader, ArgWriter};
use super::{Padding, op_args, shapes};
use crate::{DType, InferError, TensorType, ValueRef};

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

impl Conv2d<ValueRef> {
    pub(crate) fn parse(args: &mut ArgReader<'_>) -> Result<Self, InferError> {
        let padding = match args.raw("padding") {
            Some(raw) if crate::case::json::is_string(raw) => match args.text("padding")?.as_deref() {
                Some("same") => Padding::Same,
                Some("valid") => Padding::Valid,
                _ => {
                    return Err(InferError::argument(
                        "padding",
                        "expected an integer, a list of two, \"same\" or \"valid\"",
                    ));
                }
            },
            _ => Padding::Explicit(args.pair("padding", [0, 0])?),
        };
        Ok(Conv2d {
            input: args.tensor("input")?,
            weight: args.tensor("weight")?,
            bias: args.optional_tensor("bias")?,
            stride: args.pair("stride", [1, 1])?,
            padding,
            dilation: args.pair("dilation", [1, 1])?,
            groups: args.int("groups", Some(1))?,
        })
    }

    pub(crate) fn write(&self, args: &mut ArgWriter<'_>) {
        args.tensor("input", self.input);
        args.tensor("weight", self.weight);
        args.optional_tensor("bias", self.bias);
        args.pair_unless_default("stride", self.stride, [1, 1]);
        match self.padding {
            Padding::Explicit(pair) => args.pair_unless_default("padding", pair, [0, 0]),
            Padding::Same => args.put("padding", "same"),
            Padding::Valid => args.put("padding", "valid"),
        }
        args.pair_unless_default("dilation", self.dilation, [1, 1]);
        args.unless_default("groups", self.groups, 1);
    }
}

impl Conv2d<TensorType> {
    pub(crate) fn infer(&self) -> Result<Vec<TensorType>, InferError> {
        let (leading, sizes) = shapes::planes("conv2d", &self.input)?;
        let [out_channels, group_channels, kernel_height, kernel_width] = self.weight.shape[..] else {
            return Err(InferError::argument(
                "weight",
                format!("expected (out_channels, in_channels / groups, kH, kW), got {}", self.weight),
            ));
        };
        shapes::refuse_bool("input", &self.input, "conv2d")?;
        shapes::require_dtype("weight", &self.weight, "input", &self.input)?;
        if self.weight.shape.contains(&0) {
            return Err(InferError::argument(
                "weight",
                format!("none of its sizes may be 0, got {}", self.weight),
            ));
        }
        self.check_channels(leading, out_channels, group_channels)?;
        if let Some(bias) = &self.bias {
            shapes::require_shape("bias", bias, &[out_channels])?;
            shapes::require_dtype("bias", bias, "input", &self.input)?;
        }
        for (argument, values, least) in [("stride", self.stride, 1), ("dilation", self.dilation, 1)] {
            if let Some(v) = values.into_iter().find(|&v| v < least) {
                return Err(InferError::argument(argument, format!("expected at least {least}, got {v}")));
            }
        }
        if self.input.dtype.is_integer() && self.input.dtype != DType::I64 && self.dilation != [1, 1] {
            return Err(InferError::argument(
                "dilation",
                format!("among integers only int64 goes with a dilation, got {}", self.input),
            ));
        }
        if self.padding == Padding::Same && self.stride != [1, 1] {
            return Err(InferError::argument("padding", "\"same\" goes with stride 1 only"));
        }
        if leading.first() != Some(&0) && sizes.contains(&0) {
            return Err(InferError::argument(
                "input",
                format!("only the batch may be empty, got {}", self.input),
            ));
        }
        let mut shape = leading[..leading.len() - 1].to_vec();
        shape.push(out_channels);
        for (axis, kernel) in [kernel_height, kernel_width].into_iter().enumerate() {
            shape.push(self.output_size(axis, sizes[axis], kernel)?);
        }
        Ok(vec![TensorType::new(self.input.dtype, shape)])
    }

    fn check_channels(&self, leading: &[usize], out: usize, per_group: usize) -> Result<(), InferError> {
        let channels = leading.last().copied().unwrap_or_default();
        let Some(groups) = usize::try_from(self.groups).ok().filter(|&g| g > 0) else {
            return Err(InferError::argument("groups", format!("expected at least 1, got {}", self.groups)));
        };
        if !out.is_multiple_of(groups) {
            return Err(InferError::argument(
                "groups",
                format!("{groups} does not divide weight's {out} output channels"),
            ));
        }
        if per_group.checked_mul(groups) != Some(channels) {
            return Err(InferError::argument(
                "weight",
                format!(
                    "with groups {groups} it is for {per_group} * {groups} input channels, input has {channels}"
                ),
            ));
        }
        Ok(())
    }

    fn output_size(&self, axis: usize, size: usize, kernel: usize) -> Result<usize, InferError> {
        // Sizes and attributes are below 2^64, so nothing overflows 128 bits.
        let (size, stride) = (size as i128, i128::from(self.stride[axis]));
        let span = i128::from(self.dilation[axis]) * (kernel as i128 - 1) + 1;
        let fits = |n: i128, argument| match i64::try_from(n) {
            Ok(_) => Ok(()),
            Err(_) => Err(InferError::argument(argument, format!("{n} elements are more than 64 bits hold"))),
        };
        fits(span, "dilation")?;
        let padding = match self.padding {
            Padding::Same => return Ok(size as usize),
            Padding::Valid => 0,
            Padding::Explicit(pair) => i128::from(pair[axis]),
        };
        if padding < 0 {
            return Err(InferError::argument("padding", format!("{padding} is negative")));
        }
        let padded = size + 2 * padding;
        fits(padded, "padding")?;
        if span > padded {
            return Err(InferError::argument(
                "weight",
                format!(
                    "a kernel that spans {span} does not fit into {size} elements and twice {padding} of padding"
                ),
            ));
        }
        usize::try_from((padded - span) / stride + 1)
            .map_err(|_| InferError::argument("padding", format!("{padding} is too large")))
    }
}
