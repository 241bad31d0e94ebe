//! `ulpian judge CASE… [--executor E]…`

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use ulpian::pipeline::Interventions;
use ulpian::spec::case::Limits;
use ulpian::spec::verdict::{CaseVerdict, Cause};
use ulpian::spec::{Case, ExecutorId};
use ulpian::{Executors, pipeline};

use crate::cli::{self, Common};
use crate::environment;
use crate::exit::{CouldNotRun, Exit, Failure, contained};
use crate::inputs;
use crate::report::junit::JUnit;
use crate::report::{Reporter, table};

pub(crate) fn run(args: &cli::Judge, common: &Common, reporter: &mut Reporter) -> Result<Exit, Failure> {
    let named = named_parties(&args.executors)?;
    let timeout = Duration::from_secs_f64(args.timeout);
    let mut executors = environment::executors(&args.python, common, timeout, reporter);
    let mut junit = args.junit.as_ref().map(|_| JUnit::new());
    let mut summary = table::Summary::default();
    let mut absent = BTreeMap::new();

    let (files, mut exit) = inputs::find_all(&args.cases, reporter);
    reporter.progress().start(files.len());
    for file in &files {
        let start = Instant::now();
        let judged = contained(|| one(file, &named, &mut executors, reporter)).unwrap_or_else(|| {
            Err(Failure {
                exit: Exit::CouldNotRun,
                error: anyhow::anyhow!("{}: internal error", file.display()),
            })
        });
        let took = start.elapsed();
        match judged {
            Ok(verdict) => {
                let code = code(&verdict, &named, args.expect);
                exit = exit.max(code);
                summary.add(&verdict, took);
                absent.extend(table::unavailable(&verdict));
                let text = table::case(&verdict);
                if let Some(junit) = &mut junit {
                    junit.add(&verdict, took, code == Exit::CouldNotRun, &text);
                }
                reporter.record(&verdict)?;
                reporter.text(&format!("{text}\n"));
            }
            Err(failure) => {
                exit = exit.max(failure.exit);
                summary.add_failure();
                if let Some(junit) = &mut junit {
                    junit.add_error(file, &failure.error);
                }
                reporter.error(&failure.error);
            }
        }
        reporter.progress().step();
        if reporter.reader_is_gone() {
            break;
        }
    }
    reporter.progress().finish();
    reporter.text(&table::not_heard(&absent));
    if summary.len() > 1 {
        reporter.text(&summary.text());
    }
    if let (Some(junit), Some(path)) = (junit, &args.junit) {
        junit.write(path).could_not_run()?;
    }
    Ok(exit)
}

pub(crate) fn named_parties(texts: &[String]) -> Result<Vec<ExecutorId>> {
    let mut parties = Vec::new();
    for text in texts {
        let id: ExecutorId = text.parse()?;
        Executors::check(&id)?;
        if !parties.contains(&id) {
            parties.push(id);
        }
    }
    Ok(parties)
}

fn one(
    file: &Path,
    named: &[ExecutorId],
    executors: &mut Executors,
    reporter: &Reporter,
) -> Result<CaseVerdict, Failure> {
    let case = Case::read(file, Limits::default()).map_err(anyhow::Error::from)?;
    let parties = if named.is_empty() { Executors::default_parties(&case) } else { named.to_vec() };
    let progress = reporter.progress();
    progress.say(format!("{}: truth", case.name));
    let mut watch = |who: &ExecutorId| progress.say(format!("{}: {who}", case.name));
    let mut verdict = pipeline::judge(&case, &parties, executors, Interventions::All, &mut watch)
        .with_context(|| file.display().to_string())
        .could_not_run()?;
    verdict.file = Some(file.display().to_string());
    Ok(verdict)
}

/// The exit code of one case. Whoever was named and could not be heard, and whoever failed, counts as not run; with `expect`
/// only the case's own expectation counts, where it has one.
fn code(verdict: &CaseVerdict, named: &[ExecutorId], expect: bool) -> Exit {
    if let (true, Some(expectation)) = (expect, &verdict.expectation) {
        return if expectation.met { Exit::Clean } else { Exit::Fault };
    }
    let at_nodes = || verdict.nodes.iter().flat_map(|n| &n.executors);
    if !at_nodes().any(|e| e.status == "ok") {
        return Exit::CouldNotRun;
    }
    let is_named = |name: &str| named.iter().any(|id| id.to_string() == name);
    let not_run =
        at_nodes().any(|e| e.status == "failed" || (e.status == "unavailable" && is_named(&e.executor)));
    let found = match verdict.verdict.cause {
        cause if cause.is_fault() => Exit::Fault,
        Cause::Inconclusive => Exit::Undecided,
        _ => Exit::Clean,
    };
    if not_run { found.max(Exit::CouldNotRun) } else { found }
}
