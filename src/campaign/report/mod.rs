//! A campaign as a page to read: tables and figures of its ledger, one self-contained HTML file and a Markdown summary.
//!
//! The tables and figures are those of SORT's evaluation, with the truth beside: Table I (valid inputs by op and generator), Table II
//! (findings by op and kind under each criterion, and what the judge says of them), Figure 13 (average difference by op, and how
//! often an op takes part in what is found, in chains and alone), Figure 14 (a pattern with the error of each node), and the growth
//! of error along chains.

mod chain;
mod diagram;
mod entries;
mod figures;
mod html;
mod markdown;
mod ops;
mod summary;
mod tables;

use std::path::{Path, PathBuf};

use ulpian_mining::files;

use super::{CampaignError, Ledger, Source};
use crate::generation::Recipe;

pub use chain::Edge;
pub use entries::{Entry, Kind, Shown};
pub use ops::{OpRow, Part};
pub use summary::{Criterion, Growth, Party, Step, Summary, Validity};

/// The folder of the reproducers, below the page's.
const FINDINGS: &str = "findings";
/// The folder of the figures that the Markdown summary shows.
const FIGURES: &str = "figures";

/// What a report is made from.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The campaign's ledger, and those that it is compared with: of a campaign with `--single-op`, of campaigns with `--baseline`.
    pub ledgers: Vec<PathBuf>,
    /// What `generate --json` printed, by the generator's name.
    pub validity: Vec<(String, PathBuf)>,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A ledger.
    #[error(transparent)]
    Campaign(#[from] CampaignError),
    /// A file of the report that cannot be written.
    #[error(transparent)]
    Write(ulpian_mining::Error),
    /// Two ledgers of which one report cannot be made.
    #[error(
        "{} and {} are both {what}; a report is of one campaign, beside it at most one with --single-op and any with --baseline",
        .first.display(),
        .second.display()
    )]
    Alike {
        /// A ledger.
        first: PathBuf,
        /// Another.
        second: PathBuf,
        /// What they are.
        what: &'static str,
    },
    /// Baselines alone.
    #[error(
        "every ledger is a baseline's, which is compared with a campaign: give that campaign's ledger too"
    )]
    BaselinesAlone,
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

/// Reads the ledgers and writes into `out`, which is made where needed: `index.html`, `report.md` with its `figures`, and the
/// reproducers of the findings.
///
/// # Errors
/// [`ReportError`], naming the file.
pub fn write(sources: &Sources, out: &Path) -> Result<Summary, ReportError> {
    let summary = read(sources)?;
    let figures = figures::all(&summary)?;
    let mut written = vec![
        (PathBuf::from("index.html"), html::page(&summary, &figures)),
        (PathBuf::from("report.md"), markdown::text(&summary, &figures)),
    ];
    for figure in &figures {
        if let Some(svg) = &figure.svg {
            written.push((Path::new(FIGURES).join(format!("{}.svg", figure.name)), figures::file(svg)));
        }
    }
    for shown in summary.entries.iter().flat_map(|entry| &entry.findings) {
        let Some(small) = &shown.small else { continue };
        written.push((Path::new(FINDINGS).join(format!("{}.json", small.name)), small.minimised.clone()));
        if let Some(script) = &small.repro {
            written.push((Path::new(FINDINGS).join(format!("{}.py", small.name)), script.clone()));
        }
    }
    for (name, text) in written {
        files::write_text(&out.join(name), |out| out.write_all(text.as_bytes()))
            .map_err(ReportError::Write)?;
    }
    Ok(summary)
}

/// The ledgers, each read as what its plan says it is.
fn read(sources: &Sources) -> Result<Summary, ReportError> {
    let mut campaign: Option<(&PathBuf, Ledger)> = None;
    let mut single: Option<(&PathBuf, Ledger, Recipe)> = None;
    let mut baselines = Vec::new();
    for file in &sources.ledgers {
        let ledger = Ledger::open(file)?;
        let alike =
            |first: &PathBuf, what| ReportError::Alike { first: first.clone(), second: file.clone(), what };
        match ledger.plan()?.source {
            Source::Generated(recipe) if recipe.baseline.is_some() => baselines.push((ledger, recipe)),
            Source::Generated(recipe) if recipe.single_op => match &single {
                Some((first, ..)) => return Err(alike(first, "of single ops")),
                None => single = Some((file, ledger, recipe)),
            },
            _ => match &campaign {
                Some((first, _)) => return Err(alike(first, "campaigns of their own")),
                None => campaign = Some((file, ledger)),
            },
        }
    }
    let mut summary = match (&campaign, &single) {
        (Some((_, ledger)), _) => Summary::new(ledger)?,
        (None, Some((_, ledger, _))) => Summary::new(ledger)?,
        (None, None) => return Err(ReportError::BaselinesAlone),
    };
    if let (Some(_), Some((_, ledger, recipe))) = (&campaign, &single) {
        summary.add_single(ledger, recipe)?;
    }
    for (ledger, recipe) in &baselines {
        summary.add_cases(recipe, &ledger.cases()?);
    }
    for (name, file) in &sources.validity {
        summary.add_validity(name, file)?;
    }
    Ok(summary)
}

/// The script of a finding as the page links to it, where there is one.
fn script(shown: &Shown) -> Option<String> {
    let small = shown.small.as_ref().filter(|small| small.repro.is_some())?;
    Some(format!("{FINDINGS}/{}.py", small.name))
}

/// The small case of a finding as the page links to it, where there is one.
fn small_case(shown: &Shown) -> Option<String> {
    shown.small.as_ref().map(|small| format!("{FINDINGS}/{}.json", small.name))
}
