//! The machine output of the other commands, one object a line; that of `truth` and `judge` is in
//! [`spec::verdict`](crate::spec::verdict).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use ulpian_spec::verdict::option_float;

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

/// A line of `campaign run --json` and `campaign resume --json`: one case that was judged now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CampaignCase {
    /// Its place in the plan.
    pub number: usize,
    /// Its name.
    pub case: String,
    /// The id of its pattern, where it was generated for one.
    pub pattern: Option<usize>,
    /// `judged`, `invalid` or `failed`.
    pub status: String,
    /// Why it was not judged.
    pub reason: Option<String>,
    /// The overall cause.
    pub cause: Option<String>,
    /// What each executor's error is put down to; `unavailable` or `failed` where there is no result.
    pub executors: BTreeMap<String, String>,
}

/// The last line of `campaign run --json` and `campaign resume --json`, and the one of `campaign status --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CampaignSummary {
    /// The ledger.
    pub ledger: String,
    /// Cases in the plan.
    pub cases: usize,
    /// Cases in the ledger.
    pub done: usize,
    /// Cases that are left.
    pub left: usize,
    /// Cases that PyTorch's rules reject, or whose file cannot be read.
    pub invalid: usize,
    /// Cases whose truth cannot be computed.
    pub failed: usize,
    /// Executions in the ledger.
    pub executions: usize,
    /// Seconds that the done cases took.
    pub seconds: f64,
    /// Seconds that the cases left may take; absent before the first is done.
    pub seconds_left: Option<f64>,
    /// Executions by executor and cause; `unavailable` or `failed` where there is no result to judge.
    pub causes: BTreeMap<String, BTreeMap<String, usize>>,
    /// Executions that each criterion finds.
    pub found: CriteriaCounts,
}

/// Executions that each criterion finds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CriteriaCounts {
    /// An output differs from the first executor's by more than 1e-3.
    pub sort: usize,
    /// An output is not close to the first executor's by `torch.testing.assert_close`'s defaults.
    pub assert_close: usize,
    /// A node's local error is beyond what a correct implementation may lose, or elements are of another class.
    pub bound: usize,
    /// The judge names a fault.
    pub fault: usize,
}

/// A row of `campaign export --rows executions`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExportedExecution {
    /// The case's place in the plan.
    pub case: usize,
    /// The case's name.
    pub name: String,
    /// The id of its pattern, where it was generated for one.
    pub pattern: Option<usize>,
    /// The labels of its pattern, or its ops; blanks between them.
    pub labels: String,
    /// The executor.
    pub executor: String,
    /// `ok`, `unavailable` or `failed`.
    pub status: String,
    /// Why it is not `ok`.
    pub reason: Option<String>,
    /// The cause of this executor's error.
    pub cause: Option<String>,
    /// How sure that is.
    pub grade: Option<String>,
    /// The node that it shows at.
    pub node: Option<String>,
    /// That node's op.
    pub op: Option<String>,
    /// Elements of another class than the truth's.
    pub class_mismatches: Option<usize>,
    /// Worst local error, in ulp.
    #[serde(with = "option_float")]
    pub local_ulp: Option<f64>,
    /// Worst local error as a share of what a correct implementation may lose.
    #[serde(with = "option_float")]
    pub bound_ratio: Option<f64>,
    /// Worst accumulated error, in ulp.
    #[serde(with = "option_float")]
    pub accumulated_ulp: Option<f64>,
    /// Worst difference of an output from the first executor's.
    #[serde(with = "option_float")]
    pub difference: Option<f64>,
    /// That difference as a share of `torch.testing.assert_close`'s tolerance.
    #[serde(with = "option_float")]
    pub close_ratio: Option<f64>,
    /// Found by SORT's criterion.
    pub sort: Option<bool>,
    /// Found by `torch.testing.assert_close`.
    pub assert_close: Option<bool>,
    /// Found by the bound.
    pub bound: Option<bool>,
    /// The reason, a sentence.
    pub because: Option<String>,
}

/// A line of `campaign findings --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CampaignFinding {
    /// Its name.
    pub finding: String,
    /// The id of its pattern, where the cases were generated for one.
    pub pattern: Option<usize>,
    /// The labels of its pattern, or its ops; blanks between them.
    pub labels: String,
    /// The op at fault.
    pub op: String,
    /// The cause.
    pub cause: String,
    /// The executor.
    pub executor: String,
    /// How many executions show it.
    pub executions: usize,
    /// The case that shows it most.
    pub case: String,
    /// Elements of that case's tensors.
    pub elements: usize,
    /// Elements of the small case's tensors; absent where the finding was not met again.
    pub elements_left: Option<usize>,
    /// The verdict, a sentence.
    pub because: Option<String>,
    /// The small case.
    pub file: Option<String>,
    /// The script, where PyTorch alone can show it.
    pub repro: Option<String>,
    /// Did the script show the fault when it was run? Absent where it was not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reproduced: Option<bool>,
}

/// The line `report --json` prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reported {
    /// The page.
    pub html: String,
    /// The summary.
    pub markdown: String,
    /// Cases in the ledger.
    pub cases: usize,
    /// Executions in the ledger.
    pub executions: usize,
    /// Groups of executions that are put down to a fault.
    pub findings: usize,
    /// The campaign ran to its end.
    pub complete: bool,
}
