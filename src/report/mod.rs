//! All printing: results on standard output, progress and notes on standard error.

pub(crate) mod bench;
pub(crate) mod campaign;
pub(crate) mod doctor;
pub(crate) mod generated;
pub(crate) mod junit;
pub(crate) mod order;
pub(crate) mod patterns;
pub(crate) mod progress;
pub(crate) mod table;

use std::io::Write;

use serde::Serialize;

use crate::cli::Common;
use progress::Progress;

/// Where a command's words go.
pub(crate) struct Reporter {
    json: bool,
    quiet: bool,
    progress: Progress,
    reader_gone: bool,
    lost: Option<std::io::Error>,
}

impl Reporter {
    /// A reporter that keeps to the common flags.
    pub(crate) fn new(common: &Common) -> Reporter {
        Reporter {
            json: common.json,
            quiet: common.quiet,
            progress: Progress::new(common.quiet || common.json),
            reader_gone: false,
            lost: None,
        }
    }

    /// Has whoever read standard output gone away (`| head`)? Then there is no point in going on.
    pub(crate) fn reader_is_gone(&self) -> bool {
        self.reader_gone
    }

    /// Why standard output could not be written, where that is not its reader's wish.
    pub(crate) fn lost_output(&mut self) -> Option<std::io::Error> {
        self.lost.take()
    }

    /// Text for people on standard output; nothing under `--json`. Colour codes are dropped unless a terminal reads it and
    /// NO_COLOR and CLICOLOR allow them.
    pub(crate) fn text(&mut self, text: &str) {
        if !self.json {
            self.out(text.as_bytes());
        }
    }

    /// One object on a line of its own under `--json`; nothing otherwise.
    pub(crate) fn record<T: Serialize>(&mut self, record: &T) -> anyhow::Result<()> {
        if self.json {
            let mut line = serde_json::to_vec(record)?;
            line.push(b'\n');
            self.out(&line);
        }
        Ok(())
    }

    /// Raw bytes on standard output whatever the flags: for what is itself a file (a script, a manual page).
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.out(bytes);
    }

    /// A remark on standard error; nothing under `--quiet`.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            self.progress.suspend(|| note(text));
        }
    }

    /// An error on standard error.
    pub(crate) fn error(&self, error: &anyhow::Error) {
        self.progress.suspend(|| note(&format!("error: {}", sentence(error))));
    }

    /// A voice for work that goes on elsewhere.
    pub(crate) fn news(&self) -> News {
        News { quiet: self.quiet, progress: self.progress.clone() }
    }

    /// What is being done, with a bar where the number of steps is known.
    pub(crate) fn progress(&self) -> &Progress {
        &self.progress
    }

    fn out(&mut self, bytes: &[u8]) {
        if self.reader_gone {
            return;
        }
        let write = || {
            let mut out = anstream::stdout().lock();
            out.write_all(bytes).and_then(|()| out.flush())
        };
        if let Err(error) = self.progress.suspend(write) {
            self.reader_gone = true;
            self.lost = (error.kind() != std::io::ErrorKind::BrokenPipe).then_some(error);
        }
    }
}

/// An error and its causes, without a cause that the error before it has told already.
fn sentence(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string).filter(|c| !c.is_empty()) {
        if text.ends_with(&cause) {
            continue;
        }
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&cause);
    }
    text
}

/// Speaks on standard error from wherever long work is done.
#[derive(Clone)]
pub(crate) struct News {
    quiet: bool,
    progress: Progress,
}

impl News {
    /// A remark that stays on the screen.
    pub(crate) fn tell(&self, text: &str) {
        if !self.quiet {
            self.progress.suspend(|| note(text));
        }
    }

    /// What is being done now, where there is a progress line.
    pub(crate) fn show(&self, text: &str) {
        self.progress.say(text);
    }
}

/// A line on standard error. One that cannot be written is lost: there is nowhere left to say so.
pub(crate) fn note(text: &str) {
    let mut err = anstream::stderr().lock();
    let _ = writeln!(err, "{text}");
}
