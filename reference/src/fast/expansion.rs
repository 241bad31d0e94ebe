//! The second tier of sums: single elements again, in three float64 words with a running certificate.
//!
//! Method: a cascade of TwoSum (Ogita, Rump, Oishi, SIAM J. Sci. Comput. 26 (2005), algorithm 4.8, SumK with K = 3, fed term
//! by term). Each word takes up the rounding errors of the word above; what the last word loses is added up in absolute
//! value. TwoSum is exact, so the sum of the terms is s0 + s1 + s2 up to that loss. Where it is zero the sum is exact, and
//! exact ties are decided.
//!
//! Bound: the loss is a sum of float64 absolute values; computed with n additions it is at least (1 - u)^n of the real one,
//! so (1 + 2^-20) covers n up to 2^32.

use ulpian_spec::dtype::FloatFormat;

use crate::eft::two_sum;
use crate::round::round_interval;

/// A sum of float64 terms: three words and a bound on what they lack.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Expansion {
    words: [f64; 3],
    loss: f64,
}

impl Expansion {
    /// Adds a term.
    #[inline(always)]
    pub(super) fn add(&mut self, term: f64) {
        let (s, e) = two_sum(self.words[0], term);
        self.words[0] = s;
        let (s, e) = two_sum(self.words[1], e);
        self.words[1] = s;
        let (s, e) = two_sum(self.words[2], e);
        self.words[2] = s;
        self.loss += e.abs();
    }

    /// The sum as hi + lo within a radius; hi = fl(hi + lo).
    pub(super) fn finish(self) -> (f64, f64, f64) {
        let [a, b, c] = self.words;
        let (hi, e) = two_sum(a, b);
        let (lo, e) = two_sum(e, c);
        let (hi, lo) = two_sum(hi, lo);
        (hi, lo, (self.loss + e.abs()) * (1.0 + 1.0 / f64::from(1 << 20)))
    }
}

/// A refined element: centre, low part, radius, and its rounding where that is decided.
pub(super) struct Refined {
    pub center: f64,
    pub low: f64,
    pub radius: f64,
    pub value: Option<f64>,
}

/// The sum of the terms, rounded to the format.
pub(super) fn refine(format: FloatFormat, terms: impl Iterator<Item = f64>) -> Refined {
    let mut sum = Expansion::default();
    terms.for_each(|t| sum.add(t));
    let (center, low, radius) = sum.finish();
    Refined { center, low, radius, value: round_interval(format, center, low, radius) }
}
