//! Progress on standard error: only where a terminal reads it.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A line that says what is being done, and how far it is.
#[derive(Clone)]
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Draws nothing where `hidden` or where standard error is no terminal.
    pub(crate) fn new(hidden: bool) -> Progress {
        let visible = !hidden && std::io::stderr().is_terminal();
        let target = if visible { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        Progress { bar: ProgressBar::with_draw_target(None, target) }
    }

    /// Begins work of `steps` steps.
    pub(crate) fn start(&self, steps: usize) {
        let several = "{spinner} {pos}/{len} {wide_msg} {elapsed}";
        self.start_as(if steps > 1 { several } else { "{spinner} {wide_msg} {elapsed}" }, steps);
    }

    /// Goes on with long work of `steps` steps, of which `done` are done, and estimates the time that the others take.
    pub(crate) fn go_on(&self, steps: usize, done: usize) {
        self.start_as("{spinner} {pos}/{len} {wide_msg} {elapsed}, {eta} left", steps);
        self.bar.set_position(done as u64);
        self.bar.reset_eta();
    }

    fn start_as(&self, template: &str, steps: usize) {
        if self.bar.is_hidden() {
            return;
        }
        let style = ProgressStyle::with_template(template);
        // Before the length, which draws at once.
        self.bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        self.bar.set_length(steps as u64);
        self.bar.enable_steady_tick(Duration::from_millis(150));
    }

    /// Names what is being done now.
    pub(crate) fn say(&self, message: impl Into<String>) {
        self.bar.set_message(message.into());
    }

    /// One step is done.
    pub(crate) fn step(&self) {
        self.bar.inc(1);
    }

    /// Takes the line away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// Takes the line away while `print` writes elsewhere on the terminal.
    pub(crate) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }
}
