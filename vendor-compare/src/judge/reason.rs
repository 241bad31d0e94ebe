//! From a matter and what was tried to a finding.

use ulpian_reference::replay::Blame;
use ulpian_spec::tensor::unravel;
use ulpian_spec::verdict::{Cause, Grade};
use ulpian_spec::{Case, DType, ExecutorId, ValueRef};

use super::finding::{Finding, figure, value};
use super::interventions::{Family, switch_name};
use super::local::{AtNode, Heard};
use super::matter::{Computed, Matter, Trial, computed_by};
use super::metrics::Measured;
use super::overflow;
use super::standing::{self, Standing, is_exact_op};

/// Everything about one executor at one node that a finding needs.
pub(super) struct View<'a> {
    pub case: &'a Case,
    pub id: &'a ExecutorId,
    pub heard: &'a Heard,
    pub node: usize,
    pub output: usize,
    pub standing: Standing,
    pub matter: Option<&'a Matter>,
}

impl View<'_> {
    fn at(&self) -> &AtNode {
        &self.heard.nodes[self.node]
    }

    fn dtype(&self) -> DType {
        self.case.nodes[self.node].types[self.output].dtype
    }

    fn name(&self) -> String {
        self.case.result_name(ValueRef::Node { node: self.node, output: self.output })
    }

    /// The distances to speak of: local where known, otherwise from the chain's truth.
    fn measured(&self) -> Option<&Measured> {
        let at = self.at();
        at.settled[self.output].as_ref().or(at.accumulated[self.output].as_ref())
    }

    fn finding(&self, cause: Cause, grade: Grade, because: String) -> Finding {
        let m = self.measured();
        let severity = m.map_or(0.0, |m| if m.within() { m.ratio.value } else { m.ratio.value.max(1.0) });
        let severity =
            if m.is_some_and(|m| m.class_faults() > 0 || m.type_differs) { f64::INFINITY } else { severity };
        Finding {
            cause,
            grade,
            counts: true,
            because,
            at: m.map(|m| (self.node, self.output, m.shows_at())),
            severity,
        }
    }

    /// "EXECUTOR returns 5 at conv[0, 0] where 11 is right, 1.2e7 ulp off and 9.1e6 times what a correct implementation may lose".
    fn complaint(&self) -> String {
        let at = self.at();
        let (Some(m), Some(got)) = (self.measured(), at.results[self.output].as_ref()) else {
            return format!("{}'s {} is wrong", self.id, self.name());
        };
        let truth = match (
            &at.local,
            self.heard.chain.real.get(&ValueRef::Node { node: self.node, output: self.output }),
        ) {
            (Some(local), _) => &local.truth[self.output],
            (None, Some(real)) => real,
            (None, None) => return format!("{}'s {} is wrong", self.id, self.name()),
        };
        if m.type_differs {
            return format!(
                "{}'s {} is a {} where the op gives {}",
                self.id,
                self.name(),
                got.tensor_type(),
                truth.tensor_type()
            );
        }
        if m.within() && m.sign_mismatches > 0 {
            return format!(
                "{}'s {} has {} zeros of the other sign",
                self.id,
                self.name(),
                m.sign_mismatches
            );
        }
        let index = m.shows_at();
        let place = format!("{}{:?}", self.name(), unravel(index, got.shape()));
        let head = format!(
            "{} returns {} at {place} where {} is right",
            self.id,
            value(got.get_f64(index)),
            value(truth.value.get_f64(index))
        );
        if m.class_faults() > 0 {
            return match m.class_faults() {
                1 => head,
                n => format!("{head} ({n} elements of another class)"),
            };
        }
        let times = if m.ratio.value.is_finite() {
            format!("{} times what a correct implementation may lose", figure(m.ratio.value))
        } else {
            "where nothing may be lost".to_owned()
        };
        format!("{head}, at worst {} ulp off and {times}", figure(m.ulp.value))
    }

    /// The cause of a result whose bits a weak formula gives, or whose error a switch makes vanish.
    fn who(&self, matter: &Matter) -> (Cause, &'static str) {
        let kind = self.case.nodes[self.node].op.kind();
        match computed_by(matter, self.id, kind, self.dtype()) {
            Computed::Framework => (Cause::Framework, "PyTorch's own kernel"),
            Computed::OneDnn => (Cause::Vendor, "oneDNN, since the bits change without it"),
            Computed::Nnpack => (
                Cause::Vendor,
                "NNPACK, which PyTorch asks for convolutions of 16 images or more where oneDNN is off",
            ),
            Computed::Blas => (Cause::Vendor, "the BLAS below PyTorch, since oneDNN does not compute it"),
            Computed::GpuLibrary => (Cause::Vendor, "the GPU vendor's library"),
            Computed::OnnxRuntime => (Cause::Vendor, "ONNX Runtime's kernel"),
        }
    }
}

