//! What one element adds to the distances.

use ulpian_reference::round;
use ulpian_spec::dtype::FloatFormat;
use ulpian_spec::{Enclosure, HostTensor};

use super::Measured;

/// A floating-point truth and the levels of error around it.
pub(super) struct Comparison<'a> {
    pub(super) truth: &'a Enclosure,
    /// The truth's dtype.
    pub(super) format: FloatFormat,
    /// Of a correct implementation, by element.
    pub(super) worst: &'a [f64],
    /// What is usual, by element.
    pub(super) usual: &'a [f64],
    /// The rounding of a result that is added to both: relative and absolute.
    pub(super) rounding: [f64; 2],
}

impl<'a> Comparison<'a> {
    /// With `widen`, the rounding of the result is added to both levels.
    pub(super) fn new(
        truth: &'a Enclosure,
        [worst, usual]: [&'a [f64]; 2],
        format: FloatFormat,
        widen: bool,
    ) -> Comparison<'a> {
        let rounding = if widen {
            [format.unit_roundoff(), round::exp2i(i64::from(format.least_exponent()) - 1)]
        } else {
            [0.0, 0.0]
        };
        Comparison { truth, format, worst, usual, rounding }
    }

    /// Adds element `i`: `g` beside the correctly rounded `v`.
    pub(super) fn element(&self, m: &mut Measured, i: usize, g: f64, v: f64) {
        let truth = self.truth;
        let center = truth.center[i];
        let (worst, usual) = if center.is_finite() {
            let [u, eta] = self.rounding;
            (self.worst[i] + u * center.abs() + eta, self.usual[i] + u * center.abs() + eta)
        } else {
            (0.0, 0.0)
        };
        if center.is_finite() {
            m.greatest = m.greatest.max(center.abs());
        }
        let same = g == v || (g.is_nan() && v.is_nan());
        if same && g.is_sign_negative() != v.is_sign_negative() && g == 0.0 {
            if !truth.zero_sign_is_free {
                m.class_mismatches += 1;
                m.sign_mismatches += 1;
                m.exact = false;
            }
        } else if !same {
            m.exact = false;
            if g.is_nan() || v.is_nan() || g.is_infinite() || v.is_infinite() {
                m.class_mismatches += 1;
                // The real value is finite, and the bound reaches the other class.
                let reaches = center.is_finite() && center.abs() + worst >= round::max_finite(self.format);
                let excused = worst == f64::INFINITY
                    || (reaches && !g.is_nan() && g.is_sign_negative() == center.is_sign_negative());
                if excused {
                    m.excused += 1;
                } else {
                    m.first_fault = Some(m.first_fault.map_or(i, |f| f.min(i)));
                }
                return;
            }
        }
        if !g.is_finite() || !center.is_finite() {
            return;
        }
        let error = ((g - center) - truth.low_at(i)).abs();
        let unit = round::ulp(self.format, center);
        let decided = same || truth.undecided.binary_search(&i).is_err();
        m.abs.raise(error, i);
        if center != 0.0 {
            m.rel.raise(error / center.abs(), i);
        }
        if same {
            m.ulp.raise((error / unit).min(0.5), i);
            m.ratio.raise(share(error, worst).min(1.0), i);
            return;
        }
        m.ulp.raise(if decided { (error / unit).max(0.5) } else { error / unit }, i);
        m.ratio.raise(share(error, worst), i);
        let (least, most) = certain(error, truth.radius[i]);
        if least > worst {
            m.beyond += 1;
        } else if most > worst {
            m.doubtful += 1;
        }
        m.unusual += usize::from(least > usual);
    }
}

/// Adds element `i` of integers or bool: compared as integers, for float64 may not tell neighbours apart.
pub(super) fn of_integers(
    m: &mut Measured,
    got: &HostTensor,
    truth: &Enclosure,
    [worst, usual]: [&[f64]; 2],
    i: usize,
) {
    let distance = match (got.get_i64(i), truth.value.get_i64(i)) {
        (Some(g), Some(t)) => g.abs_diff(t) as f64,
        _ => f64::INFINITY,
    };
    let (center, allowed) = (truth.center[i].abs(), worst[i]);
    m.greatest = m.greatest.max(center);
    m.ulp.raise(distance, i);
    m.abs.raise(distance, i);
    if center != 0.0 {
        m.rel.raise(distance / center, i);
    }
    m.ratio.raise(share(distance, allowed), i);
    m.exact &= distance == 0.0;
    m.beyond += usize::from(distance > allowed);
    m.unusual += usize::from(distance > usual[i].max(allowed));
}

/// `error / bound`; 0 for no error.
#[inline(always)]
pub(super) fn share(error: f64, bound: f64) -> f64 {
    if error == 0.0 { 0.0 } else { error / bound }
}

/// The least and the greatest error that a truth of this radius leaves open.
#[inline(always)]
pub(super) fn certain(error: f64, radius: f64) -> (f64, f64) {
    ((error - radius) * (1.0 - 1e-15), (error + radius) * (1.0 + 1e-15))
}
