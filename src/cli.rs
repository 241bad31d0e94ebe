//! The arguments of every command.

mod campaign;
mod measure;

use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{ArgGroup, Args, Parser, Subcommand};
use ulpian::mining::gspan::MOST_NODES;
use ulpian::spec::DType;

pub(crate) use campaign::{
    Campaign, CampaignExport, CampaignFindings, CampaignResume, CampaignRun, CampaignStatus, ExportFormat,
    ExportRows, InterventionsKind,
};
pub(crate) use measure::{Bench, Order};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

const EXIT_CODES: &str = "\
Exit codes:
  0  done, and nothing to blame
  1  done, and a fault found (judge: framework, vendor, hardware or defect)
  2  bad usage or bad input
  3  could not run: a missing component, the crash of a worker
  4  undecided
With several inputs the highest wins.";

/// Settles numerical disputes about neural-network computations.
///
/// Someone says that an op gives another answer here than there. Ulpian computes the true value with a proof, measures how far
/// each side is from it, and says whose doing the difference is: the framework's, the vendor's library's, the hardware
/// arithmetic's, or nobody's.
#[derive(Debug, Parser)]
#[command(name = "ulpian", version, styles = STYLES, after_help = EXIT_CODES, max_term_width = 110)]
#[command(propagate_version = true, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Flags that every command takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct Common {
    /// Machine output on standard output: one JSON object a line, nothing else
    #[arg(long, global = true, help_heading = "Common options")]
    pub(crate) json: bool,
    /// No progress and no notes on standard error; errors stay
    #[arg(long, short, global = true, help_heading = "Common options")]
    pub(crate) quiet: bool,
    /// Threads of Ulpian's own computation [default: one a core]; PyTorch's are a key of its executor (torch:cpu?threads=1)
    #[arg(long, global = true, value_name = "N", help_heading = "Common options", value_parser = threads)]
    pub(crate) threads: Option<usize>,
    /// Seed of whatever an executor draws at random (dropout without a mask)
    #[arg(long, global = true, value_name = "N", default_value_t = 0, help_heading = "Common options")]
    pub(crate) seed: u64,
}

fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n @ 1..=4096) => Ok(n),
        _ => Err("expected a number from 1 to 4096".to_owned()),
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Say what this machine has, what is missing, and how to get it
    Doctor(Doctor),
    /// Write the certified truth of cases, one safetensors file a case
    Truth(Truth),
    /// Hear every party of a case, compare each with the truth, give a verdict
    Judge(Judge),
    /// Make a case from tensor files and arguments
    #[command(after_help = PACK_EXAMPLES)]
    Pack(Pack),
    /// Record what real models compute: their graphs, and what the inputs of every call looked like
    #[command(after_help = TRACE_SOURCES)]
    Trace(Trace),
    /// Find the subgraphs that many models have in common
    #[command(after_help = MINE_EXAMPLES)]
    Mine(Mine),
    /// Make inputs for mined patterns that look like those of real models
    Generate(Generate),
    /// Judge many cases over several executors, with a ledger on disk that survives a kill
    #[command(subcommand)]
    Campaign(Campaign),
    /// Write what a campaign found as a page and as Markdown
    Report(Report),
    /// Find the order in which an executor adds up, and check it bit for bit
    #[command(after_help = measure::ORDER_EXAMPLES)]
    Order(Order),
    /// Measure how errors grow along chains of ops
    #[command(after_help = measure::BENCH_EXAMPLES)]
    Bench(Bench),
    /// Print a completion script for a shell
    Completions(Completions),
    /// Print the manual page, or write one a command
    Man(Man),
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) python: Python,
}

