//! The machine output of `doctor`, `pack`, `trace`, `mine` and `generate`, one object a line; that of `truth` and `judge` is in
//! [`spec::verdict`](crate::spec::verdict).

use std::collections::BTreeMap;

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

/// The line `trace --json` prints for each model that left a trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TracedModel {
    /// The model, as its source was given.
    pub model: String,
    /// Nodes of its graph.
    pub nodes: usize,
    /// Records of calls of Ulpian's ops.
    pub calls: usize,
    /// The records among them that no case can hold.
    pub unsupported: usize,
    /// The graph file.
    pub graph: String,
    /// The feature file.
    pub features: String,
    /// Bytes of both files.
    pub bytes: u64,
    /// Seconds that the model took, from start to files.
    pub seconds: f64,
}

/// A line of `trace --list --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelName {
    /// The source to give to `trace`.
    pub model: String,
}

/// The last line `mine --json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mined {
    /// How many patterns were found.
    pub patterns: usize,
    /// How many of them have so many nodes.
    pub by_nodes: BTreeMap<usize, usize>,
    /// How many graphs were mined.
    pub graphs: usize,
    /// The time of mining alone, without reading and writing.
    pub seconds: f64,
    /// The most memory that this process has held so far, 0 where the system does not tell.
    pub peak_bytes: u64,
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

/// A line of `generate --json`: one input.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GeneratedInput {
    /// The case's name.
    pub case: String,
    /// The pattern's id.
    pub pattern: usize,
    /// Its file, where it was written.
    pub file: Option<String>,
    /// PyTorch's rules take every call of it.
    pub valid: bool,
    /// The executor of `--check` ran it; absent where none was asked.
    pub accepted: Option<bool>,
    /// Why it is not valid, or was not accepted.
    pub why: Option<String>,
}

/// A pattern without inputs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnfitPattern {
    /// Its id.
    pub pattern: usize,
    /// Its labels.
    pub nodes: Vec<String>,
    /// What no recorded call fits.
    pub why: String,
}

/// The last line of `generate --json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GenerateSummary {
    /// Inputs that were asked for.
    pub inputs: usize,
    /// Of these, the valid ones.
    pub valid: usize,
    /// Of the valid ones, those that the executor of `--check` ran; absent where none was asked.
    pub accepted: Option<usize>,
    /// Patterns that inputs were generated for.
    pub patterns: usize,
    /// Patterns that no recorded calls fit.
    pub unfit: Vec<UnfitPattern>,
    /// Recorded calls that were drawn from.
    pub calls: usize,
    /// Recorded calls that were left out: reasons and how many.
    pub left_out: BTreeMap<String, usize>,
    /// (good, all) inputs by op for patterns of one node, by number of nodes for others; good is accepted, or valid where no
    /// executor was asked.
    pub by_op: BTreeMap<String, (usize, usize)>,
}
