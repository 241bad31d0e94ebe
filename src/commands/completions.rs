//! `ulpian completions SHELL`

use clap::CommandFactory;

use crate::cli::{Cli, Completions};
use crate::exit::{Exit, Failure};
use crate::report::Reporter;

pub(crate) fn run(args: &Completions, reporter: &mut Reporter) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "ulpian", &mut script);
    reporter.raw(&script);
    Ok(Exit::Clean)
}
