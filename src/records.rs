//! The machine output of the other commands, one object a line; that of `truth` and `judge` is in
//! [`spec::verdict`](crate::spec::verdict).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use ulpian_spec::verdict::{float, option_float};

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

/// The `format` of an [`OrderLine`].
pub const ORDER_FORMAT: &str = "ulpian-order/1";

/// The line `order --json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderLine {
    /// [`ORDER_FORMAT`]
    pub format: String,
    /// The executor.
    pub executor: String,
    /// The op.
    pub op: String,
    /// The dtype of its tensors.
    pub dtype: String,
    /// Their shapes.
    pub shapes: BTreeMap<String, Vec<usize>>,
    /// Terms of each sum.
    pub k: usize,
    /// For each node of the tree the sum that it is added to: first the terms, then the sums, the total last with null. Null
    /// where no order was found.
    pub tree: Option<Vec<Option<usize>>>,
    /// The tree as compact text: `[A, B]` is added from left to right, `{A, B, C}` at once, `A x3 by 8` stands for A and A with 8
    /// and 16 more for each term.
    pub text: Option<String>,
    /// The most additions that a term passes through.
    pub depth: Option<usize>,
    /// The name of the order, where it is a known one.
    pub name: Option<String>,
    /// Which terms arrive; null where the op does not show its sum.
    pub coverage: Option<OrderCoverage>,
    /// Are products added without being rounded first? Null where the bits do not tell, or nothing is multiplied.
    pub fused: Option<bool>,
    /// Pairs of terms that were read.
    pub pairs: usize,
    /// Results that are added in another order, by the row-major position of the first of each column; they are not compared.
    pub deviating: Vec<usize>,
    /// The tree computed on random data, against the executor's bits.
    pub verified: OrderVerified,
    /// Why no order was found.
    pub inconclusive: Option<String>,
    /// Seconds in all.
    pub seconds: f64,
}

/// Which terms of a sum arrive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderCoverage {
    /// Sums of ones count all their terms.
    pub complete: bool,
    /// Terms that are in no sum.
    pub missing: Vec<usize>,
}

/// Whose bits are the executor's on random data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderVerified {
    /// `same bits`, `other bits`, or `not compared`.
    pub outcome: String,
    /// The arithmetic that, in this order, gives the very bits of every element compared.
    pub arithmetic: Option<String>,
    /// Every arithmetic tried.
    pub tried: Vec<OrderTrial>,
    /// Replays that give the very bits of the whole result.
    pub replays: Vec<String>,
}

/// An arithmetic tried in the order that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderTrial {
    /// The arithmetic.
    pub arithmetic: String,
    /// Elements whose bits it gives.
    pub same: usize,
    /// Elements compared.
    pub elements: usize,
}

/// The `format` of a [`BenchLine`] and of a [`BenchSummary`].
pub const BENCH_FORMAT: &str = "ulpian-bench/1";

/// A line of `bench --json`: the results of one op at one depth. Each figure is, for a result, that of its worst element.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BenchLine {
    /// [`BENCH_FORMAT`]
    pub format: String,
    /// The executor.
    pub executor: String,
    /// Ops on the longest way from the case's tensors, this one included.
    pub depth: usize,
    /// The op.
    pub op: String,
    /// Node results.
    pub results: usize,
    /// Elements of another class than the truth's.
    pub class_mismatches: usize,
    /// The op's own error, on the inputs that this executor had, in units of the last place.
    pub local_ulp: Option<Spread>,
    /// That error as a share of what a correct implementation may lose.
    pub bound_ratio: Option<Spread>,
    /// The error against the exact chain, in units of the last place.
    pub accumulated_ulp: Option<Spread>,
    /// The same over the size of the true value.
    pub accumulated_rel: Option<Spread>,
    /// The accumulated error in ulp over the largest one of the results that it was computed from; results before which
    /// there was no error are left out.
    pub growth: Option<Spread>,
    /// The condition number of the op at the element that is worst.
    pub condition: Option<Spread>,
}

/// A figure over several results.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// The largest.
    #[serde(with = "float")]
    pub worst: f64,
    /// The middle one.
    #[serde(with = "float")]
    pub median: f64,
}

/// The last line of `bench --json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BenchSummary {
    /// [`BENCH_FORMAT`]
    pub format: String,
    /// Cases that were measured.
    pub cases: usize,
    /// Cases that could not be.
    pub failed: usize,
    /// Node results over all executors.
    pub results: usize,
    /// The greatest depth.
    pub deepest: usize,
    /// Executors that could not be heard, or not to the end, each with its first reason.
    pub not_heard: BTreeMap<String, String>,
    /// Seconds in all.
    pub seconds: f64,
}
