//! `ulpian report --ledger FILE --out DIR`

use anyhow::Context;
use ulpian::campaign::report::{self, ReportError, Sources};
use ulpian::records::Reported;

use crate::cli;
use crate::exit::{Exit, Failure};
use crate::report::Reporter;

pub(crate) fn run(args: &cli::Report, reporter: &mut Reporter) -> Result<Exit, Failure> {
    let validity = args.validity.iter().map(|text| {
        let (name, file) = text
            .split_once('=')
            .filter(|(name, file)| !name.is_empty() && !file.is_empty())
            .with_context(|| format!("--validity {text}: expected NAME=FILE"))?;
        Ok((name.to_owned(), file.into()))
    });
    let sources =
        Sources { ledgers: args.ledger.clone(), validity: validity.collect::<anyhow::Result<_>>()? };
    let summary = report::write(&sources, &args.out).map_err(|error| Failure {
        exit: match error {
            ReportError::Write(_) => Exit::CouldNotRun,
            _ => Exit::BadInput,
        },
        error: error.into(),
    })?;
    let reported = Reported {
        html: args.out.join("index.html").display().to_string(),
        markdown: args.out.join("report.md").display().to_string(),
        cases: summary.cases.values().sum(),
        executions: summary.executions.values().sum(),
        findings: summary.findings(),
        complete: summary.complete(),
    };
    reporter.record(&reported)?;
    reporter.text(&format!("wrote {} and {}\n", reported.html, reported.markdown));
    if !reported.complete {
        reporter.note("the campaign has not run to its end: the report is of what is done so far");
    }
    Ok(Exit::Clean)
}
