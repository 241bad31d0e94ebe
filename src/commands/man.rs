//! `ulpian man [--out DIR]`

use anyhow::Context;
use clap::CommandFactory;

use crate::cli::{Cli, Man};
use crate::exit::{CouldNotRun, Exit, Failure};
use crate::report::Reporter;

pub(crate) fn run(args: &Man, reporter: &mut Reporter) -> Result<Exit, Failure> {
    // Fills in the usage lines and the flags that every command takes.
    let mut program = Cli::command();
    program.build();
    let Some(folder) = &args.out else {
        reporter.raw(&page(&clap_mangen::Man::new(program))?);
        return Ok(Exit::Clean);
    };
    let commands: Vec<_> = program.get_subcommands().filter(|c| c.get_name() != "help").cloned().collect();
    for command in std::iter::once(program).chain(commands) {
        let manual = clap_mangen::Man::new(command);
        let path = folder.join(manual.get_filename());
        let text = page(&manual)?;
        crate::files::replace(&path, |staged| std::fs::write(staged, text)).could_not_run()?;
        reporter.note(&format!("wrote {}", path.display()));
    }
    Ok(Exit::Clean)
}

fn page(manual: &clap_mangen::Man) -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    manual.render(&mut text).context("manual page").could_not_run()?;
    Ok(text)
}
