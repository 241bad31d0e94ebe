//! A finding made small: the node at fault alone, on the inputs that the executor itself had there, with fewer rows, columns
//! and channels and values of few bits, as long as the verdict (cause and op) stays what it is.
//!
//! Axes are cut by delta debugging (Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input, 2002: ddmin).

use std::sync::Arc;
use std::time::{Duration, Instant};

use ulpian_spec::verdict::{CaseVerdict, Cause};
use ulpian_spec::{Case, ExecutorId, HostTensor, Outcome, Storage, ValueRef};

use super::axes::Call;
use crate::Executors;
use crate::pipeline::{self, Interventions};

/// How much may be tried for one finding.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// Cases judged.
    pub tries: usize,
    /// Time.
    pub time: Duration,
}

impl Default for Budget {
    /// 400 cases in two minutes.
    fn default() -> Budget {
        Budget { tries: 400, time: Duration::from_secs(120) }
    }
}

/// What is to stay.
#[derive(Debug, Clone)]
pub struct Kept {
    /// Who is at fault.
    pub executor: ExecutorId,
    /// The cause.
    pub cause: Cause,
    /// The op at fault.
    pub op: String,
    /// The node at fault.
    pub node: String,
    /// Which runs are granted to explain it.
    pub interventions: Interventions,
}

/// A small case with the same verdict.
#[derive(Debug, Clone)]
pub struct Minimised {
    /// The case.
    pub case: Case,
    /// The verdict on it.
    pub verdict: CaseVerdict,
    /// Elements of the whole case's tensors.
    pub elements: usize,
    /// Elements that are left.
    pub elements_left: usize,
}

/// Makes a finding small. `None` where its verdict is not met again, even on the whole case.
pub fn minimise(
    case: &Case,
    name: &str,
    kept: &Kept,
    executors: &mut Executors,
    budget: Budget,
) -> Option<Minimised> {
    let elements = case.tensors.iter().map(|t| t.value.len()).sum();
    let source = format!("node {} of {}, minimised; {}", kept.node, case.name, case.source);
    let mut trier =
        Trier { kept, executors, quick: true, tries: budget.tries, end: Instant::now() + budget.time };
    let alone = alone(case, kept, trier.executors).filter(|call| {
        let Some(case) = call.case(name, &source) else { return false };
        // Compiling is left out where the verdict does not rest on it.
        trier.holds(&case) || {
            trier.quick = false;
            trier.holds(&case)
        }
    });
    let Some(mut call) = alone else {
        // It shows in the chain alone.
        trier.quick = false;
        let verdict = trier.verdict(case)?;
        let case = Case { name: name.to_owned(), ..case.clone() };
        return Some(Minimised { case, verdict, elements, elements_left: elements });
    };
    let mut holds = |call: &Call| call.case(name, &source).is_some_and(|case| trier.holds(&case));
    for _ in 0..2 {
        let before = call.elements();
        for smaller in call.without_an_operand() {
            if holds(&smaller) {
                call = smaller;
            }
        }
        cut_axes(&mut call, &mut holds);
        simplify_values(&mut call, &mut holds);
        if call.elements() == before {
            break;
        }
    }
    let case = call.case(name, &source)?;
    trier.tries = 1;
    trier.end = Instant::now() + Duration::from_secs(1);
    let verdict = trier.verdict(&case)?;
    Some(Minimised { case, verdict, elements, elements_left: call.elements() })
}

/// The node at fault, on the inputs that the executor had there.
fn alone(case: &Case, kept: &Kept, executors: &mut Executors) -> Option<Call> {
    let id = kept.node.split_once('.').map_or(kept.node.as_str(), |(id, _)| id);
    let node = case.nodes.iter().find(|n| n.id == id)?;
    let results = match executors.run(&kept.executor, case) {
        Outcome::Ok(run) => run.results,
        Outcome::Failed { before, .. } => before.results,
        Outcome::Unavailable { .. } => return None,
    };
    let operand = |at: ValueRef| match at {
        ValueRef::Input(i) => Some(Arc::clone(&case.tensors[i].value)),
        ValueRef::Node { .. } => results.get(&at).cloned(),
    };
    let op = node.op.clone().try_map(|_, at| operand(at).ok_or(())).ok()?;
    Some(Call { id: node.id.clone(), op })
}

/// Judges smaller cases until the budget is spent.
struct Trier<'a> {
    kept: &'a Kept,
    executors: &'a mut Executors,
    quick: bool,
    tries: usize,
    end: Instant,
}

impl Trier<'_> {
    fn holds(&mut self, case: &Case) -> bool {
        self.verdict(case).is_some()
    }

    /// The verdict, where it is the one to keep.
    fn verdict(&mut self, case: &Case) -> Option<CaseVerdict> {
        if self.tries == 0 || Instant::now() > self.end {
            return None;
        }
        self.tries -= 1;
        let interventions = match (self.kept.interventions, self.quick) {
            (Interventions::All, true) => Interventions::Quick,
            (granted, _) => granted,
        };
        let parties = [self.kept.executor.clone()];
        let verdict =
            pipeline::judge(case, &parties, self.executors, interventions, &mut |_: &ExecutorId| {}).ok()?;
        let own = &verdict.executors.first()?.verdict;
        let at = own.at.as_ref()?;
        let op = &verdict.nodes.iter().find(|n| n.node == at.node)?.op;
        (own.cause == self.kept.cause && *op == self.kept.op).then_some(verdict)
    }
}

