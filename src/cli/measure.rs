//! The arguments of `order` and `bench`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use ulpian::spec::DType;

use super::{Python, ValuesKind, floating, seconds};

pub(crate) const ORDER_EXAMPLES: &str = "\
Ops: matmul, linear, conv2d, adaptive_avg_pool2d, layer_norm (its mean).

Examples:
  In which order PyTorch adds up the 1024 products of each element of a matrix product:
    ulpian order torch:cpu matmul --k 1024
  A call as a model makes it, without oneDNN:
    ulpian order 'torch:cpu?mkldnn=off' linear --shape input=1x1024 --shape weight=8x1024
  A convolution in bfloat16:
    ulpian order torch:cpu conv2d stride=2 --shape input=1x64x28x28 --shape weight=32x64x3x3 --dtype bfloat16";

#[derive(Debug, Args)]
pub(crate) struct Order {
    /// Whose order, such as torch:cpu, torch:cpu?mkldnn=off, ort:cpu or replay:lanes-8-fma
    pub(crate) executor: String,
    /// The op
    pub(crate) op: String,
    /// Its arguments that are no tensors, named as PyTorch names them
    #[arg(value_name = "ARG=VALUE")]
    pub(crate) args: Vec<String>,
    /// The shape of a tensor, such as weight=8x1024; what is not given is chosen to fit
    #[arg(long = "shape", value_name = "ARG=SHAPE")]
    pub(crate) shapes: Vec<String>,
    /// Terms of each sum, where no shape says [default: 1024]
    #[arg(long, value_name = "N", value_parser = terms)]
    pub(crate) k: Option<usize>,
    /// The dtype of the tensors
    #[arg(long, default_value = "float32", value_parser = floating)]
    pub(crate) dtype: DType,
    /// Seconds that the executor may take for one run of the call
    #[arg(long, value_name = "S", default_value_t = 300.0, value_parser = seconds)]
    pub(crate) timeout: f64,
    #[command(flatten)]
    pub(crate) python: Python,
}

fn terms(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n) if (1..=ulpian::order::MOST_TERMS).contains(&n) => Ok(n),
        _ => Err(format!("expected a number from 1 to {}", ulpian::order::MOST_TERMS)),
    }
}

pub(crate) const BENCH_EXAMPLES: &str = "\
Examples:
  How errors grow along the chains of some cases:
    ulpian bench tests/docket --executor torch:cpu
  Along mined patterns, on inputs like those of real models:
    ulpian bench --patterns patterns.jsonl --features traces --count 200 --executor torch:cpu --executor ort:cpu
  A block applied to its own result thirty times:
    ulpian bench block.json --repeat 30";

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("source").args(["cases", "features"]).required(true)))]
pub(crate) struct Bench {
    /// Case files, or folders that are searched for them
    #[arg(value_name = "CASE")]
    pub(crate) cases: Vec<PathBuf>,
    /// A pattern file, as `ulpian mine` writes it
    #[arg(long, value_name = "FILE", requires = "features", conflicts_with = "cases")]
    pub(crate) patterns: Option<PathBuf>,
    /// Feature files, or folders that are searched for them, as `ulpian trace` writes them
    #[arg(long, value_name = "DIR", num_args = 1.., requires_all = ["patterns", "count"])]
    pub(crate) features: Vec<PathBuf>,
    /// Inputs in all, spread evenly over the patterns
    #[arg(long, value_name = "N", requires = "features", conflicts_with = "cases")]
    pub(crate) count: Option<usize>,
    /// How the inputs' values are drawn
    #[arg(long, value_name = "HOW", value_enum, default_value_t = ValuesKind::Range)]
    pub(crate) values: ValuesKind,
    /// Pass over recorded calls with a larger tensor
    #[arg(long, value_name = "N", default_value_t = 1 << 24)]
    pub(crate) max_elements: usize,
    /// Apply each case's chain so many times, to its own output: the first operand of its first node is what its output becomes
    #[arg(long, value_name = "N", requires = "cases", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repeat: Option<u32>,
    /// Whose errors, such as torch:cpu?mkldnn=off; may be given several times
    #[arg(long = "executor", short, value_name = "E", default_value = "torch:cpu")]
    pub(crate) executors: Vec<String>,
    /// Also write the table as comma-separated values
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Seconds that one executor may take for one case
    #[arg(long, value_name = "S", default_value_t = 300.0, value_parser = seconds)]
    pub(crate) timeout: f64,
    #[command(flatten)]
    pub(crate) python: Python,
}
