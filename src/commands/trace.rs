//! `ulpian trace SOURCE… --out DIR`

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use ulpian::mining::files::{self, FEATURES_SUFFIX, GRAPH_SUFFIX, Limits};
use ulpian::records::{ModelName, TracedModel};
use ulpian::spec::DType;
use ulpian::vendor_compare::Error;
use ulpian::vendor_compare::tracing::{Options, Tracing};

use crate::cli::{self, Common};
use crate::environment;
use crate::exit::{CouldNotRun, Exit, Failure, contained};
use crate::report::Reporter;

pub(crate) fn run(args: &cli::Trace, common: &Common, reporter: &mut Reporter) -> Result<Exit, Failure> {
    let python = environment::python(&args.python, reporter).map_err(anyhow::Error::from).could_not_run()?;
    let tracing = Tracing::new(&python.executable, &std::env::temp_dir())
        .map_err(anyhow::Error::from)
        .could_not_run()?;
    let timeout = Duration::from_secs_f64(args.timeout);
    if let Some(kind) = &args.list {
        return list(&tracing, kind, timeout, reporter);
    }
    let out = args.out.as_deref().context("--out is missing")?;
    let stems = stems(&args.sources, args.dtype)?;
    let options = Options {
        dtype: args.dtype,
        batch: args.batch as usize,
        image_size: args.image_size.map(|side| side as usize),
        seed: common.seed,
        threads: common.threads.unwrap_or(1),
    };
    let mut exit = Exit::Clean;
    reporter.progress().start(args.sources.len());
    for (source, stem) in args.sources.iter().zip(&stems) {
        let work = || one(&tracing, source, stem, options, timeout, out, reporter);
        let traced = contained(work).unwrap_or_else(|| {
            Err(Failure { exit: Exit::CouldNotRun, error: anyhow::anyhow!("internal error") })
        });
        match traced {
            Ok(line) => {
                reporter.record(&line)?;
                reporter.text(&format!(
                    "{source}: {} nodes, {} records, {:.1} kB, {:.1} s\n",
                    line.nodes,
                    line.calls,
                    line.bytes as f64 / 1e3,
                    line.seconds
                ));
            }
            Err(failure) => {
                exit = exit.max(failure.exit);
                reporter.error(&failure.error.context(source.clone()));
            }
        }
        reporter.progress().step();
        if reporter.reader_is_gone() {
            break;
        }
    }
    Ok(exit)
}

fn list(tracing: &Tracing, kind: &str, timeout: Duration, reporter: &mut Reporter) -> Result<Exit, Failure> {
    for name in tracing.names(kind, timeout).map_err(failure)? {
        let model = format!("{kind}:{name}");
        reporter.text(&format!("{model}\n"));
        reporter.record(&ModelName { model })?;
    }
    Ok(Exit::Clean)
}

/// The two files' name for each source: what is no letter, digit, point, line or hyphen becomes a hyphen; the dtype that
/// was asked for stands behind.
fn stems(sources: &[String], dtype: Option<DType>) -> Result<Vec<String>, Failure> {
    let mut seen = BTreeMap::new();
    let mut stems = Vec::new();
    for source in sources {
        let keep = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
        let stem: String = source.chars().map(keep).collect();
        let stem = stem.trim_start_matches(['.', '-']).to_owned();
        if stem.is_empty() {
            return Err(
                anyhow::anyhow!("`{source}` names no source; `ulpian trace --help` lists them").into()
            );
        }
        let stem = dtype.map_or_else(|| stem.clone(), |dtype| format!("{stem}-{dtype}"));
        if let Some(other) = seen.insert(stem.clone(), source) {
            return Err(
                anyhow::anyhow!("{source} and {other} would write the same files; trace them apart").into()
            );
        }
        stems.push(stem);
    }
    Ok(stems)
}

fn one(
    tracing: &Tracing,
    source: &str,
    stem: &str,
    options: Options,
    timeout: Duration,
    out: &Path,
    reporter: &Reporter,
) -> Result<TracedModel, Failure> {
    let start = Instant::now();
    let progress = reporter.progress();
    progress.say(source);
    let mut doing = |what: &str| progress.say(format!("{source}: {what}"));
    let traced = tracing.trace(source, options, timeout, &mut doing).map_err(failure)?;

    let wrong = "what the tracer wrote is not valid; this is a bug in Ulpian";
    let graph = files::read_graph(&traced.graph, Limits::default()).context(wrong).could_not_run()?;
    let mut features =
        files::read_features(&traced.features, Limits::default()).context(wrong).could_not_run()?;
    for call in features.calls.iter_mut().filter(|call| call.unsupported.is_none()) {
        call.unsupported = call.infer().err().map(|reason| reason.to_string());
    }
    let paths = [GRAPH_SUFFIX, FEATURES_SUFFIX].map(|suffix| out.join(format!("{stem}{suffix}.zst")));
    files::write_graph(&paths[0], &graph).map_err(anyhow::Error::from).could_not_run()?;
    files::write_features(&paths[1], &features).map_err(anyhow::Error::from).could_not_run()?;
    for note in &graph.header.notes {
        reporter.note(&format!("{source}: {note}"));
    }
    let size = |path: &PathBuf| std::fs::metadata(path).map_or(0, |data| data.len());
    Ok(TracedModel {
        model: source.to_owned(),
        nodes: graph.nodes.len(),
        calls: features.calls.len(),
        unsupported: features.calls.iter().filter(|call| call.unsupported.is_some()).count(),
        graph: paths[0].display().to_string(),
        features: paths[1].display().to_string(),
        bytes: paths.iter().map(size).sum(),
        seconds: start.elapsed().as_secs_f64(),
    })
}

/// A source that is wrong is bad input; a package that is missing, a model that fails, and time that is up could not run.
fn failure(error: Error) -> Failure {
    let exit = if matches!(error, Error::Input { .. }) { Exit::BadInput } else { Exit::CouldNotRun };
    Failure { exit, error: error.into() }
}

#[cfg(test)]
mod tests {
    use super::{DType, stems};

    #[test]
    fn files_are_named_after_their_source() {
        let sources = ["torchvision:resnet18", "../my models/net.py:make", "transformers:llama?n=2"];
        let expected = ["torchvision-resnet18", "my-models-net.py-make", "transformers-llama-n-2"];
        assert_eq!(stems(&sources.map(str::to_owned), None).unwrap(), expected);
        assert_eq!(stems(&["a:b".to_owned()], Some(DType::BF16)).unwrap(), ["a-b-bfloat16"]);
        for sources in [vec![".."], vec!["a:b", "a-b"]] {
            assert!(stems(&sources.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>(), None).is_err());
        }
    }
}
