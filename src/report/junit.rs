//! JUnit XML, for CI systems that show it.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use ulpian::spec::verdict::CaseVerdict;

/// A report with one test case a case.
pub(crate) struct JUnit {
    suite: TestSuite,
}

impl JUnit {
    pub(crate) fn new() -> JUnit {
        JUnit { suite: TestSuite::new("ulpian judge") }
    }

    /// A case that was judged: it fails where its `expect` is unmet or, without one, where a fault was found. A party that
    /// was to be heard and could not be makes it an error.
    pub(crate) fn add(&mut self, verdict: &CaseVerdict, took: Duration, could_not_run: bool, text: &str) {
        let found = &verdict.verdict;
        let failure = match &verdict.expectation {
            Some(e) if e.met => None,
            Some(e) => Some(format!("expectation unmet: {}", e.unmet.join("; "))),
            None if found.cause.is_fault() => Some(found.because.clone()),
            None => None,
        };
        let status = match failure {
            Some(message) => failed(NonSuccessKind::Failure, found.cause.name(), &message),
            None if could_not_run => failed(NonSuccessKind::Error, "could not run", &found.because),
            None => TestCaseStatus::success(),
        };
        let mut case = TestCase::new(verdict.case.as_str(), status);
        if let Some(file) = &verdict.file {
            case.set_classname(file.as_str());
        }
        case.set_time(took);
        case.set_system_out(anstream::adapter::strip_str(text).to_string());
        self.suite.add_test_case(case);
    }

    /// A case that could not be judged at all.
    pub(crate) fn add_error(&mut self, file: &Path, error: &anyhow::Error) {
        let status = failed(NonSuccessKind::Error, "bad input", &format!("{error:#}"));
        let mut case = TestCase::new(file.display().to_string(), status);
        case.set_classname(file.display().to_string());
        self.suite.add_test_case(case);
    }

    /// Writes the report, whole or not at all.
    pub(crate) fn write(self, path: &Path) -> Result<()> {
        let mut report = Report::new("ulpian");
        report.add_test_suite(self.suite);
        let text = report.to_string().context("JUnit report")?;
        crate::files::replace(path, |staged| std::fs::write(staged, text))
    }
}

fn failed(kind: NonSuccessKind, class: &str, message: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    status.set_type(class).set_message(message);
    status
}
