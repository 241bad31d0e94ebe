//! Where an executor stands at a node, before anything is explained.

use ulpian_spec::{Case, DType, Enclosure, OpKind, ValueRef};

use super::bounds::{self, Arithmetic};
use super::chain::Chain;
use super::local::{AtNode, Heard};
use super::metrics::{Measured, measure};
use super::unspecified::Openness;

/// From best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Standing {
    /// Nothing was observed here, or there is nothing to compare with.
    Silent,
    /// Correctly rounded.
    Exact,
    /// Within the usual error.
    Usual,
    /// Beyond the usual error and within the bound.
    Unusual,
    /// Right by one of several readings of the documentation, or but for the sign of a zero.
    Open,
    /// The truth's radius leaves open whether the bound is kept.
    Doubtful,
    /// Beyond the bound, or of another class, against the local truth; the chain's own truth is met within one op's bound.
    Fused,
    /// Beyond the bound at elements near 0, by little of the largest element, and not seen at the case's outputs.
    Negligible,
    /// Beyond the bound, or another class, shape or dtype.
    Wrong,
}

/// How many roundings of the largest element an error may be and still be small, for a sum of `terms`.
pub(super) fn small(terms: f64) -> f64 {
    terms.sqrt().max(8.0)
}

/// The worst absolute error in roundings (u_out times the largest element).
pub(super) fn normwise(m: &Measured, dtype: DType) -> f64 {
    let u = Arithmetic::of(dtype).u_out;
    if m.abs.value == 0.0 || u == 0.0 { 0.0 } else { m.abs.value / (u * m.greatest) }
}

/// Do bits have to match: is the bound 0?
pub(super) fn is_exact_op(kind: OpKind, dtype: DType) -> bool {
    !dtype.is_float() || matches!(kind, OpKind::Flatten | OpKind::Relu | OpKind::MaxPool2d)
}

/// The standing of one result against the local truth alone.
pub(super) fn of_result(m: &Measured, dtype: DType, terms: f64) -> Standing {
    if !m.within() {
        Standing::Wrong
    } else if m.doubtful > 0 {
        Standing::Doubtful
    } else if m.exact {
        Standing::Exact
    } else if m.sign_mismatches > 0 && m.class_mismatches == m.sign_mismatches && m.ulp.value <= 0.5 {
        Standing::Open
    } else if m.unusual > 0 || normwise(m, dtype) > small(terms) {
        Standing::Unusual
    } else {
        Standing::Usual
    }
}

/// The standing of an executor at a node and the result that decides it.
pub(super) fn of_node(case: &Case, heard: &Heard, node: usize) -> (Standing, usize) {
    let at = &heard.nodes[node];
    let mut worst = (Standing::Silent, 0);
    for (output, settled) in at.settled.iter().enumerate() {
        let standing = match (settled, &at.local, &at.accumulated[output]) {
            (Some(m), Some(local), _) => {
                let dtype = local.truth[output].value.dtype();
                match of_result(m, dtype, local.levels[output].terms) {
                    // A copy keeps the sign of a zero.
                    Standing::Open if case.nodes[node].op.kind() == OpKind::Flatten => Standing::Wrong,
                    Standing::Wrong if is_fused(case, heard, node, output, m.ratio.index) => Standing::Fused,
                    Standing::Wrong if is_negligible(case, heard, node, output, m, dtype) => {
                        Standing::Negligible
                    }
                    standing => standing,
                }
            }
            // Its inputs were not observed: all that can be said is how far it is from the chain.
            (_, _, Some(m)) => {
                let dtype = case.nodes[node].types[output].dtype;
                let terms = heard.chain.together[&ValueRef::Node { node, output }].terms;
                of_result(m, dtype, terms)
            }
            _ => continue,
        };
        worst = if standing > worst.0 || worst.0 == Standing::Silent { (standing, output) } else { worst };
    }
    let undefined = |o: &&super::unspecified::Open| {
        o.allowed && (o.row.openness == Openness::Undefined || differs(at, o))
    };
    if let Some(open) = at.open.iter().find(undefined)
        && worst.0 <= Standing::Usual
    {
        worst = (Standing::Open, open.output);
    }
    if at.oddity.is_some() {
        worst.0 = Standing::Wrong;
    }
    worst
}

/// Was an open element answered otherwise than the reference answers it?
fn differs(at: &AtNode, open: &super::unspecified::Open) -> bool {
    let (Some(Some(got)), Some(local)) = (at.results.get(open.output), &at.local) else {
        return false;
    };
    let truth = &local.truth[open.output].value;
    if got.tensor_type() != truth.tensor_type() {
        return false;
    }
    match (got.get_i64(open.index), truth.get_i64(open.index)) {
        (Some(a), Some(b)) => a != b,
        _ => {
            let (a, b) = (got.get_f64(open.index), truth.get_f64(open.index));
            a != b && !(a.is_nan() && b.is_nan())
        }
    }
}

/// Does every element keep to the op's own bound either against the local truth or against the chain's, on operands that
/// were never rounded? An implementation that keeps an intermediate in wider precision does. `worst` is the element that loses most
/// locally: where both truths are the same there, its operands were exact, and there was no precision to keep.
fn is_fused(case: &Case, heard: &Heard, node: usize, output: usize, worst: usize) -> bool {
    if Chain::is_first(case, node) {
        return false;
    }
    let at = ValueRef::Node { node, output };
    let (Some(Some(got)), Some(real)) = (heard.nodes[node].results.get(output), heard.chain.real.get(&at))
    else {
        return false;
    };
    let Some(levels) = heard.chain.levels(case, &heard.masks, node, false) else {
        return false;
    };
    let local = heard.nodes[node].local.as_ref().map(|local| &local.truth[output]);
    if local.is_some_and(|local| overlap(local, real, worst)) {
        return false;
    }
    let m = measure(got, real, &levels[output].worst, levels[output].usual(), true);
    m.within() && m.doubtful == 0
}

/// May both have the same real value at element `i`?
fn overlap(a: &Enclosure, b: &Enclosure, i: usize) -> bool {
    let (Some(&x), Some(&y)) = (a.center.get(i), b.center.get(i)) else { return false };
    let apart = ((x - y) + (a.low_at(i) - b.low_at(i))).abs();
    x == y || apart <= (a.radius[i] + b.radius[i]) * (1.0 + 4.0 * f64::EPSILON)
}

fn is_negligible(case: &Case, heard: &Heard, node: usize, output: usize, m: &Measured, dtype: DType) -> bool {
    let kind = case.nodes[node].op.kind();
    let own = |o: &ValueRef| matches!(o, ValueRef::Node { node: n, .. } if *n == node);
    !m.type_differs
        && m.class_faults() == 0
        && !case.outputs.iter().any(own)
        && !is_exact_op(kind, dtype)
        && output == 0
        && normwise(m, dtype) <= small(1.0)
        && case.outputs.iter().all(|o| match o {
            ValueRef::Node { node, output } => heard.nodes[*node]
                .accumulated
                .get(*output)
                .is_some_and(|a| a.as_ref().is_some_and(Measured::within)),
            ValueRef::Input(_) => true,
        })
}

/// Which vendor's BLAS computes the op where oneDNN does not, if one does.
pub(super) fn has_blas(kind: OpKind, dtype: DType) -> bool {
    bounds::row(kind).blas && matches!(dtype, DType::F32 | DType::F64)
}
