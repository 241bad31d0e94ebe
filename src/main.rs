//! The command line. Arguments are read, text is printed and the exit code is chosen here and below, nowhere else.

mod cli;
mod commands;
mod environment;
mod exit;
mod files;
mod inputs;
mod interrupt;
mod report;

fn main() -> std::process::ExitCode {
    interrupt::handle();
    exit::guarded(|| commands::run(cli::parse()))
}
