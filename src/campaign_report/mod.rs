//! A campaign as a page to read: tables and figures of its ledger, one self-contained HTML file and a Markdown summary.
//!
//! The tables and figures are those of SORT's evaluation, with the truth beside: Table I (valid inputs by op and generator), Table II
//! (findings by op under each criterion, and what the judge says of SORT's), Figure 13 (average difference by op, and how often an
//! op takes part in an erroneous execution), Figure 14 (a pattern with the error of each node), and the growth of error along
//! chains.

mod figures;
mod html;
mod markdown;
mod summary;

use std::path::{Path, PathBuf};

use crate::campaign::{CampaignError, Ledger};

pub use summary::{Criterion, Depth, OpRow, Shown, Summary, Validity};

/// What a report is made from.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The campaign's ledger.
    pub ledger: PathBuf,
    /// The ledger of a campaign with `--single-op`, to compare with.
    pub single: Option<PathBuf>,
    /// What `generate --json` printed, by the generator's name.
    pub validity: Vec<(String, PathBuf)>,
    /// The folder of the scripts that `campaign findings` wrote, as the page is to link to it.
    pub findings: Option<PathBuf>,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A ledger.
    #[error(transparent)]
    Campaign(#[from] CampaignError),
    /// A file that cannot be read or written.
    #[error("{}: {source}", .file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file that `generate --json` did not print.
    #[error("{}: its last line is no summary of `ulpian generate --json`: {message}", .file.display())]
    Validity {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// A figure that could not be drawn.
    #[error("a figure could not be drawn: {0}")]
    Figure(String),
}

/// Reads the ledgers and writes `index.html` and `report.md` into `out`, which is made where needed.
///
/// # Errors
/// [`ReportError`], naming the file.
pub fn write(sources: &Sources, out: &Path) -> Result<Summary, ReportError> {
    let single = sources.single.as_deref().map(Ledger::open).transpose()?;
    let ledger = Ledger::open(&sources.ledger)?;
    let mut summary = Summary::new(&ledger, single.as_ref())?;
    for (name, file) in &sources.validity {
        summary.add_validity(name, file)?;
    }
    let io = |file: &Path| {
        let file = file.to_owned();
        move |source| ReportError::Io { file, source }
    };
    std::fs::create_dir_all(out).map_err(io(out))?;
    let links = sources.findings.as_deref();
    for (name, text) in
        [("index.html", html::page(&summary, links)?), ("report.md", markdown::text(&summary, links))]
    {
        let file = out.join(name);
        std::fs::write(&file, text).map_err(io(&file))?;
    }
    Ok(summary)
}
