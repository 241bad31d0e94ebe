//! `ulpian pack --out CASE.json OP [ARG=VALUE]…`

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use ulpian::pack::{Call, Recipe, pack};
use ulpian::records::Packed;

use crate::cli::{self, Common};
use crate::environment;
use crate::exit::{Exit, Failure};
use crate::report::Reporter;

/// Time for PyTorch to read one file.
const LOADING: Duration = Duration::from_secs(300);

pub(crate) fn run(args: &cli::Pack, common: &Common, reporter: &mut Reporter) -> Result<Exit, Failure> {
    let recipe = recipe(args)?;
    refuse_to_overwrite(args)?;
    let mut executors = environment::executors(&args.python, common, LOADING, reporter);
    let mut load_pt = |path: &Path| {
        executors.pool().load_pt(path).map(|list| list.into_iter().collect()).map_err(|e| e.to_string())
    };
    let case = pack(&recipe, &args.out, &mut load_pt).map_err(anyhow::Error::from)?;
    let packed = Packed {
        case: case.name.clone(),
        file: args.out.display().to_string(),
        nodes: case.nodes.len(),
        tensors: case.tensors.len(),
        observed: case.recorded_parties().into_iter().map(str::to_owned).collect(),
    };
    reporter.record(&packed)?;
    let observed = match packed.observed.as_slice() {
        [] => "nothing observed yet".to_owned(),
        names => format!("observed by {}", names.join(", ")),
    };
    let path = shell_word(&packed.file);
    let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let (nodes, tensors) = (count(packed.nodes, "node"), count(packed.tensors, "tensor"));
    reporter.text(&format!(
        "wrote {} ({nodes}, {tensors}, {observed})\njudge it with: ulpian judge {path}\n",
        packed.file
    ));
    Ok(Exit::Clean)
}

fn recipe(args: &cli::Pack) -> anyhow::Result<Recipe> {
    let stem = args.out.file_stem().context("--out needs a file name, such as case.json")?;
    if args.out.extension().is_none_or(|e| !e.eq_ignore_ascii_case("json")) {
        bail!("--out {}: a case file ends in .json", args.out.display());
    }
    let name = args.name.clone().unwrap_or_else(|| stem.to_string_lossy().into_owned());
    let mut nodes = args.nodes.iter().map(|text| Call::parse(text)).collect::<Result<Vec<_>, _>>()?;
    if let Some(op) = &args.op {
        nodes.push(Call::new(op, op, args.args.clone())?);
    }
    Ok(Recipe {
        name,
        source: args.source.clone().unwrap_or_default(),
        tensors: args.tensors.clone(),
        tensor: args.tensor.clone(),
        nodes,
        observed: args.observe.clone(),
        outputs: args.outputs.clone(),
    })
}

fn refuse_to_overwrite(args: &cli::Pack) -> anyhow::Result<()> {
    for path in [args.out.clone(), args.out.with_extension("safetensors")] {
        if !args.force && path.exists() {
            bail!("{} exists; give another --out, or --force to replace it", path.display());
        }
    }
    Ok(())
}

/// A path as a POSIX shell takes it.
fn shell_word(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:,@%".contains(c);
    if path.chars().all(plain) { path.to_owned() } else { format!("'{}'", path.replace('\'', r"'\''")) }
}
