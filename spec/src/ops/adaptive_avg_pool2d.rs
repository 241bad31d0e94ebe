//! `torch.nn.functional.adaptive_avg_pool2d(input, output_size)`.

use super::args::{ArgReader, ArgWriter};
use super::{op_args, shapes};
use crate::{InferError, TensorType, ValueRef};

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

impl AdaptiveAvgPool2d<ValueRef> {
    pub(crate) fn parse(args: &mut ArgReader<'_>) -> Result<Self, InferError> {
        Ok(AdaptiveAvgPool2d {
            input: args.tensor("input")?,
            output_size: args.required_pair_of_nullable("output_size")?,
        })
    }

    pub(crate) fn write(&self, args: &mut ArgWriter<'_>) {
        args.tensor("input", self.input);
        match self.output_size {
            [Some(h), Some(w)] if h == w => args.put("output_size", h),
            [h, w] => args.put("output_size", vec![h, w]),
        }
    }
}

impl AdaptiveAvgPool2d<TensorType> {
    pub(crate) fn infer(&self) -> Result<Vec<TensorType>, InferError> {
        let (leading, sizes) = shapes::planes("adaptive_avg_pool2d", &self.input)?;
        shapes::require_float("input", &self.input, "adaptive_avg_pool2d")?;
        if sizes.contains(&0) {
            return Err(InferError::argument(
                "input",
                format!("there is nothing to average in {}", self.input),
            ));
        }
        let mut shape = leading.to_vec();
        for (given, size) in self.output_size.into_iter().zip(sizes) {
            shape.push(match given {
                None => size,
                Some(o) => usize::try_from(o)
                    .map_err(|_| InferError::argument("output_size", format!("{o} is negative")))?,
            });
        }
        Ok(vec![TensorType::new(self.input.dtype, shape)])
    }
}