/// Where Python with PyTorch may come from.
#[derive(Debug, Args)]
pub(crate) struct Python {
    /// Never make or use Ulpian's own Python environment (as ULPIAN_MANAGED_PYTHON=0 does)
    #[arg(long)]
    pub(crate) no_managed_python: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Truth {
    /// Case files, or folders that are searched for them
    #[arg(required = true, value_name = "CASE")]
    pub(crate) cases: Vec<PathBuf>,
    /// Folder for the results, made where needed
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Also write ID.per_op: each op exact, then rounded to its dtype before the next one
    #[arg(long)]
    pub(crate) per_op: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Judge {
    /// Case files, or folders that are searched for them
    #[arg(required = true, value_name = "CASE")]
    pub(crate) cases: Vec<PathBuf>,
    /// A party to hear, such as torch:cpu?mkldnn=off or recorded:a100; may be given several times
    ///
    /// Without it: every recorded party of the case, those its `expect` names, torch:cpu, and torch:cuda where a GPU is present.
    #[arg(long = "executor", short, value_name = "E")]
    pub(crate) executors: Vec<String>,
    /// Exit with 0 exactly when every case's `expect` is met
    #[arg(long)]
    pub(crate) expect: bool,
    /// Also write a JUnit report
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Seconds that one executor may take for one case
    #[arg(long, value_name = "S", default_value_t = 300.0, value_parser = seconds)]
    pub(crate) timeout: f64,
    #[command(flatten)]
    pub(crate) python: Python,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(s) if s > 0.0 && s <= 1e6 => Ok(s),
        _ => Err("expected seconds, more than 0 and at most 1e6".to_owned()),
    }
}

const PACK_EXAMPLES: &str = "\
Values: JSON (3, 1e-5, [64], true, null, \"tanh\"), a bare word (tanh), @NAME for a tensor, %ID for an earlier node's result.
Tensors: @NAME of a file given with --tensors or --tensor, or a file itself: @x.npy, @a.npz:key, @w.safetensors:key, @s.pt:key.

Examples:
  One op, and what two machines returned for it:
    ulpian pack --out fc.json linear input=@x.npy weight=@w.npy --observe cpu=@cpu.npy --observe gpu=@gpu.npy
  A chain:
    ulpian pack --out fc.json --tensors a.npz --node 'fc=linear input=@x weight=@w' --node 'y=relu input=%fc' \\
        --observe gpu:fc=@seen";

#[derive(Debug, Args)]
pub(crate) struct Pack {
    /// The case file to write; its tensors go into a safetensors file of the same stem beside it
    #[arg(long, value_name = "CASE.json")]
    pub(crate) out: PathBuf,
    /// The case's name [default: the stem of --out]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Where the case comes from, free text
    #[arg(long, value_name = "TEXT")]
    pub(crate) source: Option<String>,
    /// A file whose tensors can be named as @NAME: .npy, .npz, .safetensors, .pt or .pth
    #[arg(long, value_name = "FILE")]
    pub(crate) tensors: Vec<PathBuf>,
    /// One tensor under a name of your choice
    #[arg(long = "tensor", value_name = "NAME=FILE[:KEY]")]
    pub(crate) tensor: Vec<String>,
    /// A node of a chain: 'ID=OP ARG=VALUE ...'
    #[arg(long = "node", value_name = "NODE", conflicts_with = "op")]
    pub(crate) nodes: Vec<String>,
    /// What somebody saw as a node's result; without a node, the last one's
    #[arg(long = "observe", value_name = "WHO[:NODE]=@TENSOR")]
    pub(crate) observe: Vec<String>,
    /// A node whose result counts as an output [default: the last one]
    #[arg(long = "output", value_name = "ID")]
    pub(crate) outputs: Vec<String>,
    /// Replace files that exist
    #[arg(long)]
    pub(crate) force: bool,
    /// The op of a case with one node
    #[arg(required_unless_present = "nodes")]
    pub(crate) op: Option<String>,
    /// Its arguments, named as PyTorch names them
    #[arg(value_name = "ARG=VALUE")]
    pub(crate) args: Vec<String>,
    #[command(flatten)]
    pub(crate) python: Python,
}

const TRACE_SOURCES: &str = "\
Sources:
  torchvision:NAME, timm:NAME, mmpretrain:NAME   a model of the package with random weights, on photographs
  transformers:TYPE                              an architecture at its default size with random weights, on texts,
                                                 photographs or sound; ?key=value changes its configuration
  package:NAME                                   a model with trained weights that a package brings along
  FILE.py:FACTORY                                your own: a function that returns a model, (model, inputs) or (model, loader)
  FILE.onnx                                      an ONNX model, run by ONNX Runtime
  FOLDER                                         a GraphNet sample, read as syntax and never executed

Each model is run once, in a process of its own. The packages are looked for in the Python that Ulpian uses (ULPIAN_PYTHON).";

#[derive(Debug, Args)]
pub(crate) struct Trace {
    /// Models to trace
    #[arg(value_name = "SOURCE", required_unless_present = "list")]
    pub(crate) sources: Vec<String>,
    /// Folder for the graph file and the feature file of each model, made where needed
    #[arg(long, value_name = "DIR", required_unless_present = "list")]
    pub(crate) out: Option<PathBuf>,
    /// Print the names of all models of a kind of source: torchvision, timm, mmpretrain, transformers or package
    #[arg(long, value_name = "KIND", conflicts_with_all = ["sources", "out"])]
    pub(crate) list: Option<String>,
    /// Images or texts at a time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) batch: u32,
    /// Side of the images [default: the model's own]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub(crate) image_size: Option<u32>,
    /// Convert the model and its inputs first, as model.to(dtype) does [default: as the source makes them]
    #[arg(long, value_parser = floating)]
    pub(crate) dtype: Option<DType>,
    /// Seconds that one model may take
    #[arg(long, value_name = "S", default_value_t = 600.0, value_parser = seconds)]
    pub(crate) timeout: f64,
    #[command(flatten)]
    pub(crate) python: Python,
}

fn floating(text: &str) -> Result<DType, String> {
    match DType::from_name(text) {
        Some(dtype) if dtype.is_float() => Ok(dtype),
        _ => Err("expected float64, float32, float16 or bfloat16".to_owned()),
    }
}

const MINE_EXAMPLES: &str = "\
Inputs: graph files that `ulpian trace` wrote (*.graph.jsonl, *.graph.jsonl.zst), gSpan text files (`t # i`, `v id label`,
`e from to label`), told apart by their content, or folders of both.

