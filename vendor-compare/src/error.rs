//! What can go wrong between Ulpian and those it hears.

use ulpian_spec::Outcome;

/// Why an executor, or a request to a worker, gave nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It cannot run here, or cannot run this case.
    #[error("{reason}; {remedy}")]
    Unavailable {
        /// Why.
        reason: String,
        /// What to do about it.
        remedy: String,
    },
    /// What was asked for is not there, or is not what it should be.
    #[error("{reason}; {remedy}")]
    Input {
        /// Why.
        reason: String,
        /// What to do about it.
        remedy: String,
    },
    /// An exception: in a node, or elsewhere in the worker.
    #[error("{}{kind}: {message}", .node.as_ref().map_or(String::new(), |n| format!("node {n}: ")))]
    Exception {
        /// The node.
        node: Option<String>,
        /// The exception's class.
        kind: String,
        /// Its text.
        message: String,
    },
    /// The worker process ended in the middle of its work.
    #[error("the worker ended ({status}){}", last_words(.stderr))]
    Died {
        /// Exit code or signal.
        status: String,
        /// The end of what it wrote to standard error.
        stderr: String,
    },
    /// The worker did not answer in time, and was killed.
    #[error("no answer within {seconds} s, so the worker was killed{}", last_words(.stderr))]
    Timeout {
        /// The limit.
        seconds: u64,
        /// The end of what it wrote to standard error.
        stderr: String,
    },
    /// The worker wrote something that is no answer, and was killed.
    #[error("the worker broke the protocol ({what}) and was killed{}", last_words(.stderr))]
    Protocol {
        /// What came instead.
        what: String,
        /// The end of what it wrote to standard error.
        stderr: String,
    },
    /// A file or a process of ours.
    #[error("{what}: {message}")]
    System {
        /// What was attempted.
        what: String,
        /// What the system said.
        message: String,
    },
}

fn last_words(stderr: &str) -> String {
    let text = stderr.trim();
    if text.is_empty() { String::new() } else { format!("; its last words:\n{text}") }
}

impl Error {
    /// `Unavailable`.
    pub fn unavailable(reason: impl Into<String>, remedy: impl Into<String>) -> Error {
        Error::Unavailable { reason: reason.into(), remedy: remedy.into() }
    }

    /// `System`, from what was attempted and the system's error.
    pub(crate) fn system(what: impl Into<String>, error: &std::io::Error) -> Error {
        Error::System { what: what.into(), message: error.to_string() }
    }
}

impl From<Error> for Outcome {
    fn from(error: Error) -> Outcome {
        match error {
            Error::Unavailable { reason, remedy } => Outcome::Unavailable { reason, remedy },
            other => Outcome::failed(other.to_string()),
        }
    }
}
