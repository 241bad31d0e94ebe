//! One executor at one node: its own inputs, the truth on them (T3), and how far each result is from it and from the chain's.

use std::collections::BTreeMap;
use std::sync::Arc;

use ulpian_reference::{EvaluateError, Settings, evaluate};
use ulpian_spec::{Case, Enclosure, HostTensor, Op, Run, ValueRef};

use super::bounds::{self, Levels, Operand};
use super::chain::{Chain, Shared};
use super::dropout;
use super::metrics::{Measured, measure};
use super::unspecified::{self, Open};

/// The exact results of a call on given inputs, and what a correct implementation may lose there.
pub(super) struct LocalTruth {
    /// One per result.
    pub truth: Vec<Arc<Enclosure>>,
    /// One per result.
    pub levels: Vec<Arc<Levels>>,
}

impl LocalTruth {
    /// By the reference, on these very inputs.
    pub(super) fn evaluated(
        op: &Op<Arc<HostTensor>>,
        settings: &Settings,
    ) -> Result<LocalTruth, EvaluateError> {
        let borrowed = op.as_ref().map(|_, t| t.as_ref());
        let truth: Vec<Arc<Enclosure>> = evaluate(&borrowed, settings)?.into_iter().map(Arc::new).collect();
        let operands = op.as_ref().map(|_, t| Operand::exact(t));
        let levels = bounds::levels(&operands.as_ref(), &truth).into_iter().map(Arc::new).collect();
        Ok(LocalTruth { truth, levels })
    }

    /// The chain's own, where the node's operands are the case's tensors.
    fn of_chain(chain: &Chain, node: usize, outputs: usize) -> Option<LocalTruth> {
        let at = |output| ValueRef::Node { node, output };
        Some(LocalTruth {
            truth: (0..outputs).map(|o| chain.real.get(&at(o)).cloned()).collect::<Option<_>>()?,
            levels: (0..outputs).map(|o| chain.together.get(&at(o)).cloned()).collect::<Option<_>>()?,
        })
    }

    /// How far result `output` is.
    pub(super) fn measure(&self, output: usize, got: &HostTensor) -> Measured {
        measure(got, &self.truth[output], &self.levels[output].worst, self.levels[output].usual(), false)
    }
}

/// An op on the tensors that somebody had.
pub(super) type Call = Op<Arc<HostTensor>>;

/// T3 by node, for each set of inputs met so far.
#[derive(Default)]
pub(super) struct LocalTruths {
    known: BTreeMap<usize, Vec<(Call, Arc<LocalTruth>)>>,
}

impl LocalTruths {
    /// The local truth of node `node` on the inputs of `op`; `first` is the chain's own where it holds for these.
    pub(super) fn get(
        &mut self,
        node: usize,
        op: &Op<Arc<HostTensor>>,
        first: Option<LocalTruth>,
        settings: &Settings,
    ) -> Result<Arc<LocalTruth>, EvaluateError> {
        let known = self.known.entry(node).or_default();
        if let Some((_, local)) = known.iter().find(|(other, _)| same_inputs(op, other)) {
            return Ok(Arc::clone(local));
        }
        let local = Arc::new(match first {
            Some(first) => first,
            None => LocalTruth::evaluated(op, settings)?,
        });
        known.push((op.clone(), Arc::clone(&local)));
        Ok(local)
    }
}

/// Are the operands the same, bit for bit? The arguments are the same node's.
pub(super) fn same_inputs(a: &Op<Arc<HostTensor>>, b: &Op<Arc<HostTensor>>) -> bool {
    let (a, b) = (a.operands(), b.operands());
    a.len() == b.len()
        && a.iter().zip(&b).all(|((n, x), (m, y))| n == m && (Arc::ptr_eq(x, y) || x.same_bits(y)))
}

/// One executor at one node.
pub(super) struct AtNode {
    /// The call on the inputs the executor had; `None` where one of them was not observed.
    pub op: Option<Op<Arc<HostTensor>>>,
    /// Its results, where observed.
    pub results: Vec<Option<Arc<HostTensor>>>,
    /// The truth on its inputs; `None` where they are not known, or the reference does not accept them.
    pub local: Option<Arc<LocalTruth>>,
    /// Local distances as reported, by result.
    pub measured: Vec<Option<Measured>>,
    /// The same with every open element that was answered within what is allowed counted as right.
    pub settled: Vec<Option<Measured>>,
    /// Open elements.
    pub open: Vec<Open>,
    /// Distances from the chain's truth, by result.
    pub accumulated: Vec<Option<Measured>>,
    /// What was odd: an implausible dropout mask, inputs that the op rejects.
    pub oddity: Option<String>,
}

/// What an executor's run says: node by node, with the chain under its own dropout masks.
pub(super) struct Heard {
    pub nodes: Vec<AtNode>,
    /// The chain it is compared with.
    pub chain: Arc<Chain>,
    /// The dropout masks that were read off its results, by node.
    pub masks: BTreeMap<usize, Arc<HostTensor>>,
}