Examples:
  Patterns of 2 to 7 ops that at least 5 models have, with the arguments their edges feed:
    ulpian mine traces --support 5 --out patterns.jsonl
  A graph file of another miner, without direction, results in its format too:
    ulpian mine models.gspan --support 5 --undirected --out patterns.jsonl --text patterns.txt";

#[derive(Debug, Args)]
pub(crate) struct Mine {
    /// Graph files, gSpan text files, or folders that are searched for them
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
    /// How many graphs must hold a pattern
    #[arg(long, value_name = "N", value_parser = support)]
    pub(crate) support: usize,
    /// How many nodes a pattern may have
    #[arg(long, value_name = "A..B", default_value = "2..7", value_parser = nodes)]
    pub(crate) nodes: (usize, usize),
    /// Take edges without their direction
    #[arg(long)]
    pub(crate) undirected: bool,
    /// What the edges of traced graphs are labelled with: nothing, or the argument they feed (the two of add and mul are one)
    #[arg(long, value_enum, default_value_t = EdgeLabels::None)]
    pub(crate) edge_labels: EdgeLabels,
    /// Let edges of traced graphs pass through calls that only move or rename elements (view, permute)
    #[arg(long)]
    pub(crate) bridge_shape_ops: bool,
    /// Keep the calls of traced graphs that are none of Ulpian's ops
    #[arg(long)]
    pub(crate) all_labels: bool,
    /// Count graphs that are the same but for the order of their nodes once
    #[arg(long)]
    pub(crate) deduplicate: bool,
    /// The pattern file to write, compressed where the name ends in .zst
    #[arg(long, value_name = "PATTERNS.jsonl")]
    pub(crate) out: PathBuf,
    /// Also write the patterns in gSpan's text format
    #[arg(long, value_name = "FILE")]
    pub(crate) text: Option<PathBuf>,
}