/// Cuts every group of axes to what the verdict needs.
fn cut_axes(call: &mut Call, holds: &mut impl FnMut(&Call) -> bool) {
    let groups = call.axes();
    for (size, axes) in groups {
        let mut keep: Vec<usize> = (0..size).collect();
        ddmin(&mut keep, |positions| holds(&call.cut(&axes, positions)));
        if keep.len() < size {
            *call = call.cut(&axes, &keep);
        }
    }
}

/// More parts than this are not tried: what is left then is spread over the axis.
const MOST_PARTS: usize = 16;

/// ddmin over positions of an axis: parts alone, then all but a part, then smaller parts.
fn ddmin(keep: &mut Vec<usize>, mut holds: impl FnMut(&[usize]) -> bool) {
    let mut parts = 2;
    while keep.len() > 1 {
        let length = keep.len().div_ceil(parts);
        let chunks: Vec<Vec<usize>> = keep.chunks(length).map(<[usize]>::to_vec).collect();
        if let Some(alone) = chunks.iter().find(|chunk| holds(chunk)) {
            *keep = alone.clone();
            parts = 2;
            continue;
        }
        let without = |i: usize| -> Vec<usize> {
            chunks.iter().enumerate().filter(|(j, _)| *j != i).flat_map(|(_, c)| c.clone()).collect()
        };
        if chunks.len() > 2
            && let Some(rest) = (0..chunks.len()).map(without).find(|rest| holds(rest))
        {
            *keep = rest;
            parts = (parts - 1).max(2);
            continue;
        }
        if length == 1 || parts >= MOST_PARTS {
            break;
        }
        parts = (2 * parts).min(keep.len());
    }
}

/// Significands that are tried, in bits, fewest first.
const FEW_BITS: [u32; 7] = [1, 2, 3, 4, 6, 8, 12];

/// Gives every operand the simplest values that keep the verdict.
fn simplify_values(call: &mut Call, holds: &mut impl FnMut(&Call) -> bool) {
    let names: Vec<&'static str> = call.op.operands().iter().map(|(name, _)| *name).collect();
    for name in names {
        let equal = [0.0, 1.0].map(|x| call.with(name, |t| filled(t, x)));
        let rounded = FEW_BITS.map(|bits| call.with(name, |t| of_few_bits(t, bits)));
        if let Some(simpler) = equal.into_iter().chain(rounded).find(|c| holds(c)) {
            *call = simpler;
        }
    }
}

/// Bits of the significand that are stored, and of the exponent.
fn layout(tensor: &HostTensor) -> Option<(u32, u32)> {
    match tensor.storage() {
        Storage::F64(_) => Some((52, 11)),
        Storage::F32(_) => Some((23, 8)),
        Storage::F16(_) => Some((10, 5)),
        Storage::BF16(_) => Some((7, 8)),
        _ => None,
    }
}

fn each_as_bits(tensor: &HostTensor, change: impl Fn(u64) -> u64) -> HostTensor {
    let size = tensor.dtype().size();
    let mut bytes = tensor.storage().to_le_bytes();
    for element in bytes.chunks_exact_mut(size) {
        let mut word = [0; 8];
        word[..size].copy_from_slice(element);
        element.copy_from_slice(&change(u64::from_le_bytes(word)).to_le_bytes()[..size]);
    }
    HostTensor::new(tensor.shape(), Storage::from_le_bytes(tensor.dtype(), &bytes))
        .expect("the number of elements stays")
}

/// All elements 0 or 1; an integer tensor stays as it is.
fn filled(tensor: &HostTensor, x: f64) -> HostTensor {
    let Some((significand, exponent)) = layout(tensor) else { return tensor.clone() };
    let one = ((1u64 << (exponent - 1)) - 1) << significand;
    each_as_bits(tensor, |_| if x == 0.0 { 0 } else { one })
}

/// Every finite element rounded to so many significant bits; one that would overflow stays.
fn of_few_bits(tensor: &HostTensor, bits: u32) -> HostTensor {
    let Some((significand, exponent)) = layout(tensor) else { return tensor.clone() };
    let Some(drop) = (significand + 1).checked_sub(bits).filter(|d| *d > 0) else { return tensor.clone() };
    let infinite = |word: u64| (word >> significand) & ((1 << exponent) - 1) == (1 << exponent) - 1;
    each_as_bits(tensor, |word| {
        // The carry runs into the exponent, as it should.
        let rounded = (word + (1 << (drop - 1))) >> drop << drop;
        if infinite(word) || infinite(rounded) { word } else { rounded }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_the_bits_they_are_granted() {
        let x = HostTensor::f32(&[6], &[1.3, -0.7, f32::MAX, f32::INFINITY, 0.0, 1.99]);
        let one = of_few_bits(&x, 1);
        assert_eq!(one, HostTensor::f32(&[6], &[1.0, -0.5, f32::MAX, f32::INFINITY, 0.0, 2.0]));
        assert_eq!(of_few_bits(&x, 2).get_f64(0), 1.5);
        assert_eq!(filled(&x, 1.0), HostTensor::f32(&[6], &[1.0; 6]));
        let int = HostTensor::new([2], Storage::I32(vec![3, 4])).unwrap();
        assert_eq!(of_few_bits(&int, 1), int);
    }

    #[test]
    fn ddmin_finds_what_is_needed() {
        for needed in [vec![7], vec![0, 15], vec![3, 4, 11]] {
            let mut keep: Vec<usize> = (0..16).collect();
            ddmin(&mut keep, |positions| needed.iter().all(|n| positions.contains(n)));
            assert_eq!(keep, needed);
        }
    }
}
