//! One op on exact inputs: the layers in turn, until every element is decided.
//!
//! 1. What the op does not change (flatten, dropout in evaluation) is copied.
//! 2. The fast path, where there is one for these dtypes; otherwise balls. Where the fast path leaves many elements open
//!    (more than [`MANY`], and more than one in 256), the balls go over them first.
//! 3. The exact evaluator decides what is open, element by element, in parallel.
//!
//! Elements are independent of each other in each layer, so the number of threads changes nothing.

use ulpian_spec::{Enclosure, HostTensor, InferError, Op, OpKind, Storage, TensorType};

use crate::assemble::{Draft, exact_enclosure};
use crate::balls::{self, Balls, Width};
use crate::exact::Evaluator;
use crate::{EvaluateError, Settings, fast};

/// So many open elements are left to the exact evaluator alone.
const MANY: usize = 2048;

/// See [`crate::evaluate`].
pub(crate) fn evaluate(op: &Op<&HostTensor>, settings: &Settings) -> Result<Vec<Enclosure>, EvaluateError> {
    let types = infer(op)?;
    let operands = op.operands().iter().map(|(_, t)| t.len() as u128 * BYTES_PER_OPERAND).sum::<u128>();
    let results = types.iter().map(bytes_of_result).sum::<u128>();
    check_memory(operands + results, settings)?;
    if is_undetermined(op) {
        return Err(EvaluateError::Undetermined);
    }
    single(op, &types, settings)
}

/// An operand as balls: a float64 each for the centre, and where needed for its low part and radius.
pub(crate) const BYTES_PER_OPERAND: u128 = 24;

/// Centre, low part, radius and the rounding that is not stored yet (a tagged float64), and the value itself.
pub(crate) fn bytes_of_result(ty: &TensorType) -> u128 {
    ty.shape.iter().map(|&s| s as u128).product::<u128>() * (24 + 16 + ty.dtype.size() as u128)
}

pub(crate) fn check_memory(needed: u128, settings: &Settings) -> Result<(), EvaluateError> {
    if needed > settings.max_bytes as u128 {
        return Err(EvaluateError::TooLarge { needed, limit: settings.max_bytes });
    }
    Ok(())
}

fn infer(op: &Op<&HostTensor>) -> Result<Vec<TensorType>, InferError> {
    op.clone().map(|_, t| t.tensor_type()).infer()
}

/// Does the result depend on chance?
pub(crate) fn is_undetermined<T>(op: &Op<T>) -> bool {
    matches!(op, Op::Dropout(args) if args.training && args.mask.is_none() && args.p != 0.0 && args.p != 1.0)
}

/// As [`evaluate`], of a valid call whose result types are `types` and whose result is determined.
pub(crate) fn single(
    op: &Op<&HostTensor>,
    types: &[TensorType],
    settings: &Settings,
) -> Result<Vec<Enclosure>, EvaluateError> {
    if let Some(same) = unchanged(op, &types[0]) {
        return Ok(vec![exact_enclosure(same)]);
    }
    let drafts = match fast::try_evaluate(op, types, settings) {
        None => drafts_of_balls(op, types),
        Some(candidates) => {
            let mut drafts: Vec<Draft> = candidates.into_iter().map(Draft::of_candidate).collect();
            let open = |(draft, ty): (&Draft, &TensorType)| {
                draft.pending.len() > MANY.max(ty.elements().unwrap_or(0) / 256)
            };
            if drafts.iter().zip(types).any(open) {
                for (draft, other) in drafts.iter_mut().zip(drafts_of_balls(op, types)) {
                    draft.refine(&other);
                }
            }
            drafts
        }
    };
    let evaluator = Evaluator::single(op, types.to_vec(), settings);
    let free = leaves_zero_sign_free(op, |t| holds_zero(t));
    drafts
        .into_iter()
        .enumerate()
        .map(|(output, draft)| draft.finish(free, |i| evaluator.resolve(0, output, i)))
        .collect()
}

/// May the sign of a zero of the result be either? So it is where several terms are added, in an order that IEEE 754 leaves to the
/// implementation, and where PyTorch's own paths differ: relu of a zero (does that operand hold one?), and what dropout drops.
pub(crate) fn leaves_zero_sign_free<T>(op: &Op<T>, holds_zero: impl Fn(&T) -> bool) -> bool {
    match op {
        Op::Matmul(_)
        | Op::Linear(_)
        | Op::Conv2d(_)
        | Op::AdaptiveAvgPool2d(_)
        | Op::LayerNorm(_)
        | Op::BatchNorm(_) => true,
        Op::Relu(args) => holds_zero(&args.input),
        Op::Dropout(args) => args.training,
        Op::Flatten(_)
        | Op::Mul(_)
        | Op::Div(_)
        | Op::Softmax(_)
        | Op::MaxPool2d(_)
        | Op::Gelu(_)
        | Op::Add(_) => false,
    }
}

fn holds_zero(tensor: &HostTensor) -> bool {
    match tensor.storage() {
        // Without a branch per element.
        Storage::F32(v) => v.chunks(1024).any(|v| v.iter().fold(false, |found, &x| found | (x == 0.0))),
        _ => (0..tensor.len()).any(|i| tensor.get_f64(i) == 0.0),
    }
}

/// The operand under the result's shape, where the op copies it.
fn unchanged(op: &Op<&HostTensor>, ty: &TensorType) -> Option<HostTensor> {
    let input = match op {
        Op::Flatten(args) => args.input,
        Op::Dropout(args) if !args.training || args.p == 0.0 => args.input,
        _ => return None,
    };
    (*input).clone().reshape(ty.shape.clone())
}

fn drafts_of_balls(op: &Op<&HostTensor>, types: &[TensorType]) -> Vec<Draft> {
    if types.iter().all(|ty| !ty.dtype.is_float()) {
        return types.iter().map(Draft::empty).collect();
    }
    let operands = op.clone().map(|_, t| Balls::exact(t));
    let mut balls = balls::evaluate(&operands.as_ref(), types, Width::Narrow).unwrap_or_default().into_iter();
    types.iter().map(|ty| draft_of(op.kind(), ty, balls.next())).collect()
}

/// Balls rounded, or nothing where there are none.
pub(crate) fn draft_of(kind: OpKind, ty: &TensorType, balls: Option<Balls>) -> Draft {
    match balls {
        Some(balls) => Draft::of_balls(ty, balls, kind == OpKind::Gelu),
        None => Draft::empty(ty),
    }
}

#[cfg(test)]
mod tests;