/// The finding at one node; `None` where there is nothing to say.
pub(super) fn find(view: &View<'_>) -> Option<Finding> {
    let at = view.at();
    if let Some(oddity) = &at.oddity {
        let because = format!("{} at {}: {oddity}", view.id, view.case.nodes[view.node].id);
        let mut finding = view.finding(Cause::Defect, Grade::Consistent, because);
        finding.severity = f64::INFINITY;
        return Some(finding);
    }
    match view.standing {
        Standing::Silent => None,
        Standing::Exact => Some(view.finding(
            Cause::Agree,
            Grade::ConfirmedBitwise,
            format!("{} returns the correctly rounded value of every element of {}", view.id, view.name()),
        )),
        Standing::Open => Some(open(view)),
        Standing::Fused => Some(fused(view)),
        Standing::Negligible => Some(negligible(view)),
        Standing::Doubtful => Some(doubtful(view)),
        Standing::Usual | Standing::Unusual => Some(match convicted(view) {
            Some(finding) => finding,
            None => within(view),
        }),
        Standing::Wrong => Some(wrong(view)),
    }
}

/// A weak formula's very bits.
fn convicted(view: &View<'_>) -> Option<Finding> {
    let matter = view.matter?;
    let replay = matter.bitwise(view.at())?;
    let h = replay.hypothesis;
    if h.blame == Blame::Nobody && view.standing != Standing::Wrong {
        return None;
    }
    let (cause, code) = match h.blame {
        Blame::Hardware => (Cause::Hardware, ""),
        Blame::Framework | Blame::Nobody => match view.who(matter) {
            (cause, code) if Family::of(view.id) != Family::Recorded => (cause, code),
            (cause, _) => (cause, ""),
        },
    };
    let m = view.measured()?;
    let better = if view.standing == Standing::Wrong {
        String::new()
    } else {
        format!(
            "; the worst case would allow it, but a sound computation loses only {} here where this loses {}",
            figure(matter.sound_error(view.at(), m)),
            figure(m.abs.value)
        )
    };
    let code = if code.is_empty() { String::new() } else { format!(", computed by {code}") };
    let overflow = (view.standing == Standing::Wrong && view.output == 0)
        .then(|| overflow::intermediate(view.at(), m.shows_at()))
        .flatten()
        .map_or_else(String::new, |o| format!(" ({o})"));
    let because =
        format!("{}{overflow}: the result is bit for bit that of {}{code}{better}", view.complaint(), h.what);
    Some(view.finding(cause, Grade::ConfirmedBitwise, because))
}

