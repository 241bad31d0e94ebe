//! Campaigns: many cases, judged one after another over several executors, with a ledger on disk.
//!
//! A [`Plan`] says what is judged and by whom; it names every input file with its digest. The [`Ledger`] is a SQLite file
//! that holds the plan and, in transactions of whole cases, every row that each case gave: a campaign that is killed at any instant goes
//! on where it was, and ends with the ledger that an undisturbed one has (its [timings](rows::SCHEMA) apart). [`run`] does the
//! work. What scripts read is in [`rows`].

mod axes;
pub mod criteria;
pub mod findings;
pub mod ledger;
pub mod minimise;
pub mod plan;
mod record;
pub mod report;
pub mod repro;
pub mod rows;
pub mod runner;
pub mod writer;

use std::path::{Path, PathBuf};

pub use ledger::Ledger;
pub use plan::{Plan, Source};
pub use runner::{Watch, run};
pub use writer::Writer;

/// Why a campaign cannot begin, go on, or be read.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// A file that cannot be read or written.
    #[error("{}: {source}", .file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The lock beside a ledger, which cannot be taken.
    #[error("{}: {source}; a ledger is written where this file can be beside it", .file.display())]
    Lock {
        /// The lock.
        file: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A ledger that is gone from under its writer.
    #[error(
        "{}: this ledger was moved or deleted while it was written; go on with it at its new place, or begin the campaign anew",
        .0.display()
    )]
    Moved(PathBuf),
    /// There is no such ledger.
    #[error("{}: there is no such ledger; `ulpian campaign run` begins one", .0.display())]
    Absent(PathBuf),
    /// A ledger that is empty: its campaign was ended before the plan was written.
    #[error("{}: this ledger is empty, its campaign never began; begin it with `ulpian campaign run`", .0.display())]
    Empty(PathBuf),
    /// A ledger that exists already.
    #[error(
        "{}: this ledger has a campaign already; go on with `ulpian campaign resume`, or name another file",
        .0.display()
    )]
    Exists(PathBuf),
    /// Another process writes it.
    #[error("{}: another process is writing this ledger; wait for its end, or end it", .0.display())]
    Busy(PathBuf),
    /// A file of another kind.
    #[error("{}: this is no ledger of a campaign; a ledger is written by `ulpian campaign run`", .0.display())]
    NotALedger(PathBuf),
    /// A later version's ledger.
    #[error(
        "{}: this ledger has version {found}, this Ulpian knows version {}; use a later Ulpian",
        .file.display(),
        rows::LEDGER_VERSION
    )]
    Newer {
        /// The ledger.
        file: PathBuf,
        /// Its version.
        found: i64,
    },
    /// A ledger that lost something.
    #[error("{}: this ledger is damaged ({what}); restore a copy of it, or begin the campaign anew", .file.display())]
    Damaged {
        /// The ledger.
        file: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// What SQLite says otherwise: a full disk, a folder that cannot be written.
    #[error("{}: {source}", .file.display())]
    Database {
        /// The ledger.
        file: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// An input file that is not what it was.
    #[error(
        "{}: this file has changed since the campaign began, so the campaign cannot go on; restore it, or begin anew",
        .0.display()
    )]
    Changed(PathBuf),
    /// Another version of Ulpian began it.
    #[error(
        "{}: Ulpian {began} began this campaign and this is {}; go on with that version, or begin anew",
        .file.display(),
        env!("CARGO_PKG_VERSION")
    )]
    OtherVersion {
        /// The ledger.
        file: PathBuf,
        /// The version that began it.
        began: String,
    },
    /// Inputs that cannot be generated.
    #[error(transparent)]
    Generation(#[from] crate::generation::GenerationError),
    /// Traces that cannot be read.
    #[error(transparent)]
    Mining(#[from] ulpian_mining::Error),
    /// What is to be read again when the campaign goes on, and cannot be.
    #[error("{}: not a regular file; a campaign reads its files again when it goes on, so name one that stays", .0.display())]
    NoFile(PathBuf),
    /// There is nothing to judge.
    #[error("there is no case to judge")]
    NoCases,
}

impl CampaignError {
    fn io(file: &Path, source: std::io::Error) -> CampaignError {
        CampaignError::Io { file: file.to_owned(), source }
    }
}
