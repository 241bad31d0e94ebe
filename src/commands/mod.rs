//! One file a command.

mod bench;
mod campaign;
mod completions;
mod doctor;
mod generate;
mod judge;
mod man;
mod mine;
mod order;
mod pack;
mod report;
mod trace;
mod truth;

use anyhow::Context;

use crate::cli::{Cli, Command};
use crate::exit::{CouldNotRun, Exit, Failure};
use crate::report::Reporter;

/// Runs the command that was asked for.
pub(crate) fn run(cli: Cli) -> Exit {
    let mut reporter = Reporter::new(&cli.common);
    let result = dispatch(&cli, &mut reporter);
    reporter.progress().finish();
    let exit = result.unwrap_or_else(|failure| {
        reporter.error(&failure.error);
        failure.exit
    });
    match reporter.lost_output() {
        None => exit,
        Some(error) => {
            reporter.error(&anyhow::Error::new(error).context("standard output"));
            exit.max(Exit::CouldNotRun)
        }
    }
}

fn dispatch(cli: &Cli, reporter: &mut Reporter) -> Result<Exit, Failure> {
    if let Some(threads) = cli.common.threads {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
        pool.context("cannot start the threads").could_not_run()?;
    }
    match &cli.command {
        Command::Doctor(args) => doctor::run(args, &cli.common, reporter),
        Command::Truth(args) => truth::run(args, reporter),
        Command::Judge(args) => judge::run(args, &cli.common, reporter),
        Command::Pack(args) => pack::run(args, &cli.common, reporter),
        Command::Trace(args) => trace::run(args, &cli.common, reporter),
        Command::Mine(args) => mine::run(args, reporter),
        Command::Generate(args) => generate::run(args, &cli.common, reporter),
        Command::Campaign(args) => campaign::run(args, &cli.common, reporter),
        Command::Report(args) => report::run(args, reporter),
        Command::Order(args) => order::run(args, &cli.common, reporter),
        Command::Bench(args) => bench::run(args, &cli.common, reporter),
        Command::Completions(args) => completions::run(args, reporter),
        Command::Man(args) => man::run(args, reporter),
    }
}
