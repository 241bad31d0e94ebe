//! What can be wrong with a case.

/// Why an op does not accept its arguments. Displayed after the place (file, node, argument) by [`CaseError`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct InferError {
    /// The argument at fault, where it is one.
    pub argument: Option<&'static str>,
    /// What is wrong, what was given and what would be right.
    pub message: String,
}

impl InferError {
    /// An error about one argument.
    pub fn argument(argument: &'static str, message: impl Into<String>) -> InferError {
        InferError { argument: Some(argument), message: message.into() }
    }

    /// An error about how arguments go together.
    pub fn call(message: impl Into<String>) -> InferError {
        InferError { argument: None, message: message.into() }
    }
}

/// A case that cannot be read. Every variant names the file, and the place within it where there is one.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    /// A file that cannot be read or written.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// Not JSON, or not of the case's form.
    #[error("{file}: {message}")]
    Json {
        /// The file.
        file: String,
        /// Line, column and what is wrong.
        message: String,
    },
    /// A tensors file that cannot be used.
    #[error("{file}: tensors `{tensors}`: {message}")]
    Tensors {
        /// The case's file.
        file: String,
        /// The tensors file as the case names it.
        tensors: String,
        /// What is wrong.
        message: String,
    },
    /// A field of the case.
    #[error("{file}: {place}: {message}")]
    Field {
        /// The file.
        file: String,
        /// Such as `node ln, argument weight` or `observed[2]`.
        place: String,
        /// What is wrong, and what would be right.
        message: String,
    },
}
