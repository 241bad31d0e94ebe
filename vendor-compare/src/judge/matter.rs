//! A matter: one executor's result at one node that asks for an explanation, and what was tried to find it.
//!
//! The order is: replays of sound computations, which acquit; replays of weak ones, which convict; then switches, until one
//! makes the error vanish or none is left.

use std::collections::VecDeque;

use ulpian_reference::replay::Blame;
use ulpian_spec::{DType, ExecutorId, OpKind, Run, ValueRef};

use super::interventions::{self, Family};
use super::local::AtNode;
use super::metrics::Measured;
use super::replays::{self, Replay};
use super::standing::{self, Standing};

/// How many times further off than a sound computation a result within the bound must be for a weak formula that returns its
/// bits to count against it: two bits of precision.
pub(super) const CLEARLY: f64 = 4.0;

/// How a run under a switch compares.
#[derive(Debug, Clone)]
pub(super) enum Trial {
    /// It did not run, and why.
    NotRun(String),
    /// It ran on the same inputs.
    Ran {
        /// All observed results have the same bits.
        same_bits: bool,
        /// The element that shows most has the same bits.
        same_at_fault: bool,
        /// Within the bound and clearly nearer to the truth.
        vanishes: bool,
        /// The distances of the result that the matter is about.
        measured: Box<Measured>,
    },
}

/// One executor's result at one node, to be explained.
pub(super) struct Matter {
    /// Position among the parties.
    pub party: usize,
    /// Position among the nodes.
    pub node: usize,
    /// Which result decides.
    pub output: usize,
    /// Where it stands.
    pub standing: Standing,
    /// Replays compared.
    pub replays: Vec<Replay>,
    /// Switches thrown.
    pub trials: Vec<(ExecutorId, Trial)>,
    /// Switches left.
    pub plan: VecDeque<ExecutorId>,
}

impl Matter {
    /// Opens it: runs the replays and plans the interventions. `None` where nothing asks for an explanation.
    pub(super) fn open(
        party: usize,
        id: &ExecutorId,
        node: usize,
        (standing, output): (Standing, usize),
        at: &AtNode,
        fused_run: bool,
    ) -> Option<Matter> {
        let (op, local) = (at.op.as_ref()?, at.local.as_ref()?);
        let m = at.settled[output].as_ref()?;
        let kind = op.kind();
        let dtype = local.truth[output].value.dtype();
        let cheap = replays::work(op, local.truth[0].len()) <= replays::CHEAP_WORK;
        let blames: &[Blame] = match standing {
            Standing::Wrong if m.type_differs => return None,
            Standing::Wrong | Standing::Unusual | Standing::Doubtful => {
                &[Blame::Nobody, Blame::Framework, Blame::Hardware]
            }
            Standing::Usual if cheap => &[Blame::Nobody],
            _ => return None,
        };
        let replays = match standing {
            // A sound computation cannot be the explanation; how well it does is not asked here either.
            Standing::Wrong => {
                let mut list = replays::compare(at, &[Blame::Framework, Blame::Hardware]);
                if !list.iter().any(|r| r.same_bits) {
                    list.extend(replays::compare(at, &[Blame::Nobody]));
                }
                list
            }
            Standing::Usual => replays::compare(at, blames),
            _ => {
                let mut list = replays::compare(at, &[Blame::Nobody]);
                if !list.iter().any(|r| r.same_bits) {
                    list.extend(replays::compare(at, &[Blame::Framework, Blame::Hardware]));
                }
                list
            }
        };
        let mut matter =
            Matter { party, node, output, standing, replays, trials: vec![], plan: VecDeque::new() };
        if fused_run {
            // The run under a switch would not be fused: other bits would say nothing about the switch.
            return Some(matter);
        }
        let full = interventions::plan(id, op, dtype);
        let only_onednn = |full: VecDeque<ExecutorId>| -> VecDeque<ExecutorId> {
            full.into_iter()
                .filter(|e| {
                    Family::of(id) == Family::TorchCpu && interventions::switch_name(id, e) == "mkldnn=off"
                })
                .collect()
        };
        matter.plan = match (standing, matter.bitwise(at).map(|r| r.hypothesis.blame)) {
            (Standing::Wrong, Some(Blame::Hardware)) | (_, Some(Blame::Nobody)) | (Standing::Usual, _) => {
                VecDeque::new()
            }
            (_, Some(Blame::Framework)) => only_onednn(full),
            (_, Some(Blame::Hardware)) => VecDeque::new(),
            (Standing::Wrong, None) => full,
            // Within the bound no switch convicts; the one that swaps the library tells how much either loses.
            (_, None) if standing::has_blas(kind, dtype) => only_onednn(full),
            (_, None) => VecDeque::new(),
        };
        Some(matter)
    }

