//! Who computes: the name of an executor, and what it answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{Case, HostTensor, ValueRef};

/// `family:variant?key=value&key=value`, such as `torch:cpu?mkldnn=off`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExecutorId {
    /// `torch`, `gpu`, `ort`, `recorded` or `replay`.
    pub family: String,
    /// What follows the colon.
    pub variant: String,
    /// The keys, sorted.
    pub keys: BTreeMap<String, String>,
}

/// A malformed executor name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "executor `{text}`: {why}; expected family:variant?key=value&key=value, such as torch:cpu?mkldnn=off"
)]
pub struct ExecutorIdError {
    /// The text that was given.
    pub text: String,
    /// What is wrong with it.
    pub why: String,
}

impl ExecutorId {
    /// An executor without keys.
    pub fn new(family: &str, variant: &str) -> ExecutorId {
        ExecutorId { family: family.into(), variant: variant.into(), keys: BTreeMap::new() }
    }

    /// The same executor with one more key.
    #[must_use]
    pub fn with(mut self, key: &str, value: &str) -> ExecutorId {
        self.keys.insert(key.into(), value.into());
        self
    }

    /// The value of a key.
    pub fn key(&self, key: &str) -> Option<&str> {
        self.keys.get(key).map(String::as_str)
    }
}

impl std::str::FromStr for ExecutorId {
    type Err = ExecutorIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fail = |why: &str| ExecutorIdError { text: text.to_owned(), why: why.to_owned() };
        let (family, rest) = text.split_once(':').ok_or_else(|| fail("no colon"))?;
        // A recorded party's name is free text.
        if family == "recorded" {
            if rest.is_empty() {
                return Err(fail("empty name"));
            }
            return Ok(ExecutorId::new(family, rest));
        }
        let (variant, query) = rest.split_once('?').unwrap_or((rest, ""));
        if family.is_empty() || variant.is_empty() {
            return Err(fail("empty family or variant"));
        }
        let mut id = ExecutorId::new(family, variant);
        for pair in query.split('&').filter(|p| !p.is_empty()) {
            let (key, value) = pair.split_once('=').ok_or_else(|| fail("a key without a value"))?;
            if key.is_empty() || value.is_empty() {
                return Err(fail("an empty key or value"));
            }
            if id.keys.insert(key.into(), value.into()).is_some() {
                return Err(fail("a key given twice"));
            }
        }
        Ok(id)
    }
}

impl std::fmt::Display for ExecutorId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.family, self.variant)?;
        for (i, (key, value)) in self.keys.iter().enumerate() {
            write!(f, "{}{key}={value}", if i == 0 { '?' } else { '&' })?;
        }
        Ok(())
    }
}

/// What an executor computed for a case.
#[derive(Debug, Clone, Default)]
pub struct Run {
    /// The result of every node output. Observations may leave some out.
    pub results: BTreeMap<ValueRef, Arc<HostTensor>>,
    /// Wall time of the computation alone, where known.
    pub seconds: Option<f64>,
    /// Facts about the run worth showing: versions, ISA, warnings.
    pub notes: Vec<String>,
}

/// How a run ended.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// Results.
    Ok(Run),
    /// This executor cannot run here, or cannot run this case.
    Unavailable {
        /// Why.
        reason: String,
        /// What to do about it.
        remedy: String,
    },
    /// It tried and failed: an exception, a crash, a timeout.
    Failed {
        /// What happened, with the last words of the process.
        reason: String,
        /// What it had returned before: the results of the nodes before the one that failed, where they came through.
        before: Run,
    },
}

impl Outcome {
    /// A failure before any result.
    pub fn failed(reason: impl Into<String>) -> Outcome {
        Outcome::Failed { reason: reason.into(), before: Run::default() }
    }
}

/// Somebody who computes cases. The reference is none: it returns an [`Enclosure`](crate::Enclosure).
pub trait Executor {
    /// Its name.
    fn id(&self) -> &ExecutorId;

    /// Runs the whole case and returns every node's outputs.
    fn run(&mut self, case: &Case) -> Outcome;
}
