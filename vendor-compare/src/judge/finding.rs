//! What is found about one executor: a cause, its grade, and the sentence.

use ulpian_spec::verdict::{Cause, Grade};

/// A finding about one executor.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Finding {
    /// Who is to blame.
    pub cause: Cause,
    /// How sure.
    pub grade: Grade,
    /// Counts toward the case's verdict as it is; otherwise as rounding. A result that is nearer to the exact chain than
    /// rounding every op allows differs for a reason, and nobody is worse off.
    pub counts: bool,
    /// The sentence, without a final full stop.
    pub because: String,
    /// Node, result and element where it shows most.
    pub at: Option<(usize, usize, usize)>,
    /// Share of the bound, or another figure that grows with the error, to choose among equals.
    pub severity: f64,
}

impl Finding {
    /// The cause as it counts for the case.
    pub(super) fn weight(&self) -> Cause {
        if self.counts { self.cause } else { Cause::Rounding }
    }

    /// Order of gravity. Nothing to blame first: agreement, rounding, conditioning; then what the documentation leaves open;
    /// what the evidence leaves open; a fault with a name (framework, vendor and hardware are equals, the surer and then the
    /// larger counts); a defect.
    pub(super) fn gravity(&self) -> (u8, Grade, f64) {
        let class = match self.weight() {
            Cause::Agree => 0,
            Cause::Rounding => 1,
            Cause::Conditioning => 2,
            Cause::Unspecified => 3,
            Cause::Inconclusive => 4,
            Cause::Framework | Cause::Vendor | Cause::Hardware => 5,
            Cause::Defect => 6,
        };
        // In whole powers of two: among much the same errors the party heard first counts.
        (class, self.grade, if self.severity.is_nan() { f64::INFINITY } else { self.severity.log2().floor() })
    }
}

/// The gravest finding and its position; the earlier of equals.
pub(super) fn gravest<'a>(findings: impl Iterator<Item = &'a Finding>) -> Option<(usize, &'a Finding)> {
    findings.enumerate().fold(None, |best: Option<(usize, &Finding)>, (i, f)| match best {
        Some((_, b)) if f.gravity().partial_cmp(&b.gravity()) != Some(std::cmp::Ordering::Greater) => best,
        _ => Some((i, f)),
    })
}

/// A figure with three significant digits.
pub(super) fn figure(x: f64) -> String {
    if x.is_nan() {
        return "NaN".to_owned();
    }
    if x.is_infinite() {
        return if x > 0.0 { "inf".to_owned() } else { "-inf".to_owned() };
    }
    let size = x.abs();
    if size == 0.0 {
        "0".to_owned()
    } else if (1e-3..1e5).contains(&size) {
        let decimals = (2 - size.log10().floor() as i32).max(0) as usize;
        let text = format!("{x:.decimals$}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    } else {
        let text = format!("{x:.2e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        format!("{}e{exponent}", digits.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// A value as it is seen: enough digits to tell float32 neighbours apart.
pub(super) fn value(x: f64) -> String {
    if x.is_nan() {
        return "NaN".to_owned();
    }
    if x.is_infinite() {
        return if x > 0.0 { "inf".to_owned() } else { "-inf".to_owned() };
    }
    let size = x.abs();
    if x == 0.0 || (1e-4..1e10).contains(&size) {
        let text = format!("{x:.*}", (8 - size.max(1e-4).log10().floor() as i32).clamp(0, 12) as usize);
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    } else {
        format!("{x:.6e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(cause: Cause, grade: Grade, severity: f64) -> Finding {
        Finding { cause, grade, counts: true, because: String::new(), at: None, severity }
    }

    #[test]
    fn a_defect_outweighs_a_fault_and_the_surer_fault_the_larger() {
        let order = [
            finding(Cause::Agree, Grade::ConfirmedBitwise, 0.0),
            finding(Cause::Rounding, Grade::Consistent, 0.1),
            finding(Cause::Conditioning, Grade::Consistent, 0.1),
            finding(Cause::Unspecified, Grade::Consistent, 0.0),
            finding(Cause::Inconclusive, Grade::Consistent, 9.0),
            finding(Cause::Vendor, Grade::Consistent, 9.0),
            finding(Cause::Framework, Grade::ConfirmedByIntervention, 2.0),
            finding(Cause::Hardware, Grade::ConfirmedByIntervention, 4.0),
            finding(Cause::Defect, Grade::Consistent, 1.0),
        ];
        for pair in order.windows(2) {
            assert!(pair[0].gravity() < pair[1].gravity(), "{pair:?}");
        }
        assert_eq!(gravest(order.iter()).map(|(i, _)| i), Some(8));
        let alike = [2.0, 3.0].map(|severity| finding(Cause::Vendor, Grade::Consistent, severity));
        assert_eq!(gravest(alike.iter()).map(|(i, _)| i), Some(0), "the first of much the same errors");
        let lawful = Finding { counts: false, ..order[7].clone() };
        assert_eq!(lawful.weight(), Cause::Rounding);
    }

    #[test]
    fn figures_have_three_digits() {
        for (x, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (0.123456, "0.123"),
            (12345.6, "12346"),
            (1.5e-7, "1.5e-7"),
            (2.0e9, "2e9"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(figure(x), text);
        }
        assert_eq!(value(15.2355213), "15.2355213");
        assert_eq!(value(-1.4901161e-6), "-1.490116e-6");
    }
}
