//! The native kernels, one file an op: its source, and what a launch of it is given.

mod add;
mod div;
mod dropout;
mod flatten;
mod linear;
mod matmul;
mod mul;
mod relu;

use ulpian_spec::{HostTensor, Op, OpKind, TensorType};

use crate::{Launch, Source};

pub(crate) fn launches(op: &Op<&HostTensor>, results: &[TensorType]) -> Option<Vec<Launch>> {
    match op {
        Op::Add(args) => add::launches(args, results),
        Op::Div(args) => div::launches(args, results),
        Op::Dropout(args) => dropout::launches(args, results),
        Op::Flatten(args) => flatten::launches(args, results),
        Op::Linear(args) => linear::launches(args, results),
        Op::Matmul(args) => matmul::launches(args, results),
        Op::Mul(args) => mul::launches(args, results),
        Op::Relu(args) => relu::launches(args, results),
        _ => None,
    }
}

/// What the kernels include.
pub const HEADERS: &[Source] = &[Source { file: "ieee.cuh", text: include_str!("../../cu/ieee.cuh") }];

/// The source of an op's native kernel, where it has one.
pub fn source(op: OpKind) -> Option<Source> {
    macro_rules! source {
        ($stem:literal) => {
            Some(Source {
                file: concat!($stem, ".cu"),
                text: include_str!(concat!("../../cu/", $stem, ".cu")),
            })
        };
    }
    match op {
        OpKind::Add => source!("add"),
        OpKind::Div => source!("div"),
        OpKind::Dropout => source!("dropout"),
        OpKind::Flatten => source!("flatten"),
        OpKind::Linear => source!("linear"),
        OpKind::Matmul => source!("matmul"),
        OpKind::Mul => source!("mul"),
        OpKind::Relu => source!("relu"),
        _ => None,
    }
}
