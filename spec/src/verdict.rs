//! The machine output of `truth` and `judge` (`ulpian-verdict/1`), typed in one place.

use serde::{Deserialize, Serialize};

/// The `format` of [`CaseVerdict`].
pub const VERDICT_FORMAT: &str = "ulpian-verdict/1";

/// Who is to blame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// Everyone returns the correctly rounded value.
    Agree,
    /// They differ, and each local error is what this precision allows: nobody is at fault.
    Rounding,
    /// As rounding, but the inputs amplify it: nobody is at fault.
    Conditioning,
    /// The documentation allows both.
    Unspecified,
    /// The evidence does not decide; what is missing is named.
    Inconclusive,
    /// The framework's own algorithm or default.
    Framework,
    /// The library below it (oneDNN, MKL, cuBLAS, cuDNN).
    Vendor,
    /// The arithmetic itself: TF32, a tensor core's accumulator, contraction to FMA, flushed subnormals.
    Hardware,
    /// No rounding, order or arithmetic explains it.
    Defect,
}

impl Cause {
    /// Does this cause name a fault (exit code 1)?
    pub const fn is_fault(self) -> bool {
        matches!(self, Cause::Framework | Cause::Vendor | Cause::Hardware | Cause::Defect)
    }

    /// The name in machine output.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::Agree => "agree",
            Cause::Rounding => "rounding",
            Cause::Conditioning => "conditioning",
            Cause::Unspecified => "unspecified",
            Cause::Inconclusive => "inconclusive",
            Cause::Framework => "framework",
            Cause::Vendor => "vendor",
            Cause::Hardware => "hardware",
            Cause::Defect => "defect",
        }
    }
}

/// How strong the evidence is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// The evidence speaks against it.
    Refuted,
    /// Nothing speaks against it.
    Consistent,
    /// The named switch makes it vanish.
    ConfirmedByIntervention,
    /// A replay returns the very bits.
    ConfirmedBitwise,
}

/// An element of a node's result as one executor returned it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct At {
    /// Node id, or `id.1` for a further result.
    pub node: String,
    /// Executor.
    pub executor: String,
    /// Multi-dimensional index.
    pub index: Vec<usize>,
}

/// Cause, grade and reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    /// Who is to blame.
    pub cause: Cause,
    /// How sure.
    pub grade: Grade,
    /// Where it shows most; absent where everyone agrees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<At>,
    /// One sentence.
    pub because: String,
}

/// The verdict on one executor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecutorVerdict {
    /// Executor.
    pub executor: String,
    /// Its part in the dispute.
    pub verdict: Verdict,
}

/// Distances of one executor's result from a truth, each at its worst element.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Distance {
    /// Worst error in units of the last place of the result's dtype at the truth.
    #[serde(with = "float")]
    pub max_ulp: f64,
    /// Worst absolute error.
    #[serde(with = "float")]
    pub max_abs: f64,
    /// Worst relative error, over elements whose truth is not 0.
    #[serde(with = "float")]
    pub max_rel: f64,
    /// Worst error as a share of what any correct implementation at the documented precision may lose.
    #[serde(with = "float")]
    pub bound_ratio: f64,
    /// Index of the element with the worst `max_ulp`.
    pub index: Vec<usize>,
    /// What the executor returned there.
    #[serde(with = "float")]
    pub got: f64,
    /// The correctly rounded value there.
    #[serde(with = "float")]
    pub truth: f64,
}

/// One executor at one node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecutorAtNode {
    /// Executor.
    pub executor: String,
    /// `ok`, `unavailable`, `failed` or `missing` (it ran, and this node's result was not observed).
    pub status: String,
    /// Why, and what to do about it, where the status is not `ok`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Elements whose class (NaN, +inf, -inf, sign of zero, finite) differs from the truth's; all of them where the shape or
    /// dtype differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class_mismatches: Option<usize>,
    /// The op on the inputs this executor itself had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local: Option<Distance>,
    /// Against the truth of the whole chain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accumulated: Option<Distance>,
    /// Condition number of the op at the worst element.
    #[serde(default, with = "option_float", skip_serializing_if = "Option::is_none")]
    pub condition: Option<f64>,
}

/// One node result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeReport {
    /// Node id, or `id.1` for a further result.
    pub node: String,
    /// Op.
    pub op: String,
    /// Result dtype.
    pub dtype: String,
    /// Every executor asked for.
    pub executors: Vec<ExecutorAtNode>,
}

/// One try at an explanation: a switch thrown, or a replay compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// The executor that is explained.
    pub executor: String,
    /// Node id.
    pub node: String,
    /// What was tried: an executor id, `replay:…` included.
    pub tried: String,
    /// What came of it, in a few words: `same bits`, `error vanishes`, `unchanged`, …
    pub outcome: String,
    /// Worst local error in ulp under what was tried.
    #[serde(default, with = "option_float", skip_serializing_if = "Option::is_none")]
    pub max_ulp: Option<f64>,
}

/// What a case says its outcome should be (the docket), and whether it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectationResult {
    /// Everything expected was found.
    pub met: bool,
    /// What was not, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmet: Vec<String>,
}