fn wrong(view: &View<'_>) -> Finding {
    let m = view.measured();
    if m.is_some_and(|m| m.type_differs) {
        return view.finding(Cause::Defect, Grade::Consistent, view.complaint());
    }
    if let Some(finding) = convicted(view) {
        return finding;
    }
    let kind = view.case.nodes[view.node].op.kind();
    if is_exact_op(kind, view.dtype()) {
        let because = format!("{}: no rounding, order or arithmetic explains it", view.complaint());
        return view.finding(Cause::Defect, Grade::Consistent, because);
    }
    let at = view.at();
    let index = m.map_or(0, Measured::shows_at);
    let overflow = if view.output == 0 { overflow::intermediate(at, index) } else { None };
    let why = overflow.map_or_else(String::new, |o| format!(" ({o})"));
    if overflow::subnormals_flushed(at, view.output) {
        let because =
            format!("{}: every element that is off is a subnormal number returned as zero", view.complaint());
        return view.finding(Cause::Hardware, Grade::Consistent, because);
    }
    let Some(matter) = view.matter else {
        return unexplained(view, overflow);
    };
    if let Some(switch) = matter.vanishes_under(view.id) {
        let (cause, code) = view.who(matter);
        let name = switch_name(view.id, switch);
        let cause = if name == "tf32=off" { Cause::Hardware } else { cause };
        let code = if cause == Cause::Hardware { "TF32 arithmetic" } else { code };
        let because =
            format!("{}{why}: {name} makes it vanish, so it is the doing of {code}", view.complaint());
        return view.finding(cause, Grade::ConfirmedByIntervention, because);
    }
    match Family::of(view.id) {
        Family::TorchCpu | Family::TorchCuda | Family::Ort | Family::GpuLibrary => {
            let (cause, code) = view.who(matter);
            let ran = matter.trials.iter().filter(|(_, t)| matches!(t, Trial::Ran { .. })).count();
            let tried = match ran {
                0 => String::new(),
                1 => ", and the switch that was thrown does not mend it".to_owned(),
                n => format!(", and none of {n} switches mends it"),
            };
            let because = format!("{}{why}: it is computed by {code}{tried}", view.complaint());
            view.finding(cause, Grade::Consistent, because)
        }
        Family::Recorded => match matter.same_bits_as() {
            Some(same) => {
                let changed = matter.trials.iter().any(|(e, t)| {
                    e.key("mkldnn").is_some() && matches!(t, Trial::Ran { same_bits: false, .. })
                });
                let (cause, code) = match same.family.as_str() {
                    "ort" => (Cause::Vendor, "ONNX Runtime's kernel"),
                    _ if same.key("mkldnn").is_none() && changed => {
                        (Cause::Vendor, "oneDNN, since they change without it")
                    }
                    _ if standing::has_blas(kind, view.dtype()) => (Cause::Vendor, "the BLAS below PyTorch"),
                    _ => (Cause::Framework, "PyTorch's own kernel"),
                };
                let because = format!(
                    "{}{why}: {same} returns the very bits here, computed by {code}",
                    view.complaint()
                );
                view.finding(cause, Grade::ConfirmedBitwise, because)
            }
            None => unexplained(view, overflow),
        },
        Family::GpuNative | Family::Replay | Family::Other => unexplained(view, overflow),
    }
}

/// Nothing that was tried explains it: an overflow that can be shown, an arithmetic of reduced precision that would be
/// enough, or neither.
fn unexplained(view: &View<'_>, overflow: Option<&'static str>) -> Finding {
    if let Some(what) = overflow {
        let because = format!("{}: {what} where the exact result does not", view.complaint());
        return view.finding(Cause::Framework, Grade::Consistent, because);
    }
    if view.at().local.is_none() {
        let because = format!(
            "{} against the whole chain, and the inputs it had were not observed; observe the results of the earlier nodes",
            view.complaint()
        );
        return view.finding(Cause::Inconclusive, Grade::Consistent, because);
    }
    if reduced_precision_suffices(view) {
        let because = format!(
            "{}: an arithmetic of reduced precision or another formula may lose that much, and no replay returns the bits; \
             which library, algorithm and switches computed it is missing",
            view.complaint()
        );
        return view.finding(Cause::Inconclusive, Grade::Consistent, because);
    }
    let elsewhere = view
        .matter
        .and_then(|m| m.right_elsewhere(view.id))
        .map_or_else(String::new, |e| format!(", and {e} is right on the same inputs"));
    let because = format!("{}: no rounding, order or arithmetic explains it{elsewhere}", view.complaint());
    view.finding(Cause::Defect, Grade::Consistent, because)
}

/// Could operands or intermediates of 8 bits of precision, or a formula that loses the condition number twice, explain it?
/// At the element of the worst share of the bound and at the one furthest off.
fn reduced_precision_suffices(view: &View<'_>) -> bool {
    let at = view.at();
    let (Some(m), Some(local)) = (&at.settled[view.output], &at.local) else {
        return false;
    };
    if m.class_faults() > 0 {
        return false;
    }
    let (truth, levels) = (&local.truth[view.output], &local.levels[view.output]);
    let u = super::bounds::Arithmetic::of(view.dtype()).u;
    let Some(got) = &at.results[view.output] else { return false };
    [m.ratio.index, m.abs.index].into_iter().filter(|&i| i < truth.len()).all(|i| {
        let error = (got.get_f64(i) - truth.center[i]).abs();
        let condition = levels.scale[i] / truth.center[i].abs().max(f64::MIN_POSITIVE);
        error <= levels.scale[i] * (1.0 / 64.0 + 8.0 * u * levels.terms.sqrt() * condition.min(1.0 / u))
    })
}

