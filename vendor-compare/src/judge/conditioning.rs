//! Errors that the inputs amplify.
//!
//! A large relative error at an element near 0 is no news: every sum of terms of both signs has such elements. An error is
//! put down to conditioning where it is large against the largest element of the result, more than max(8, sqrt(K)) roundings
//! of it, and either
//! - the op's own condition number explains it: the error is at most 4 u scale, so that changing each input in its last
//!   places would do the same; or
//! - most of it came in with the inputs: it is 8 times the op's own error at least.

use ulpian_spec::verdict::{Cause, Grade};
use ulpian_spec::{Case, ExecutorId, ValueRef};

use super::bounds::Arithmetic;
use super::finding::{Finding, figure};
use super::local::Heard;
use super::standing::{normwise, small};

/// Least condition number that is worth naming.
const NAMED: f64 = 16.0;

/// The finding, where the error of result `output` of `node` is amplified.
pub(super) fn find(
    case: &Case,
    id: &ExecutorId,
    heard: &Heard,
    node: usize,
    output: usize,
    grade: Grade,
    bits: &str,
) -> Option<Finding> {
    let at = &heard.nodes[node];
    let (local, m) = (at.local.as_ref()?, at.settled[output].as_ref()?);
    let dtype = local.truth[output].value.dtype();
    let (truth, levels) = (&local.truth[output], &local.levels[output]);
    let name = case.result_name(ValueRef::Node { node, output });
    let accumulated = at.accumulated[output].as_ref().filter(|a| a.class_faults() == 0 && !a.type_differs);
    let source = source(case, heard, node);

    let a = Arithmetic::of(dtype);
    if normwise(m, dtype) > small(levels.terms) {
        let i = m.abs.index;
        let condition = levels.scale[i] / truth.center[i].abs().max(f64::MIN_POSITIVE);
        if condition >= NAMED && m.abs.value <= 4.0 * a.u_out * levels.scale[i] {
            let came_in = match (accumulated, &source) {
                (Some(total), Some((s, size))) => format!(
                    ", and it amplifies what {s} leaves ({} roundings of its largest element): {} against the exact chain",
                    figure(*size),
                    figure(total.abs.value)
                ),
                _ => String::new(),
            };
            let because = format!(
                "{name} has condition number {} at its worst element: {id} is off by {} ({} ulp), which rounding the inputs alone \
                 would explain{came_in}{bits}",
                figure(condition),
                figure(m.abs.value),
                figure(m.ulp.value)
            );
            return Some(finding(grade, because, (node, output, i)));
        }
    }
    let total = accumulated?;
    if normwise(total, dtype) > small(levels.terms)
        && total.abs.value >= 8.0 * m.abs.value
        && !is_ideal(heard)
    {
        let i = total.abs.index;
        let condition = levels.scale[i] / truth.center[i].abs().max(f64::MIN_POSITIVE);
        let (s, size) = source?;
        let because = format!(
            "{name} amplifies what came in (condition number {}): {id} is off by {} ({} ulp) from the exact chain there, of which its own \
             {name} makes {} and what {s} leaves ({} roundings of its largest element) the rest{bits}",
            figure(condition),
            figure(total.abs.value),
            figure(total.ulp.value),
            figure(m.abs.value),
            figure(size)
        );
        return Some(finding(grade, because, (node, output, i)));
    }
    None
}

fn finding(grade: Grade, because: String, at: (usize, usize, usize)) -> Finding {
    Finding { cause: Cause::Conditioning, grade, counts: true, because, at: Some(at), severity: 0.0 }
}

/// Is every result the exact one of its inputs? Then rounding op by op is all there is.
fn is_ideal(heard: &Heard) -> bool {
    heard.nodes.iter().flat_map(|n| &n.settled).all(|m| m.as_ref().is_none_or(|m| m.exact))
}

/// The earlier node that the node depends on with the largest error of its own, and that error in roundings of its largest
/// element.
fn source(case: &Case, heard: &Heard, node: usize) -> Option<(String, f64)> {
    let mut reached = vec![false; case.nodes.len()];
    let mut pending = vec![node];
    while let Some(n) = pending.pop() {
        for (_, at) in case.nodes[n].op.operands() {
            if let ValueRef::Node { node: earlier, .. } = *at
                && !std::mem::replace(&mut reached[earlier], true)
            {
                pending.push(earlier);
            }
        }
    }
    let own = |n: usize| {
        let m = heard.nodes[n].settled.first()?.as_ref()?;
        (m.abs.value > 0.0).then(|| normwise(m, case.nodes[n].types[0].dtype))
    };
    (0..case.nodes.len())
        .filter(|&n| reached[n])
        .filter_map(|n| own(n).map(|size| (n, size)))
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(n, size)| (case.nodes[n].id.clone(), size))
}
