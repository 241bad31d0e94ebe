//! The order in which an executor adds up, found from its roundings and checked against its bits.
//!
//! [`measure`] puts +M and -M at two places among ones and reads how many ones survive; the pure part, from these counts to the
//! tree, its name and its bits, is [`reference::order`](ulpian_reference::order).

mod compare;
mod probe;
mod subject;

use ulpian_reference::order::{Tree, name};
use ulpian_reference::replay::Hypothesis;
use ulpian_spec::{Case, CaseError, DType, OpKind, Outcome};

pub use compare::Trial;
pub use subject::{Call, DEFAULT_TERMS, MOST_TERMS, Subject};

/// Why nothing can be measured.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    /// An op whose results are no plain sums.
    #[error(
        "{}: no order can be found for this op{}; there are matmul, linear, conv2d, adaptive_avg_pool2d and layer_norm",
        .0,
        why_not(*.0)
    )]
    Op(OpKind),
    /// A dtype that does not round.
    #[error("{0} does not round; give --dtype float64, float32, float16 or bfloat16")]
    Dtype(DType),
    /// Shapes that cannot be probed.
    #[error("{0}")]
    Shape(String),
    /// The call itself.
    #[error(transparent)]
    Case(CaseError),
    /// The executor cannot run here.
    #[error("{reason}; {remedy}")]
    Unavailable {
        /// Why.
        reason: String,
        /// What to do.
        remedy: String,
    },
    /// It tried and failed.
    #[error("{0}")]
    Failed(String),
}

fn why_not(op: OpKind) -> &'static str {
    match op {
        OpKind::Softmax => " (the terms of a softmax are positive, so that none can cancel another)",
        OpKind::BatchNorm => {
            " (in training its mean and variance hide each other; without, nothing is summed)"
        }
        _ => "",
    }
}

/// What was found.
#[derive(Debug)]
pub struct Measured {
    /// Terms of each sum.
    pub terms: usize,
    /// The order.
    pub tree: Option<Tree>,
    /// Why there is no tree.
    pub inconclusive: Option<String>,
    /// Pairs of terms that were read.
    pub pairs: usize,
    /// Results that are added in another order than the tree's, by the row-major position of the first of each column.
    pub deviating: Vec<usize>,
    /// Does every sum of ones count all its terms? `None` where the op does not show its sum.
    pub complete: Option<bool>,
    /// Terms that are in no sum.
    pub missing: Vec<usize>,
    /// The arithmetics that were tried on random data in this order.
    pub trials: Vec<Trial>,
    /// Replays that return the very bits on the same data.
    pub replays: Vec<&'static Hypothesis>,
}

impl Measured {
    /// The name of the order, where it is a known one.
    pub fn name(&self) -> Option<String> {
        self.tree.as_ref().and_then(name)
    }

    /// The first arithmetic that returned the very bits of every element compared.
    pub fn same_bits(&self) -> Option<&Trial> {
        self.trials.iter().find(|t| t.same == t.elements)
    }

    /// Are products added without being rounded first? `None` where the bits do not tell.
    pub fn fused(&self) -> Option<bool> {
        let all = |name: &str| self.trials.iter().find(|t| t.name == name).map(|t| t.same == t.elements);
        match (all("fused multiply-add"), all("rounded products")) {
            (Some(true), Some(false)) => Some(true),
            (Some(false), Some(true)) => Some(false),
            _ => None,
        }
    }
}

/// Runs a case on the executor in question.
pub type RunCase<'a> = dyn FnMut(&Case) -> Outcome + 'a;

/// Finds the order of a call's sums, computes random data in it, and compares the bits. `seed` decides the data.
///
/// # Errors
/// [`OrderError`] where the call cannot be probed or the executor does not run. That no order is found is a result.
pub fn measure(subject: &Subject, seed: u64, run: &mut RunCase<'_>) -> Result<Measured, OrderError> {
    subject.check_batch()?;
    let mut prober = probe::Prober::new(subject, run);
    let mut measured = Measured {
        terms: subject.terms,
        tree: None,
        inconclusive: None,
        pairs: 0,
        deviating: Vec::new(),
        complete: None,
        missing: Vec::new(),
        trials: Vec::new(),
        replays: Vec::new(),
    };
    match prober.coverage() {
        Ok(None) => {}
        Ok(Some(missing)) => {
            measured.complete = Some(missing.is_empty());
            measured.missing = missing;
        }
        Err(probe::Stop::Error(error)) => return Err(error),
        Err(probe::Stop::Invalid(why)) => measured.inconclusive = Some(why),
    }
    if measured.inconclusive.is_none() && measured.complete != Some(false) {
        match prober.tree(seed) {
            Ok(found) => {
                (measured.tree, measured.pairs) = (Some(found.tree), found.pairs);
                measured.deviating = found.deviating.into_iter().collect();
            }
            Err(probe::Stop::Error(error)) => return Err(error),
            Err(probe::Stop::Invalid(why)) => measured.inconclusive = Some(why),
        }
    }
    let (trials, replays) =
        compare::on_random_data(subject, measured.tree.as_ref(), &measured.deviating, seed, run)?;
    (measured.trials, measured.replays) = (trials, replays);
    Ok(measured)
}

/// The first result of a case.
fn result(run: &mut RunCase<'_>, case: &Case) -> Result<std::sync::Arc<ulpian_spec::HostTensor>, OrderError> {
    match run(case) {
        Outcome::Ok(mut run) => run
            .results
            .remove(&ulpian_spec::ValueRef::Node { node: 0, output: 0 })
            .ok_or_else(|| OrderError::Failed("it returned no result".to_owned())),
        Outcome::Unavailable { reason, remedy } => Err(OrderError::Unavailable { reason, remedy }),
        Outcome::Failed { reason, .. } => Err(OrderError::Failed(reason)),
    }
}
