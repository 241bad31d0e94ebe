//! The truths of a chain: T1 over the real numbers, T2 rounded after every op.
//!
//! T2 is [`driver::single`] node by node, on the rounded results of earlier nodes.
//!
//! T1 keeps for each node result what later nodes need of it: the tensor itself where every element is exactly what its dtype
//! holds (inputs, and what copies or selects them), balls otherwise. A node all of whose operands are such tensors, and T2's too,
//! has T2's enclosures; if something uses it, balls are made of the unrounded results. Any other
//! node goes through the balls, and the exact evaluator, which goes back to the case's inputs, decides what they leave open. Its
//! answers replace unknown balls, so that later nodes profit.
//!
//! A zero's sign is free where the op leaves it free or an operand's was.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ulpian_spec::{Case, Enclosure, HostTensor, Op, TensorType, ValueRef};

use crate::assemble::is_exact;
use crate::balls::{self, Balls, Width};
use crate::driver::{
    BYTES_PER_OPERAND, bytes_of_result, check_memory, draft_of, is_undetermined, leaves_zero_sign_free,
    single,
};
use crate::exact::{Evaluator, GraphNode, Resolved, Source};
use crate::{EvaluateError, Settings, Truth};

/// A value over the real numbers.
enum Real {
    /// These numbers exactly.
    Exact(Arc<HostTensor>),
    /// Numbers within these balls.
    Balls(Balls),
}

/// See [`crate::evaluate_chain`].
pub(crate) fn evaluate_chain(
    case: &Case,
    masks: &BTreeMap<usize, Arc<HostTensor>>,
    settings: &Settings,
) -> Result<Truth, EvaluateError> {
    truths(case, masks, settings, Wanted::Both)
}

/// See [`crate::evaluate_real`].
pub(crate) fn evaluate_real(
    case: &Case,
    masks: &BTreeMap<usize, Arc<HostTensor>>,
    settings: &Settings,
) -> Result<BTreeMap<ValueRef, Enclosure>, EvaluateError> {
    truths(case, masks, settings, Wanted::Real).map(|truth| truth.real)
}

/// See [`crate::enclose_real`].
pub(crate) fn enclose_real(
    case: &Case,
    masks: &BTreeMap<usize, Arc<HostTensor>>,
    settings: &Settings,
) -> Result<BTreeMap<ValueRef, Enclosure>, EvaluateError> {
    truths(case, masks, settings, Wanted::Wide).map(|truth| truth.real)
}

/// What is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// T1 and T2.
    Both,
    /// T1.
    Real,
    /// Enclosures of T1, of which the rounding may be left open.
    Wide,
}