/// The labels of edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum EdgeLabels {
    /// All alike
    None,
    /// The argument that the tensor is given as
    Argument,
}

fn some(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n @ 1..) => Ok(n),
        _ => Err("expected a number, 1 or more".to_owned()),
    }
}

fn support(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n @ 1..) => Ok(n),
        _ => Err("expected a number of graphs, 1 or more".to_owned()),
    }
}

fn nodes(text: &str) -> Result<(usize, usize), String> {
    let numbers = match text.split_once("..") {
        Some((from, to)) => (from.parse(), to.strip_prefix('=').unwrap_or(to).parse()),
        None => (text.parse(), text.parse()),
    };
    match numbers {
        (Ok(from), Ok(to)) if 2 <= from && from <= to && to <= MOST_NODES => Ok((from, to)),
        _ => Err(format!("expected a range such as 2..7, both ends included, from 2 to {MOST_NODES}")),
    }
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("records").args(["features"]).required(true)))]
#[command(group(ArgGroup::new("subject").args(["patterns", "single_op"]).required(true).multiple(true)))]
pub(crate) struct Generate {
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    /// Inputs in all, spread evenly over the patterns; with fewer than there are patterns, the first ones get one each
    #[arg(long, value_name = "N", value_parser = some)]
    pub(crate) count: usize,
    /// Folder for the cases, made where needed
    #[arg(long, value_name = "DIR", required_unless_present = "check")]
    pub(crate) out: Option<PathBuf>,
    /// Run every input on this executor, and count what it accepts
    #[arg(long, value_name = "E")]
    pub(crate) check: Option<String>,
    /// Seconds that the executor of --check may take for one input
    #[arg(long, value_name = "S", default_value_t = 300.0, value_parser = seconds)]
    pub(crate) timeout: f64,
    #[command(flatten)]
    pub(crate) python: Python,
}

/// What inputs are made from, and how.
#[derive(Debug, Args)]
pub(crate) struct Inputs {
    /// A pattern file, as `ulpian mine` writes it
    #[arg(long, value_name = "FILE")]
    pub(crate) patterns: Option<PathBuf>,
    /// Feature files, or folders that are searched for them, as `ulpian trace` writes them
    #[arg(long, value_name = "DIR", num_args = 1..)]
    pub(crate) features: Vec<PathBuf>,
    /// How a tensor's values are drawn
    #[arg(long, value_name = "HOW", value_enum, default_value_t = ValuesKind::Range)]
    pub(crate) values: ValuesKind,
    /// Test every op alone: the ops of the patterns, or every recorded one
    #[arg(long)]
    pub(crate) single_op: bool,
    /// Make inputs the way other methods do, valid or not, to compare how many are valid
    #[arg(long, value_name = "WAY", value_enum)]
    pub(crate) baseline: Option<BaselineKind>,
    /// Pass over recorded calls with a larger tensor
    #[arg(long, value_name = "N", default_value_t = 1 << 24)]
    pub(crate) max_elements: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ValuesKind {
    /// Uniformly within the recorded range
    Range,
    /// After the recorded quantiles and share of zeros
    Sketch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum BaselineKind {
    /// Shapes, dtypes, values and literals at random
    Uniform,
    /// Recorded calls with dtypes and literals changed at random
    Mutate,
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// The ledger of a campaign; further ones are compared with it: of a campaign with --single-op, of campaigns with --baseline
    #[arg(long, value_name = "FILE", required = true)]
    pub(crate) ledger: Vec<PathBuf>,
    /// Folder for index.html, report.md and what they link to, made where needed
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// What `ulpian generate --json` printed, for the table of valid inputs; may be given for several generators
    #[arg(long, value_name = "NAME=FILE")]
    pub(crate) validity: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Write ulpian.1 and a page for each command into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

/// The arguments of this process. Bad usage ends it with exit code 2, `--help` and `--version` with 0.
pub(crate) fn parse() -> Cli {
    Cli::parse()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
