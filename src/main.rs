//! The command line. Arguments are read, text is printed and the exit code is chosen here and below, nowhere else.

mod cli;
mod commands;
mod environment;
mod exit;
mod files;
mod inputs;
mod interrupt;
mod report;

/// Keeps large blocks between calls: fresh pages from the system cost more than an elementwise op on them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    interrupt::handle();
    exit::guarded(|| commands::run(cli::parse()))
}
