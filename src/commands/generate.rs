//! `ulpian generate --patterns P --features DIR --count N --out DIR`

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use ulpian::Executors;
use ulpian::generation::{Recipe, Sources};
use ulpian::mining::Values;
use ulpian::mining::generate::baseline::Baseline;
use ulpian::mining::generate::case_name;
use ulpian::records::{GenerateSummary, GeneratedInput};
use ulpian::spec::trace::Pattern;
use ulpian::spec::{Case, ExecutorId, Outcome};

use crate::cli::{self, Common};
use crate::environment;
use crate::exit::{CouldNotRun, Exit, Failure};
use crate::report::{Reporter, generated};

pub(crate) fn run(args: &cli::Generate, common: &Common, reporter: &mut Reporter) -> Result<Exit, Failure> {
    let mut check = args.check.as_ref().map(|name| Check::new(name, args, common, reporter)).transpose()?;
    let sources =
        Sources::read(recipe(&args.inputs, args.count, common.seed)).map_err(anyhow::Error::from)?;
    let inputs = sources.inputs().map_err(anyhow::Error::from)?;
    let mut summary = GenerateSummary {
        inputs: args.count,
        patterns: inputs.patterns().len(),
        calls: sources.records().len(),
        left_out: sources.records().left_out().clone(),
        unfit: inputs.unfit().to_vec(),
        ..GenerateSummary::default()
    };
    reporter.progress().start(args.count);
    for number in 0..args.count {
        let (pattern, index) = inputs.place(number);
        let name = case_name(pattern, index);
        reporter.progress().say(name.clone());
        let mut line = GeneratedInput { case: name, pattern: pattern.id, ..GeneratedInput::default() };
        match inputs.make(number) {
            Ok(case) => {
                line.valid = true;
                summary.valid += 1;
                if let Some(out) = &args.out {
                    let path = out.join(format!("{}.json", case.name));
                    write(&case, &path).could_not_run()?;
                    line.file = Some(path.display().to_string());
                }
                if let Some(check) = &mut check {
                    let (accepted, why) = check.run(&case).could_not_run()?;
                    summary.accepted = Some(summary.accepted.unwrap_or(0) + usize::from(accepted));
                    line.accepted = Some(accepted);
                    line.why = why;
                }
            }
            Err(why) => line.why = Some(why),
        }
        let ops = summary.by_op.entry(key(pattern)).or_default();
        ops.0 += usize::from(line.accepted.unwrap_or(line.valid));
        ops.1 += 1;
        reporter.record(&line)?;
        reporter.progress().step();
        if reporter.reader_is_gone() {
            break;
        }
    }
    reporter.progress().finish();
    reporter.record(&summary)?;
    reporter.text(&generated::summary(&summary, args.out.as_deref()));
    // A baseline's invalid inputs are what it is run for; one of the generator's that is refused is a fault.
    let refused = summary.accepted.is_some_and(|n| n < summary.valid) || summary.valid < summary.inputs;
    Ok(if refused && args.inputs.baseline.is_none() { Exit::Fault } else { Exit::Clean })
}

/// What the flags ask for.
pub(crate) fn recipe(args: &cli::Inputs, count: usize, seed: u64) -> Recipe {
    Recipe {
        patterns: args.patterns.clone(),
        features: args.features.clone(),
        count,
        seed,
        values: match args.values {
            cli::ValuesKind::Range => Values::Range,
            cli::ValuesKind::Sketch => Values::Sketch,
        },
        baseline: args.baseline.map(|b| match b {
            cli::BaselineKind::Uniform => Baseline::Uniform,
            cli::BaselineKind::Mutate => Baseline::Mutate,
        }),
        single_op: args.single_op,
        max_elements: args.max_elements,
    }
}

/// Asks an executor whether it takes what was generated.
struct Check {
    id: ExecutorId,
    executors: Executors,
}

impl Check {
    fn new(name: &str, args: &cli::Generate, common: &Common, reporter: &Reporter) -> anyhow::Result<Check> {
        let id: ExecutorId = name.parse()?;
        Executors::check(&id)?;
        let timeout = Duration::from_secs_f64(args.timeout);
        Ok(Check { id, executors: environment::executors(&args.python, common, timeout, reporter) })
    }

    fn run(&mut self, case: &Case) -> anyhow::Result<(bool, Option<String>)> {
        match self.executors.run(&self.id, case) {
            Outcome::Ok(_) => Ok((true, None)),
            Outcome::Failed { reason, .. } => Ok((false, Some(reason))),
            Outcome::Unavailable { reason, remedy } => bail!("{}: {reason}; {remedy}", self.id),
        }
    }
}

fn write(case: &Case, path: &Path) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    Ok(case.write(path)?)
}

/// What the counts are kept by: the op of a single-op pattern, the size of a larger one.
fn key(pattern: &Pattern) -> String {
    match pattern.nodes.as_slice() {
        [op] => op.clone(),
        nodes => format!("{} nodes", nodes.len()),
    }
}