/// The truths that are wanted. Of a wide T1 a node over exact operands has [`driver::single`]'s enclosures, whose radii its balls keep.
fn truths(
    case: &Case,
    masks: &BTreeMap<usize, Arc<HostTensor>>,
    settings: &Settings,
    wanted: Wanted,
) -> Result<Truth, EvaluateError> {
    let mut inputs: Vec<Arc<HostTensor>> = case.tensors.iter().map(|t| t.value.clone()).collect();
    let nodes: Vec<(Op<ValueRef>, Vec<TensorType>)> = case
        .nodes
        .iter()
        .enumerate()
        .map(|(position, node)| {
            let mut op = node.op.clone();
            if let (Op::Dropout(args), Some(mask)) = (&mut op, masks.get(&position))
                && args.mask.is_none()
            {
                args.mask = Some(ValueRef::Input(inputs.len()));
                inputs.push(mask.clone());
            }
            (op, node.types.clone())
        })
        .collect();
    let rounded = wanted == Wanted::Both;
    let width = if wanted == Wanted::Wide { Width::Wide } else { Width::Narrow };
    let held: u128 = inputs.iter().map(|t| t.len() as u128 * BYTES_PER_OPERAND).sum();
    // Enclosure, T2's value and enclosure while it is made, balls for later nodes.
    let made: u128 = nodes.iter().flat_map(|(_, types)| types).map(|ty| 3 * bytes_of_result(ty)).sum();
    check_memory(held + made, settings)?;

    let graph = nodes
        .iter()
        .map(|(op, types)| GraphNode {
            op: op.clone().map(|_, at| match at {
                ValueRef::Input(i) => Source::Tensor(&inputs[i]),
                ValueRef::Node { node, output } => Source::Node { node, output },
            }),
            types: types.clone(),
        })
        .collect();
    let evaluator = Evaluator::new(graph, settings);
    let mut truth = Truth::default();
    let mut reals: BTreeMap<ValueRef, Real> =
        inputs.iter().enumerate().map(|(i, t)| (ValueRef::Input(i), Real::Exact(t.clone()))).collect();
    let last_use = last_uses(&nodes);
    let mut undetermined = BTreeSet::new();
    for (position, (op, types)) in nodes.iter().enumerate() {
        let outputs: Vec<ValueRef> =
            (0..types.len()).map(|output| ValueRef::Node { node: position, output }).collect();
        if is_undetermined(op) || op.operands().iter().any(|(_, at)| undetermined.contains(*at)) {
            undetermined.extend(outputs.iter().copied());
            truth.undetermined.extend(outputs);
            continue;
        }
        // T2's operand may be another number where T1's is exact: an infinity that only rounding made, say.
        let exact_operands = op.operands().iter().all(|(_, at)| match &reals[*at] {
            Real::Exact(tensor) => truth.per_op.get(at).is_none_or(|rounded| rounded.same_bits(tensor)),
            Real::Balls(_) => false,
        });
        let per_op = if rounded || exact_operands {
            let operands = op.as_ref().map(|_, at| match (truth.per_op.get(at), &reals[at]) {
                (Some(rounded), _) => rounded.as_ref(),
                (None, Real::Exact(tensor)) => tensor.as_ref(),
                (None, Real::Balls(_)) => unreachable!("T2 is there where it is asked for"),
            });
            Some(single(&operands, types, settings)?)
        } else {
            None
        };
        let needed = last_use.contains_key(&position);
        let free = leaves_zero_sign_free(op, |at| holds_zero(&reals[at]))
            || op.operands().iter().any(|(_, at)| truth.real.get(at).is_some_and(|e| e.zero_sign_is_free));
        let decide = |output: usize, i: usize| evaluator.resolve(position, output, i);
        let is_final =
            |per_op: &Vec<Enclosure>| !needed || wanted == Wanted::Wide || per_op.iter().all(is_exact);
        let mut balls = if exact_operands && per_op.as_ref().is_some_and(is_final) {
            None
        } else {
            let converted: Vec<Option<Balls>> = op
                .operands()
                .iter()
                .map(|(_, at)| match &reals[*at] {
                    Real::Exact(tensor) => Some(Balls::exact(tensor)),
                    Real::Balls(_) => None,
                })
                .collect();
            let mut converted = converted.iter();
            let operands = op.as_ref().map(|_, at| match (&reals[at], converted.next()) {
                (Real::Balls(balls), _) => balls,
                (_, Some(Some(balls))) => balls,
                _ => unreachable!("every exact operand was converted"),
            });
            balls::evaluate(&operands, types, width)
        };
        let mut parts = balls.take().unwrap_or_default().into_iter();
        let mut per_op = per_op.map(Vec::into_iter);
        for (output, ty) in types.iter().enumerate() {
            let at = outputs[output];
            let mut part = parts.next();
            let single = per_op.as_mut().and_then(Iterator::next);
            if let Some(single) = single.as_ref().filter(|_| rounded) {
                truth.per_op.insert(at, Arc::new(single.value.clone()));
            }
            let enclosure = match single {
                Some(single) if exact_operands => {
                    Enclosure { zero_sign_is_free: single.zero_sign_is_free || free, ..single }
                }
                _ => {
                    let part = if needed { part.clone() } else { part.take() };
                    let mut draft = draft_of(op.kind(), ty, part);
                    let open = if wanted == Wanted::Wide { draft.leave_open() } else { Vec::new() };
                    let mut enclosure = draft.finish(free, |i| decide(output, i))?;
                    enclosure.undecided.extend(open);
                    enclosure.undecided.sort_unstable();
                    enclosure
                }
            };
            if needed {
                let real = if is_exact(&enclosure) {
                    Real::Exact(Arc::new(enclosure.value.clone()))
                } else {
                    Real::Balls(filled(part, &enclosure, |i| decide(output, i))?)
                };
                reals.insert(at, real);
            }
            truth.real.insert(at, enclosure);
        }
        reals.retain(|at, _| match at {
            ValueRef::Input(_) => true,
            ValueRef::Node { node, .. } => last_use.get(node).is_some_and(|&last| last > position),
        });
    }
    Ok(truth)
}

fn holds_zero(real: &Real) -> bool {
    match real {
        Real::Exact(tensor) => (0..tensor.len()).any(|i| tensor.get_f64(i) == 0.0),
        Real::Balls(balls) => (0..balls.len()).any(|i| balls.high(i) == 0.0 && balls.radius(i) == 0.0),
    }
}

/// By node, the last node that uses a result of it.
fn last_uses(nodes: &[(Op<ValueRef>, Vec<TensorType>)]) -> BTreeMap<usize, usize> {
    let mut last = BTreeMap::new();
    for (position, (op, _)) in nodes.iter().enumerate() {
        for (_, at) in op.operands() {
            if let ValueRef::Node { node, .. } = at {
                last.insert(*node, position);
            }
        }
    }
    last
}

/// The balls, unknown ones replaced by what is known otherwise; all of them from the enclosure where there are none.
fn filled(
    balls: Option<Balls>,
    enclosure: &Enclosure,
    decide: impl Fn(usize) -> Result<Resolved, EvaluateError> + Sync,
) -> Result<Balls, EvaluateError> {
    use rayon::prelude::*;
    let Some(mut balls) = balls else {
        return Ok(Balls::of_enclosure(enclosure));
    };
    // A fast path's radius would do, but is some 2^50 times what the balls have.
    let loose =
        |i: usize| enclosure.radius[i] > enclosure.center[i].abs() * f64::EPSILON * f64::EPSILON * 64.0;
    let unknown: Vec<usize> = (0..balls.len()).filter(|&i| !balls.radius(i).is_finite()).collect();
    let parts: Vec<(f64, f64, f64)> = unknown
        .par_iter()
        .map(|&i| {
            if enclosure.center[i].is_finite() && loose(i) {
                decide(i).map(|element| (element.hi, element.lo, element.radius))
            } else {
                Ok((enclosure.center[i], enclosure.low_at(i), enclosure.radius[i]))
            }
        })
        .collect::<Result<_, EvaluateError>>()?;
    for (i, (center, low, radius)) in unknown.into_iter().zip(parts) {
        balls.set(i, center, low, radius);
    }
    Ok(balls)
}

#[cfg(test)]
mod tests;
