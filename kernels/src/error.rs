use ulpian_spec::OpKind;

/// Why a GPU, or a library for it, did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A component is not on this machine, or not in a version that serves.
    #[error("{reason}")]
    Missing {
        /// What is not there.
        reason: String,
        /// How to get it.
        remedy: String,
    },
    /// A call that this executor does not take, whatever the machine.
    #[error("{op}: {reason}")]
    Unsupported {
        /// The op of the call.
        op: OpKind,
        /// What it does not take.
        reason: String,
    },
    /// A function of the driver or of a library returned an error.
    #[error("{call}: {status}{}", detail.as_deref().map(|d| format!(": {d}")).unwrap_or_default())]
    Status {
        /// The function.
        call: &'static str,
        /// The status by its documented name.
        status: String,
        /// What else is known: sizes, a log.
        detail: Option<String>,
        /// What to do about it.
        remedy: String,
        /// Must the process end before the GPU can be used again?
        sticky: bool,
    },
}

impl Error {
    /// What to do about it.
    pub fn remedy(&self) -> &str {
        match self {
            Error::Missing { remedy, .. } | Error::Status { remedy, .. } => remedy,
            Error::Unsupported { .. } => "hear another executor, or change the call",
        }
    }

    /// Is nothing to be had from the GPU before this process has ended?
    pub fn is_sticky(&self) -> bool {
        matches!(self, Error::Status { sticky: true, .. })
    }
}
