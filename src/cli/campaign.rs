//! The arguments of `campaign`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};

use super::{Inputs, Python, seconds, some};

#[derive(Debug, Subcommand)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) enum Campaign {
    /// Begin a campaign
    Run(CampaignRun),
    /// Go on with a campaign that was ended
    Resume(CampaignResume),
    /// Say how far a campaign is, and what it has found
    Status(CampaignStatus),
    /// Make the worst of each group of findings small, and write it as a case and as a script that needs torch alone
    Findings(CampaignFindings),
    /// Write a campaign's rows as JSON Lines or CSV
    Export(CampaignExport),
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("source").args(["cases", "features"]).required(true)))]
#[command(group(ArgGroup::new("subject").args(["cases", "patterns", "single_op"]).required(true).multiple(true)))]
pub(crate) struct CampaignRun {
    /// Case files, or folders that are searched for them
    #[arg(long, value_name = "DIR", num_args = 1..)]
    pub(crate) cases: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    /// Inputs in all, spread evenly over the patterns; with fewer than there are patterns, the first ones get one each
    #[arg(long, value_name = "N", required_unless_present = "cases", conflicts_with = "cases", value_parser = some)]
    pub(crate) count: Option<usize>,
    /// A party to hear, such as torch:cpu?mkldnn=off; may be given several times. The first is what the others are compared with
    #[arg(long = "executor", short, value_name = "E", default_value = "torch:cpu")]
    pub(crate) executors: Vec<String>,
    /// The ledger to begin
    #[arg(long, value_name = "FILE")]
    pub(crate) ledger: PathBuf,
    /// Which runs are granted to explain an error
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = InterventionsKind::All)]
    pub(crate) interventions: InterventionsKind,
    /// Seconds that one executor may take for one case
    #[arg(long, value_name = "S", default_value_t = 300.0, value_parser = seconds)]
    pub(crate) timeout: f64,
    #[command(flatten)]
    pub(crate) python: Python,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum InterventionsKind {
    /// Every switch that may help
    All,
    /// Every switch but compiling, which takes seconds
    Quick,
    /// No switch: replays are compared alone
    None,
}

#[derive(Debug, Args)]
pub(crate) struct CampaignResume {
    /// The ledger to go on with
    #[arg(long, value_name = "FILE")]
    pub(crate) ledger: PathBuf,
    #[command(flatten)]
    pub(crate) python: Python,
}

#[derive(Debug, Args)]
pub(crate) struct CampaignStatus {
    /// The ledger to read, which may be in use
    #[arg(long, value_name = "FILE")]
    pub(crate) ledger: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct CampaignFindings {
    /// The ledger, which keeps what is made
    #[arg(long, value_name = "FILE")]
    pub(crate) ledger: PathBuf,
    /// Folder for NAME.json and NAME.py, made where needed
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Only so many: first the worst of each op, cause and executor, then the second of each, and so on
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Run every script and say whether it shows the fault
    #[arg(long)]
    pub(crate) check: bool,
    /// Cases that may be judged to make one finding small
    #[arg(long, value_name = "N", default_value_t = 400)]
    pub(crate) tries: usize,
    #[command(flatten)]
    pub(crate) python: Python,
}

#[derive(Debug, Args)]
pub(crate) struct CampaignExport {
    /// The ledger to read, which may be in use
    #[arg(long, value_name = "FILE")]
    pub(crate) ledger: PathBuf,
    /// The form of the rows
    #[arg(long, value_name = "FORM", value_enum)]
    pub(crate) format: ExportFormat,
    /// Which rows
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = ExportRows::Executions)]
    pub(crate) rows: ExportRows,
    /// The file to write, or - for standard output [default: -]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ExportFormat {
    /// One JSON object a line
    Jsonl,
    /// Comma-separated values, with a header
    Csv,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ExportRows {
    /// A row for each executor on each case, with the case's name, pattern and labels
    Executions,
    /// A row for each case
    Cases,
    /// A row for each node result of each executor
    Nodes,
    /// The verdicts, as `judge --json` prints them (jsonl alone)
    Verdicts,
}