fn open(view: &View<'_>) -> Finding {
    let at = view.at();
    let because = match at.open.iter().find(|o| o.allowed) {
        Some(o) => {
            let got = at.results[o.output].as_ref().map_or(f64::NAN, |r| r.get_f64(o.index));
            format!(
                "{} returns {} for {}, and the documentation leaves that open: {}",
                view.id,
                value(got),
                o.row.what,
                o.row.reason
            )
        }
        None => {
            let n = view.measured().map_or(0, |m| m.sign_mismatches);
            format!(
                "{}'s {} differs in the sign of {n} zeros alone: {}",
                view.id,
                view.name(),
                super::unspecified::SIGN_OF_ZERO
            )
        }
    };
    let mut finding = view.finding(Cause::Unspecified, Grade::Consistent, because);
    if let Some(o) = at.open.iter().find(|o| o.allowed) {
        finding.at = Some((view.node, o.output, o.index));
    }
    finding
}

fn fused(view: &View<'_>) -> Finding {
    let real = view.heard.chain.real.get(&ValueRef::Node { node: view.node, output: view.output });
    let exact = view.at().accumulated[view.output].as_ref().is_some_and(|m| m.exact)
        && real.is_some_and(|real| real.undecided.is_empty());
    let contraction = super::replays::contraction(view.case, view.heard, view.node);
    let (grade, how) = match contraction {
        Some(c) => (Grade::ConfirmedBitwise, format!("its bits are those of {}", c.what)),
        None if exact => (Grade::ConfirmedBitwise, "it is the exact chain rounded once".to_owned()),
        None => {
            (Grade::Consistent, "it keeps to one op's bound on operands that were never rounded".to_owned())
        }
    };
    let because = format!(
        "{}'s {} keeps the earlier result in wider precision (contraction): {how}, nearer to the truth than rounding op by op allows",
        view.id,
        view.name()
    );
    Finding { counts: false, ..view.finding(Cause::Hardware, grade, because) }
}

fn negligible(view: &View<'_>) -> Finding {
    let m = view.measured();
    let because = format!(
        "{}'s {} loses up to {} times its bound at elements near 0, at most {} roundings of its largest element, and every output of \
         the case stays within what correct ops may lose together",
        view.id,
        view.name(),
        figure(m.map_or(0.0, |m| m.ratio.value)),
        figure(m.map_or(0.0, |m| standing::normwise(m, view.dtype())))
    );
    let mut finding = view.finding(Cause::Rounding, Grade::Consistent, because);
    finding.severity = 1.0;
    finding
}

fn doubtful(view: &View<'_>) -> Finding {
    let because = format!(
        "{}'s {} may or may not be within the bound: the truth's own radius leaves {} elements open; a case of fewer terms or of smaller magnitudes narrows it",
        view.id,
        view.name(),
        view.measured().map_or(0, |m| m.doubtful)
    );
    view.finding(Cause::Inconclusive, Grade::Consistent, because)
}

/// Within the bound, and nothing convicts: rounding or conditioning.
fn within(view: &View<'_>) -> Finding {
    let Some(m) = view.measured() else {
        return view.finding(Cause::Rounding, Grade::Consistent, format!("{} keeps to the bound", view.id));
    };
    let sound = view.matter.and_then(|matter| {
        matter.replays.iter().find(|r| r.same_bits && r.hypothesis.blame == Blame::Nobody)
    });
    let (grade, bits) = match sound {
        Some(r) => (Grade::ConfirmedBitwise, format!(", and its bits are those of {}", r.hypothesis.what)),
        None => (Grade::Consistent, String::new()),
    };
    let off = format!(
        "{}'s {} is at worst {} ulp off, {} of what a correct implementation may lose",
        view.id,
        view.name(),
        figure(m.ulp.value),
        figure(m.ratio.value)
    );
    if let Some(finding) =
        super::conditioning::find(view.case, view.id, view.heard, view.node, view.output, grade, &bits)
    {
        return Finding { severity: m.ratio.value, ..finding };
    }
    let unusual = if view.standing == Standing::Unusual && sound.is_none() {
        " (more than usual, which the worst case allows: an unlucky order of summation can do that, and so can another formula)"
    } else {
        ""
    };
    view.finding(Cause::Rounding, grade, format!("{off}{unusual}{bits}"))
}