/// The line `judge --json` prints for a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseVerdict {
    /// [`VERDICT_FORMAT`]
    pub format: String,
    /// The case's name.
    pub case: String,
    /// The case's file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The overall verdict.
    pub verdict: Verdict,
    /// The verdict on each executor that ran.
    pub executors: Vec<ExecutorVerdict>,
    /// The figures, node by node.
    pub nodes: Vec<NodeReport>,
    /// What was tried to explain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    /// Against the case's own `expect`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expectation: Option<ExpectationResult>,
    /// Versions and machine facts.
    pub environment: serde_json::Map<String, serde_json::Value>,
}

/// The line `truth --json` prints for a node result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TruthLine {
    /// The case's name.
    pub case: String,
    /// Node id, or `id.1` for a further result.
    pub node: String,
    /// Result dtype.
    pub dtype: String,
    /// Result shape.
    pub shape: Vec<usize>,
    /// Number of elements.
    pub elements: usize,
    /// Elements whose rounding could not be pinned down.
    pub undecided: usize,
    /// Worst radius in units of the result's last place.
    #[serde(with = "float")]
    pub max_radius_ulp: f64,
    /// Wall time of the whole case.
    pub seconds: f64,
}

/// A float64 in JSON: a number, or `"nan"`, `"inf"`, `"-inf"`.
pub mod float {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    /// Writes a float.
    ///
    /// # Errors
    /// Those of the serialiser.
    pub fn serialize<S: Serializer>(x: &f64, s: S) -> Result<S::Ok, S::Error> {
        if x.is_nan() {
            s.serialize_str("nan")
        } else if x.is_infinite() {
            s.serialize_str(if *x > 0.0 { "inf" } else { "-inf" })
        } else {
            s.serialize_f64(*x)
        }
    }

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum NumberOrText {
        Number(f64),
        Text(String),
    }

    /// Reads a float.
    ///
    /// # Errors
    /// Where the text is none of the three names.
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<f64, D::Error> {
        match NumberOrText::deserialize(d)? {
            NumberOrText::Number(x) => Ok(x),
            NumberOrText::Text(t) => match t.as_str() {
                "nan" => Ok(f64::NAN),
                "inf" => Ok(f64::INFINITY),
                "-inf" => Ok(f64::NEG_INFINITY),
                _ => Err(D::Error::custom(format!("`{t}` is not a number"))),
            },
        }
    }
}

/// [`float`], where it may be absent.
pub mod option_float {
    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes a float or null.
    ///
    /// # Errors
    /// Those of the serialiser.
    pub fn serialize<S: Serializer>(x: &Option<f64>, s: S) -> Result<S::Ok, S::Error> {
        match x {
            Some(x) => super::float::serialize(x, s),
            None => s.serialize_none(),
        }
    }

    #[derive(Deserialize)]
    struct Wrapped(#[serde(with = "super::float")] f64);

    /// Reads a float or null.
    ///
    /// # Errors
    /// Where it is neither.
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<f64>, D::Error> {
        Ok(Option::<Wrapped>::deserialize(d)?.map(|w| w.0))
    }
}

/// What a case says its outcome should be (`expect` in a case file).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// Overall cause; any of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cause: Vec<Cause>,
    /// Least overall grade.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grade: Option<Grade>,
    /// Executors judged besides the default ones, such as `torch:cpu?mkldnn=off`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub executors: Vec<String>,
    /// Cause of single executors (by name); any of these. An executor that cannot run here is passed over.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub parties: std::collections::BTreeMap<String, Vec<Cause>>,
    /// Words that the sentence of the overall verdict must hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub because: Vec<String>,
    /// The real values of node results (by name), each within `tolerance` (absolute), row-major; NaN is `"nan"`.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub truth: std::collections::BTreeMap<String, ExpectedTruth>,
}

/// Known real values of a node result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedTruth {
    /// Row-major values; a number, or `"nan"`, `"inf"`, `"-inf"`. A single value stands for every element.
    pub values: Vec<ExpectedValue>,
    /// Absolute distance from the real value that is allowed, since sources print few digits.
    #[serde(default)]
    pub tolerance: f64,
    /// Distance that is allowed besides, as a share of the value.
    #[serde(default)]
    pub relative: f64,
}

impl ExpectedTruth {
    /// Does the enclosure hold these values? The error says where it does not.
    ///
    /// # Errors
    /// A sentence about the number of elements, or about the first element whose distance is too large.
    pub fn check(&self, truth: &crate::Enclosure) -> Result<(), String> {
        if self.values.len() != 1 && self.values.len() != truth.len() {
            return Err(format!("{} values are expected, the result has {}", self.values.len(), truth.len()));
        }
        for index in 0..truth.len() {
            let expected = self.values[if self.values.len() == 1 { 0 } else { index }].0;
            let center = truth.center[index];
            let close = if expected.is_finite() && center.is_finite() {
                let distance = ((center - expected) + truth.low_at(index)).abs();
                distance <= self.tolerance + self.relative * expected.abs() + truth.radius[index]
            } else {
                expected == center || (expected.is_nan() && center.is_nan())
            };
            if !close {
                return Err(format!("element {index} is {center:e}, {expected:e} is expected"));
            }
        }
        Ok(())
    }
}

/// A float64 written as a number or as `"nan"`, `"inf"`, `"-inf"`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ExpectedValue(#[serde(with = "float")] pub f64);
