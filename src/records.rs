//! The machine output of `doctor` and `pack`, one object a line; that of `truth` and `judge` is in
//! [`spec::verdict`](crate::spec::verdict).

use serde::{Deserialize, Serialize};

/// The line `pack --json` prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Packed {
    /// The case's name.
    pub case: String,
    /// Its file.
    pub file: String,
    /// Number of nodes.
    pub nodes: usize,
    /// Number of tensors.
    pub tensors: usize,
    /// The recorded parties.
    pub observed: Vec<String>,
}

/// The `format` of a [`Finding`].
pub const DOCTOR_FORMAT: &str = "ulpian-doctor/1";

/// A line of `doctor --json`: one component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// [`DOCTOR_FORMAT`]
    pub format: String,
    /// What was looked for, such as `python` or `cudnn`.
    pub component: String,
    /// Is it here?
    pub found: bool,
    /// Its version, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Where it was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// More about it: what it is used for, or how it was built.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// How to get it, where it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}
