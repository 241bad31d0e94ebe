//! The truths of a whole case, and what correct implementations of its ops may lose together.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use ulpian_reference::{EvaluateError, Settings, enclose_real, evaluate_real};
use ulpian_spec::{Case, DType, Enclosure, HostTensor, ValueRef};

use super::bounds::{self, Arithmetic, Levels, Operand};

/// T1 of a case under given dropout masks.
pub(super) struct Chain {
    /// T1 by node result; undetermined results are absent.
    pub real: BTreeMap<ValueRef, Arc<Enclosure>>,
    /// Worst and usual error against T1 where every op keeps to its bound, by node result.
    pub together: BTreeMap<ValueRef, Arc<Levels>>,
}

/// The chain of a case for every party without dropout masks of its own.
pub(super) struct Shared {
    pub chain: Arc<Chain>,
    narrow: Option<Arc<Chain>>,
}

impl Shared {
    /// As [`Chain::of`].
    pub(super) fn of(case: &Case, settings: &Settings) -> Result<Shared, EvaluateError> {
        Ok(Shared { chain: Arc::new(Chain::of(case, &BTreeMap::new(), settings)?), narrow: None })
    }

    /// As [`Chain::narrow`].
    pub(super) fn narrow(&mut self, case: &Case, settings: &Settings) -> Result<Arc<Chain>, EvaluateError> {
        if let Some(narrow) = &self.narrow {
            return Ok(Arc::clone(narrow));
        }
        let narrow = Arc::new(Chain::narrow(case, &BTreeMap::new(), settings)?);
        self.narrow = Some(Arc::clone(&narrow));
        Ok(narrow)
    }
}

impl Chain {
    /// Evaluates the case, with wide enclosures where its results are of 32 or 16 bits.
    ///
    /// # Errors
    /// Those of the reference.
    pub(super) fn of(
        case: &Case,
        masks: &BTreeMap<usize, Arc<HostTensor>>,
        settings: &Settings,
    ) -> Result<Chain, EvaluateError> {
        // What the case says about its truth is about the rounded one.
        let says = case.expect.as_ref().is_some_and(|expect| !expect.truth.is_empty());
        if says || Chain::has_float64(case) {
            return Chain::narrow(case, masks, settings);
        }
        Ok(Chain::with(enclose_real(case, masks, settings)?, case, masks))
    }

    /// The same with narrow enclosures, for a result of which wide ones leave open whether it is beyond the bound.
    ///
    /// # Errors
    /// As [`Chain::of`].
    pub(super) fn narrow(
        case: &Case,
        masks: &BTreeMap<usize, Arc<HostTensor>>,
        settings: &Settings,
    ) -> Result<Chain, EvaluateError> {
        Ok(Chain::with(evaluate_real(case, masks, settings)?, case, masks))
    }

    /// Is a result a float64? Then no enclosure is wide.
    pub(super) fn has_float64(case: &Case) -> bool {
        case.nodes.iter().any(|node| node.types.iter().any(|ty| ty.dtype == DType::F64))
    }

    fn with(
        truth: BTreeMap<ValueRef, Enclosure>,
        case: &Case,
        masks: &BTreeMap<usize, Arc<HostTensor>>,
    ) -> Chain {
        let mut chain = Chain {
            real: truth.into_iter().map(|(at, e)| (at, Arc::new(e))).collect(),
            together: BTreeMap::new(),
        };
        for node in 0..case.nodes.len() {
            if let Some(levels) = chain.levels(case, masks, node, true) {
                for (output, levels) in levels.into_iter().enumerate() {
                    chain.together.insert(ValueRef::Node { node, output }, Arc::new(levels));
                }
            }
        }
        chain
    }

    /// Are all operands of the node the case's own tensors? Then its T1 is its T3 for everybody.
    pub(super) fn is_first(case: &Case, node: usize) -> bool {
        case.nodes[node].op.operands().iter().all(|(_, at)| matches!(at, ValueRef::Input(_)))
    }

    /// The levels of a node on the exact chain's own operands: with the errors that earlier nodes may have made where
    /// `carried`, as if they were exact otherwise. `None` where T1 is undetermined.
    pub(super) fn levels(
        &self,
        case: &Case,
        masks: &BTreeMap<usize, Arc<HostTensor>>,
        node: usize,
        carried: bool,
    ) -> Option<Vec<Levels>> {
        let truth: Vec<Arc<Enclosure>> = (0..case.nodes[node].types.len())
            .map(|output| self.real.get(&ValueRef::Node { node, output }).cloned())
            .collect::<Option<_>>()?;
        let mut op = case.nodes[node]
            .op
            .clone()
            .try_map(|_, at| match at {
                ValueRef::Input(i) => Ok(Operand::exact(&case.tensors[i].value)),
                at @ ValueRef::Node { .. } => {
                    let real = self.real.get(&at).ok_or(())?;
                    let error =
                        if carried { Some(Cow::Owned(self.carried(at, real).ok_or(())?)) } else { None };
                    Ok::<_, ()>(Operand {
                        shape: real.value.shape(),
                        dtype: real.value.dtype(),
                        values: Cow::Borrowed(&real.center),
                        error,
                    })
                }
            })
            .ok()?;
        if let (ulpian_spec::Op::Dropout(args), Some(mask)) = (&mut op, masks.get(&node)) {
            args.mask.get_or_insert(Operand::exact(mask));
        }
        Some(bounds::levels(&op.as_ref(), &truth))
    }

    /// What a stored result may differ from T1.
    fn carried(&self, at: ValueRef, real: &Enclosure) -> Option<Vec<f64>> {
        let a = Arithmetic::of(real.value.dtype());
        let worst = &self.together.get(&at)?.worst;
        let rounding = |c: f64| if c.is_finite() { a.u_out * c.abs() + a.eta_out } else { 0.0 };
        Some(worst.iter().zip(&real.center).map(|(w, &c)| w + rounding(c)).collect())
    }
}
