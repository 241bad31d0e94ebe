//! Replays: does a named arithmetic, order or formula return the very bits?

use std::sync::Arc;

use ulpian_reference::replay::{Blame, Contraction, Hypothesis, contractions, hypotheses};
use ulpian_spec::{Case, HostTensor, Op, ValueRef};

use super::local::{AtNode, Heard};

/// Multiplications beyond which replays are not run on a whole call.
const MOST_WORK: f64 = 3e8;

/// Multiplications up to which sound replays are run even where nothing has to be explained.
pub(super) const CHEAP_WORK: f64 = (1 << 20) as f64;

/// A hypothesis compared with what was observed.
pub(super) struct Replay {
    /// The hypothesis.
    pub hypothesis: &'static Hypothesis,
    /// Every observed result has its bits.
    pub same_bits: bool,
    /// Its own worst absolute error over the first result; infinite where a class is wrong. `None` where a sample already
    /// differed.
    pub error: Option<f64>,
    /// Its own worst error in ulp.
    pub ulp: Option<f64>,
}

/// About how many multiplications a call needs.
pub(super) fn work(op: &Op<Arc<HostTensor>>, elements: usize) -> f64 {
    let per_element = match op {
        Op::Matmul(args) => args.input.shape().last().copied().unwrap_or(1),
        Op::Linear(args) => args.input.shape().last().copied().unwrap_or(1),
        Op::Conv2d(args) => args.weight.shape().iter().skip(1).product(),
        Op::AdaptiveAvgPool2d(args) => args.input.len().div_ceil(elements.max(1)),
        _ => 16,
    };
    per_element as f64 * elements as f64
}

/// Runs the hypotheses about the call, those of `blames` only, and stops after the first that returns the bits.
pub(super) fn compare(at: &AtNode, blames: &[Blame]) -> Vec<Replay> {
    let (Some(op), Some(local)) = (&at.op, &at.local) else {
        return Vec::new();
    };
    let Some(Some(first)) = at.results.first() else {
        return Vec::new();
    };
    let affordable = work(op, local.truth[0].len()) <= MOST_WORK;
    let op = op.as_ref().map(|_, t| t.as_ref());
    let mut done: Vec<Replay> = Vec::new();
    for hypothesis in hypotheses().iter().filter(|h| h.ops.contains(&op.kind()) && blames.contains(&h.blame))
    {
        if let Some(sample) = hypothesis.sample {
            let Some(agrees) = sample(&op, first) else { continue };
            // One sound computation is run whole even so: how well it does is asked.
            let yardstick = hypothesis.blame == Blame::Nobody && !done.iter().any(|r| r.error.is_some());
            if !(agrees || yardstick && affordable) {
                done.push(Replay { hypothesis, same_bits: false, error: None, ulp: None });
                continue;
            }
        } else if !affordable {
            continue;
        }
        let Some(results) = (hypothesis.run)(&op) else { continue };
        let observed = || at.results.iter().zip(&results).filter_map(|(got, r)| Some((got.as_ref()?, r)));
        let same_bits = observed().all(|(got, r)| got.same_bits(r));
        let m = results.first().map(|r| local.measure(0, r));
        let far = m.as_ref().is_some_and(|m| m.type_differs || m.class_faults() > 0);
        done.push(Replay {
            hypothesis,
            same_bits,
            error: m.as_ref().map(|m| if far { f64::INFINITY } else { m.abs.value }),
            ulp: m.as_ref().map(super::metrics::Measured::max_ulp),
        });
        if same_bits {
            break;
        }
    }
    done
}

/// The contraction of a product and the sum that uses it which returns the bits of the sum at `node`, if one does.
pub(super) fn contraction(case: &Case, heard: &Heard, node: usize) -> Option<&'static Contraction> {
    let sum = heard.nodes[node].op.as_ref()?.as_ref().map(|_, t| t.as_ref());
    let seen = heard.nodes[node].results.first()?.as_ref()?;
    let operands = case.nodes[node].op.operands();
    operands.iter().find_map(|(argument, at)| {
        let ValueRef::Node { node: earlier, output: 0 } = **at else { return None };
        let product = heard.nodes[earlier].op.as_ref()?.as_ref().map(|_, t| t.as_ref());
        contractions().iter().find(|c| {
            (c.run)(&product, &sum, *argument == "other")
                .is_some_and(|r| r.first().is_some_and(|r| r.same_bits(seen)))
        })
    })
}

/// The hypotheses' names for the evidence: `replay:NAME`.
pub(super) fn executor_name(hypothesis: &Hypothesis) -> String {
    format!("replay:{}", hypothesis.name)
}
