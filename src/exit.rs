//! Exit codes, and what happens when the program itself is wrong.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

/// The end of a run. Over several inputs the highest wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Done, and nothing to blame.
    Clean = 0,
    /// Done, and a fault found.
    Fault = 1,
    /// Bad usage or bad input.
    BadInput = 2,
    /// Could not run: a missing component, a crash.
    CouldNotRun = 3,
    /// Could not decide.
    Undecided = 4,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// Why a command ended early, and with which code.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) error: anyhow::Error,
}

/// Unless said otherwise an error is the input's.
impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Failure {
        Failure { exit: Exit::BadInput, error }
    }
}

/// Says that an error is not the input's.
pub(crate) trait CouldNotRun<T> {
    /// The same, ending with exit code 3.
    fn could_not_run(self) -> Result<T, Failure>;
}

impl<T> CouldNotRun<T> for anyhow::Result<T> {
    fn could_not_run(self) -> Result<T, Failure> {
        self.map_err(|error| Failure { exit: Exit::CouldNotRun, error })
    }
}

/// Runs the program so that a panic ends as a short report and exit code 3, never as a backtrace.
pub(crate) fn guarded(program: impl FnOnce() -> Exit) -> ExitCode {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map_or_else(String::new, |l| format!(" ({}:{})", l.file(), l.line()));
        let what = info
            .payload()
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| info.payload().downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "no message".to_owned());
        crate::report::note(&format!(
            "internal error: {what}{place}\nThis is a bug in Ulpian {}. Please report it with the case that shows it.",
            env!("CARGO_PKG_VERSION")
        ));
    }));
    catch_unwind(AssertUnwindSafe(program)).unwrap_or(Exit::CouldNotRun).into()
}

/// Runs one piece of work; a panic within costs that piece alone and is already reported by the hook.
pub(crate) fn contained<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}

#[cfg(test)]
mod tests {
    use super::Exit;

    #[test]
    fn the_codes_are_those_of_the_contract_and_ordered() {
        let all = [Exit::Clean, Exit::Fault, Exit::BadInput, Exit::CouldNotRun, Exit::Undecided];
        assert_eq!(all.map(|e| e as u8), [0, 1, 2, 3, 4]);
        assert!(all.is_sorted());
    }
}