    /// The replay that returns the bits and counts: a weak one within the bound only where a sound computation does clearly
    /// better.
    pub(super) fn bitwise(&self, at: &AtNode) -> Option<&Replay> {
        let found = self.replays.iter().find(|r| r.same_bits)?;
        if found.hypothesis.blame == Blame::Nobody || self.standing == Standing::Wrong {
            return Some(found);
        }
        let m = at.settled[self.output].as_ref()?;
        (m.abs.value >= CLEARLY * self.sound_error(at, m)).then_some(found)
    }

    /// The least error of a sound replay; where there is none, the usual error at the element that is furthest off.
    pub(super) fn sound_error(&self, at: &AtNode, m: &Measured) -> f64 {
        let sound =
            self.replays.iter().filter(|r| r.hypothesis.blame == Blame::Nobody).filter_map(|r| r.error);
        let best = sound.fold(f64::INFINITY, f64::min);
        let usual = at
            .local
            .as_ref()
            .and_then(|l| l.levels[self.output].usual().get(m.abs.index).copied())
            .unwrap_or(f64::INFINITY);
        if best.is_finite() { best } else { usual }
    }

    /// Compares what came of a switch.
    pub(super) fn record(
        &mut self,
        executor: ExecutorId,
        run: Result<&Run, String>,
        node: usize,
        at: &AtNode,
    ) {
        let trial = match run {
            Err(why) => Trial::NotRun(why),
            Ok(run) => self.compare(run, node, at),
        };
        self.trials.push((executor, trial));
    }

    fn compare(&self, run: &Run, node: usize, at: &AtNode) -> Trial {
        let not_run = || Trial::NotRun("it returned no result for this node".to_owned());
        let result = |output| run.results.get(&ValueRef::Node { node, output });
        let (Some(local), Some(Some(own)), Some(got)) =
            (&at.local, at.results.get(self.output), result(self.output))
        else {
            return not_run();
        };
        let Some(m) = &at.settled[self.output] else { return not_run() };
        let same_bits = at
            .results
            .iter()
            .enumerate()
            .all(|(output, r)| r.as_ref().is_none_or(|r| result(output).is_some_and(|g| g.same_bits(r))));
        let measured =
            match super::unspecified::settle(got, &local.truth[self.output].value, self.output, &at.open) {
                Some(got) => local.measure(self.output, &got),
                None => local.measure(self.output, got),
            };
        let fault = m.shows_at();
        let same_at_fault = own.tensor_type() == got.tensor_type() && {
            let (a, b) = (own.get_f64(fault), got.get_f64(fault));
            a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
        };
        let clearly = m.class_faults() > 0 || measured.abs.value * CLEARLY <= m.abs.value;
        let vanishes = !same_bits && measured.within() && clearly;
        Trial::Ran { same_bits, same_at_fault, vanishes, measured: Box::new(measured) }
    }

    /// What a switch did, where it was thrown and ran.
    pub(super) fn trial(&self, id: &ExecutorId, switch: &str) -> Option<&Trial> {
        self.trials
            .iter()
            .find(|(e, t)| interventions::switch_name(id, e) == switch && matches!(t, Trial::Ran { .. }))
            .map(|(_, t)| t)
    }

