//! What any correct implementation may lose: an a-priori bound per element, one row per op.
//!
//! The documented precision is PyTorch's: float64 computes in float64; float32, float16 and bfloat16 compute in float32, and
//! the 16-bit results are rounded once at the end. A bound holds for every order of a sum and with or without FMA.
//!
//! u is the unit roundoff of the arithmetic computed in (2^-53, 2^-24), u_out that of the result's dtype, and
//! gamma_n = n u / (1 - n u) (Higham, Accuracy and Stability of Numerical Algorithms, Lemma 3.1). Every bound is computed in
//! float64 and widened by 2^-40 of itself, more than its own few roundings over at most 2^12 nested operations lose; the
//! sums inside are of terms that are not negative, whose relative error in any order is below n 2^-53.
//!
//! Three figures per element:
//! - `worst`: no correct implementation exceeds it. It acquits; it cannot convict where a term of it is conditioning.
//! - `usual`: what careful implementations stay below on ordinary data. Beyond it an explanation is looked for.
//! - `scale`: the condition number times |y|: an input perturbed by a relative e moves the result by up to about e * scale. It
//!   bounds that from above and may be 1e-3 of itself too large (see `products`); what it is compared with is known to a factor
//!   of two at best.

mod adaptive_avg_pool2d;
mod add;
mod arithmetic;
mod batch_norm;
mod conv2d;
mod div;
mod dropout;
mod flatten;
mod gelu;
mod layer_norm;
mod linear;
mod matmul;
mod max_pool2d;
mod mul;
mod operand;
mod parts;
mod products;
mod relu;
mod softmax;

pub(super) use arithmetic::Arithmetic;
pub(super) use operand::{Broadcast, Operand};
use std::sync::Arc;

use ulpian_spec::{Enclosure, Op, OpKind, for_each_op};

/// The figures of one result of an op, by element.
#[derive(Debug, Clone, Default)]
pub(super) struct Levels {
    /// Worst absolute error of a correct implementation.
    pub worst: Vec<f64>,
    /// Usual absolute error; `None` where it is the worst.
    usual: Option<Vec<f64>>,
    /// Condition number times |y|.
    pub scale: Vec<f64>,
    /// Number of terms that are summed into one element.
    pub terms: f64,
}

impl Levels {
    /// The same error allowed as worst and as usual.
    fn plain(worst: Vec<f64>, scale: Vec<f64>) -> Levels {
        Levels { worst, usual: None, scale, terms: 1.0 }
    }

    /// Nothing may be lost of the values themselves, and `worst` of what they came from.
    fn exact(y: &Enclosure, worst: Option<Vec<f64>>) -> Levels {
        let [scale] = parts::by_element(y.len(), |i| [y.center[i].abs()]);
        let none = || vec![0.0; y.len()];
        match worst {
            Some(worst) => Levels { worst, usual: Some(none()), scale, terms: 1.0 },
            None => Levels::plain(none(), scale),
        }
    }

    /// Usual absolute error, by element.
    pub(super) fn usual(&self) -> &[f64] {
        self.usual.as_deref().unwrap_or(&self.worst)
    }
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The op.
    pub kind: OpKind,
    /// The bound, as a formula.
    pub bound: &'static str,
    /// Why no correct implementation exceeds it.
    pub reason: &'static str,
    /// A BLAS below PyTorch computes it where oneDNN does not.
    pub blas: bool,
}

macro_rules! define_table {
    ($(($variant:ident, $stem:ident, [$($alias:literal),*]),)*) => {
        /// The table, in the order of the list of ops.
        pub const TABLE: &[Row] = &[$($stem::ROW),*];

        /// The row of an op.
        pub(super) fn row(kind: OpKind) -> &'static Row {
            match kind { $(OpKind::$variant => &$stem::ROW,)* }
        }

        /// The figures of every result of a call. `truth` holds its exact results; an operand's `error` says how far its
        /// values may be from those the result is compared for.
        pub(super) fn levels(op: &Op<&Operand<'_>>, truth: &[Arc<Enclosure>]) -> Vec<Levels> {
            match op { $(Op::$variant(args) => $stem::levels(args, truth),)* }
        }
    };
}
for_each_op!(define_table);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_op_has_a_row_with_a_reason() {
        assert_eq!(TABLE.len(), OpKind::ALL.len());
        for (row, &kind) in TABLE.iter().zip(OpKind::ALL) {
            assert_eq!(row.kind, kind);
            assert!(!row.bound.is_empty() && row.reason.len() > 20, "{kind} lacks a bound or its reason");
        }
    }
}
