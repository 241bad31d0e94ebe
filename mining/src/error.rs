//! What can go wrong with traces and patterns.

use std::path::{Path, PathBuf};

/// An error of this crate. Displayed, it names the file, and the line within it where there is one.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file that cannot be read or written.
    #[error("{}: {source}", .file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A line that is not what it should be.
    #[error("{}:{line}: {message}", .file.display())]
    Line {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong, and what would be right.
        message: String,
    },
    /// A file that is wrong as a whole.
    #[error("{}: {message}", .file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What is wrong, and what would be right.
        message: String,
    },
    /// Two graphs of one name, so that nobody could tell which of them holds a pattern.
    #[error("two graphs are named `{name}`; leave one of them out, or give it another name")]
    SameName {
        /// The name.
        name: String,
    },
    /// A number that cannot be meant.
    #[error("{message}")]
    Options {
        /// What is wrong, and what would be right.
        message: String,
    },
}

impl Error {
    /// `Io`.
    pub(crate) fn io(file: &Path, source: std::io::Error) -> Error {
        Error::Io { file: file.to_owned(), source }
    }

    /// `Line`.
    pub(crate) fn line(file: &Path, line: usize, message: impl Into<String>) -> Error {
        Error::Line { file: file.to_owned(), line, message: message.into() }
    }

    /// `File`.
    pub(crate) fn file(file: &Path, message: impl Into<String>) -> Error {
        Error::File { file: file.to_owned(), message: message.into() }
    }
}