    /// The first switch of this very executor that makes the error vanish. Another executor that is right explains nothing.
    pub(super) fn vanishes_under(&self, id: &ExecutorId) -> Option<&ExecutorId> {
        self.trials
            .iter()
            .find(|(e, t)| {
                (&e.family, &e.variant) == (&id.family, &id.variant)
                    && matches!(t, Trial::Ran { vanishes: true, .. })
            })
            .map(|(e, _)| e)
    }

    /// The first other executor that keeps to the bound on the same inputs.
    pub(super) fn right_elsewhere(&self, id: &ExecutorId) -> Option<&ExecutorId> {
        self.trials
            .iter()
            .find(|(e, t)| {
                (&e.family, &e.variant) != (&id.family, &id.variant)
                    && matches!(t, Trial::Ran { measured, .. } if measured.within())
            })
            .map(|(e, _)| e)
    }

    /// The first executor that returns the same bits.
    pub(super) fn same_bits_as(&self) -> Option<&ExecutorId> {
        self.trials.iter().find(|(_, t)| matches!(t, Trial::Ran { same_bits: true, .. })).map(|(e, _)| e)
    }

    /// Do the bits change without oneDNN? Then it computed them, also where both make the same error.
    fn without_onednn(&self, id: &ExecutorId) -> bool {
        matches!(self.trial(id, "mkldnn=off"), Some(Trial::Ran { same_bits: false, .. }))
    }

    /// Do the bits change without NNPACK?
    fn without_nnpack(&self, id: &ExecutorId) -> bool {
        matches!(self.trial(id, "nnpack=off"), Some(Trial::Ran { same_at_fault: false, .. }))
    }

    /// Is enough known to stop?
    pub(super) fn is_settled(&self, id: &ExecutorId) -> bool {
        match Family::of(id) {
            Family::TorchCpu => {
                // oneDNN first: it decides who computed; afterwards any switch that explains.
                self.without_onednn(id) || self.without_nnpack(id) || self.vanishes_under(id).is_some()
            }
            Family::TorchCuda => self.vanishes_under(id).is_some(),
            Family::Recorded => match self.same_bits_as() {
                Some(same) => same.key("mkldnn").is_some() || same.family == "ort" || self.trials.len() > 1,
                None => false,
            },
            _ => false,
        }
    }
}

/// Whose code computed the result, as far as the switches tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Computed {
    /// A kernel of PyTorch's own.
    Framework,
    /// oneDNN: the bits change without it.
    OneDnn,
    /// NNPACK: the bits change without it.
    Nnpack,
    /// The BLAS below PyTorch (MKL on x86): neither oneDNN nor a kernel of PyTorch's own computes this op.
    Blas,
    /// A library of the GPU vendor's.
    GpuLibrary,
    /// ONNX Runtime.
    OnnxRuntime,
}

/// Whose code it is, by executor and switches.
pub(super) fn computed_by(matter: &Matter, id: &ExecutorId, kind: OpKind, dtype: DType) -> Computed {
    match Family::of(id) {
        Family::TorchCpu if matter.without_onednn(id) => Computed::OneDnn,
        Family::TorchCpu if matter.without_nnpack(id) => Computed::Nnpack,
        Family::TorchCpu if standing::has_blas(kind, dtype) => Computed::Blas,
        Family::TorchCpu => Computed::Framework,
        Family::TorchCuda => match matter.trial(id, "cudnn=off") {
            Some(Trial::Ran { same_at_fault: false, .. }) => Computed::GpuLibrary,
            _ if super::bounds::row(kind).blas => Computed::GpuLibrary,
            _ => Computed::Framework,
        },
        Family::Ort => Computed::OnnxRuntime,
        Family::GpuLibrary => Computed::GpuLibrary,
        _ => Computed::Framework,
    }
}
