//! `ulpian bench CASE… | --patterns P --features D --count N`

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use ulpian::Executors;
use ulpian::campaign::plan::Cases;
use ulpian::generation::{Recipe, Sources};
use ulpian::growth::{Growth, repeat};
use ulpian::mining::Values;
use ulpian::pipeline::{self, Interventions};
use ulpian::records::{BENCH_FORMAT, BenchLine, BenchSummary};
use ulpian::spec::verdict::CaseVerdict;
use ulpian::spec::{Case, ExecutorId};

use crate::cli::{self, Common, ValuesKind};
use crate::environment;
use crate::exit::{CouldNotRun, Exit, Failure, contained};
use crate::report::{self, Reporter};
use crate::{files, inputs};

pub(crate) fn run(args: &cli::Bench, common: &Common, reporter: &mut Reporter) -> Result<Exit, Failure> {
    let start = Instant::now();
    let parties = super::judge::named_parties(&args.executors)?;
    let (found, sources, mut exit);
    let (cases, count) = match args.count {
        Some(count) => {
            sources = Sources::read(recipe(args, count, common.seed)).map_err(anyhow::Error::from)?;
            let inputs = sources.inputs().map_err(anyhow::Error::from)?;
            for unfit in inputs.unfit() {
                reporter.note(&format!("no input for pattern {}: {}", unfit.pattern, unfit.why));
            }
            exit = Exit::Clean;
            (Cases::Generated(inputs), count)
        }
        None => {
            (found, exit) = inputs::find_all(&args.cases, reporter);
            (Cases::Files(&found), found.len())
        }
    };
    let timeout = Duration::from_secs_f64(args.timeout);
    let mut executors = environment::executors(&args.python, common, timeout, reporter);
    let mut growth = Growth::default();
    let mut summary = BenchSummary { format: BENCH_FORMAT.to_owned(), ..BenchSummary::default() };
    reporter.progress().start(count);
    for number in 0..count {
        let judged = contained(|| one(&cases, number, args, &parties, &mut executors, reporter))
            .unwrap_or_else(|| {
                Err(Failure { exit: Exit::CouldNotRun, error: anyhow::anyhow!("internal error") })
            });
        match judged {
            Ok((case, verdict)) => {
                summary.cases += 1;
                summary.results += growth.add(&case, &verdict);
                for row in verdict.nodes.iter().flat_map(|n| &n.executors).filter(|e| e.status != "ok") {
                    exit = exit.max(Exit::CouldNotRun);
                    let why = row.reason.clone().unwrap_or_default();
                    summary.not_heard.entry(row.executor.clone()).or_insert(why);
                }
            }
            Err(failure) => {
                summary.failed += 1;
                exit = exit.max(failure.exit);
                reporter.error(&failure.error);
            }
        }
        reporter.progress().step();
        if reporter.reader_is_gone() {
            break;
        }
    }
    reporter.progress().finish();
    let lines = growth.lines();
    summary.deepest = lines.iter().map(|l| l.depth).max().unwrap_or(0);
    summary.seconds = start.elapsed().as_secs_f64();
    for line in &lines {
        reporter.record(line)?;
    }
    if let Some(path) = &args.csv {
        files::replace(path, |staged| write_csv(staged, &lines)).context("--csv").could_not_run()?;
    }
    reporter.record(&summary)?;
    reporter.text(&report::bench::table(&lines, &summary));
    Ok(exit)
}

fn one(
    cases: &Cases<'_>,
    number: usize,
    args: &cli::Bench,
    parties: &[ExecutorId],
    executors: &mut Executors,
    reporter: &Reporter,
) -> Result<(Case, CaseVerdict), Failure> {
    let numbered = cases.make(number);
    let mut case = numbered.case.map_err(|why| anyhow::anyhow!(why))?;
    let file = match cases {
        Cases::Files(files) => files[number].display().to_string(),
        Cases::Generated(_) => numbered.name,
    };
    if let Some(times) = args.repeat {
        case = repeat(&case, times as usize).with_context(|| file.clone())?;
    }
    let progress = reporter.progress();
    progress.say(format!("{}: truth", case.name));
    let mut watch = |who: &ExecutorId| progress.say(format!("{}: {who}", case.name));
    let verdict = pipeline::judge(&case, parties, executors, Interventions::None, &mut watch)
        .with_context(|| file)
        .could_not_run()?;
    Ok((case, verdict))
}

fn recipe(args: &cli::Bench, count: usize, seed: u64) -> Recipe {
    Recipe {
        patterns: args.patterns.clone(),
        features: args.features.clone(),
        count,
        seed,
        values: match args.values {
            ValuesKind::Range => Values::Range,
            ValuesKind::Sketch => Values::Sketch,
        },
        baseline: None,
        single_op: false,
        max_elements: args.max_elements,
    }
}

const FIGURES: [&str; 6] =
    ["local_ulp", "bound_ratio", "accumulated_ulp", "accumulated_rel", "growth", "condition"];

/// A row a line; a figure that does not exist is empty.
fn write_csv(path: &Path, lines: &[BenchLine]) -> std::io::Result<()> {
    let mut writer = csv::Writer::from_path(path)?;
    let plain = ["executor", "depth", "op", "results", "class_mismatches"].map(str::to_owned);
    let figures = FIGURES.iter().flat_map(|name| ["worst", "median"].map(|what| format!("{name}_{what}")));
    writer.write_record(plain.into_iter().chain(figures))?;
    for line in lines {
        let spreads = [
            line.local_ulp,
            line.bound_ratio,
            line.accumulated_ulp,
            line.accumulated_rel,
            line.growth,
            line.condition,
        ];
        let plain = [
            line.executor.clone(),
            line.depth.to_string(),
            line.op.clone(),
            line.results.to_string(),
            line.class_mismatches.to_string(),
        ];
        let figures = spreads.into_iter().flat_map(|s| match s {
            Some(s) => [s.worst.to_string(), s.median.to_string()],
            None => [String::new(), String::new()],
        });
        writer.write_record(plain.into_iter().chain(figures))?;
    }
    writer.flush()
}