/// Measures a run.
pub(super) fn hear(
    case: &Case,
    run: &Run,
    shared: &mut Shared,
    truths: &mut LocalTruths,
    settings: &Settings,
) -> Result<Heard, EvaluateError> {
    let mut oddities: BTreeMap<usize, String> = BTreeMap::new();
    let mut masks: BTreeMap<usize, Arc<HostTensor>> = BTreeMap::new();
    let own: Vec<Option<Op<Arc<HostTensor>>>> = case
        .nodes
        .iter()
        .enumerate()
        .map(|(n, node)| {
            let mut op = node.op.clone().try_map(|_, at| value(case, run, at).ok_or(())).ok()?;
            if let Op::Dropout(args) = &mut op
                && args.training
                && args.mask.is_none()
                && args.p > 0.0
            {
                let got = run.results.get(&ValueRef::Node { node: n, output: 0 })?;
                let derived = dropout::derive(args, got)?;
                if let Some(why) = derived.implausible {
                    oddities.insert(n, why);
                }
                args.mask = Some(Arc::clone(&derived.mask));
                masks.insert(n, derived.mask);
            }
            Some(op)
        })
        .collect();
    let chain = if masks.is_empty() {
        Arc::clone(&shared.chain)
    } else {
        Arc::new(Chain::of(case, &masks, settings)?)
    };

    let mut nodes = Vec::with_capacity(case.nodes.len());
    for (n, op) in own.into_iter().enumerate() {
        let at = |output| ValueRef::Node { node: n, output };
        let outputs = case.nodes[n].types.len();
        let results: Vec<Option<Arc<HostTensor>>> =
            (0..outputs).map(|output| run.results.get(&at(output)).cloned()).collect();
        let first = Chain::is_first(case, n);
        let known = if first { LocalTruth::of_chain(&chain, n, outputs) } else { None };
        let observed = results.iter().any(Option::is_some);
        let local = match &op {
            Some(op) if observed => match truths.get(n, op, known, settings) {
                Ok(local) => Some(local),
                Err(EvaluateError::Invalid(why)) => {
                    oddities.entry(n).or_insert_with(|| format!("the op rejects the inputs it had: {why}"));
                    None
                }
                Err(EvaluateError::Undetermined) => None,
                Err(e) => return Err(e),
            },
            _ => None,
        };
        let open = match &op {
            Some(op) => unspecified::open_elements(op, &results),
            None => Vec::new(),
        };
        let (mut measured, mut settled) = (vec![], vec![]);
        for (output, got) in results.iter().enumerate() {
            let (Some(got), Some(local)) = (got, &local) else {
                measured.push(None);
                settled.push(None);
                continue;
            };
            let m = local.measure(output, got);
            let s = match unspecified::settle(got, &local.truth[output].value, output, &open) {
                Some(got) => local.measure(output, &got),
                None => m.clone(),
            };
            measured.push(Some(m));
            settled.push(Some(s));
        }
        let oddity = oddities.remove(&n);
        nodes.push(AtNode { op, results, local, measured, settled, open, accumulated: Vec::new(), oddity });
    }
    let mut heard = Heard { nodes, chain, masks };
    heard.measure_accumulated(case);
    if heard.leaves_open() && !Chain::has_float64(case) {
        heard.chain = match heard.masks.is_empty() {
            true => shared.narrow(case, settings)?,
            false => Arc::new(Chain::narrow(case, &heard.masks, settings)?),
        };
        heard.measure_accumulated(case);
    }
    Ok(heard)
}

impl Heard {
    /// Measures every result against the chain.
    fn measure_accumulated(&mut self, case: &Case) {
        let Heard { nodes, chain, .. } = self;
        for (n, node) in nodes.iter_mut().enumerate() {
            let first = Chain::is_first(case, n);
            let against = |(output, got): (usize, &Option<Arc<HostTensor>>)| match &node.measured[output] {
                Some(m) if first => Some(m.clone()),
                _ => against_chain(chain, ValueRef::Node { node: n, output }, got.as_ref()?, first),
            };
            node.accumulated = node.results.iter().enumerate().map(against).collect();
        }
    }

    /// Does the width of the chain's enclosures leave open whether an element is beyond the bound?
    fn leaves_open(&self) -> bool {
        let measured = |node: &AtNode| node.accumulated.iter().flatten().any(|m| m.doubtful > 0);
        self.nodes.iter().any(measured)
    }
}

fn against_chain(chain: &Chain, at: ValueRef, got: &HostTensor, first: bool) -> Option<Measured> {
    let (real, levels) = (chain.real.get(&at)?, chain.together.get(&at)?);
    Some(measure(got, real, &levels.worst, levels.usual(), !first))
}

/// An operand as this run had it.
fn value(case: &Case, run: &Run, at: ValueRef) -> Option<Arc<HostTensor>> {
    match at {
        ValueRef::Input(i) => Some(Arc::clone(&case.tensors[i].value)),
        at @ ValueRef::Node { .. } => run.results.get(&at).cloned(),
    }
}
