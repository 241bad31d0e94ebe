//! `ulpian report` as scripts see it: a campaign over recorded and replayed parties, as a page and as Markdown.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;

use common::{file, run, text};
use ulpian::records::Reported;

/// A sound division and then a weak one: x / 13 by the rounded reciprocal.
const CASE: &str = r#"{"format": "ulpian-case/1", "name": "NAME", "source": "a test <b>&</b>",
    "nodes": [
        {"id": "scaled", "op": "mul", "args": {"input": {"dtype": "float32", "shape": [2], "data": [84.5, 24.75]}, "other": 2}},
        {"id": "split", "op": "div", "args": {"input": "%scaled", "other": 13}}],
    "outputs": ["split"]}"#;

fn campaign(folder: &Path) -> std::path::PathBuf {
    for name in ["first", "second"] {
        file(folder, &format!("cases/{name}.json"), CASE.replace("NAME", name));
    }
    let ledger = folder.join("divisions.ledger");
    let cases = folder.join("cases");
    let said = run(&[
        "campaign",
        "run",
        "--cases",
        text(&cases),
        "--executor",
        "replay:subtract-then-scale",
        "--executor",
        "replay:reciprocal-multiply",
        "--ledger",
        text(&ledger),
        "--quiet",
    ]);
    assert!(said.code == 1 || said.code == 3, "{}", said.err);
    ledger
}

#[test]
fn the_page_and_the_summary_name_what_was_found() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = campaign(dir.path());
    let out = dir.path().join("page");
    let findings = out.join("findings");
    let said = run(&[
        "report",
        "--json",
        "--ledger",
        text(&ledger),
        "--out",
        text(&out),
        "--findings",
        text(&findings),
    ]);
    assert_eq!(said.code, 0, "{}", said.err);
    let reported: Reported = serde_json::from_str(said.out.trim()).unwrap();
    assert_eq!((reported.cases, reported.findings, reported.complete), (2, 1, true));
    let html = std::fs::read_to_string(&reported.html).unwrap();
    let markdown = std::fs::read_to_string(&reported.markdown).unwrap();
    for page in [&html, &markdown] {
        assert!(page.contains("replay:reciprocal-multiply"));
    }
    assert!(markdown.contains("| div | 4 |"), "{markdown}");
    assert!(
        html.contains(r#"data-cause="framework" data-op="div""#) && html.contains("mul → div"),
        "the finding and its chain"
    );
    // Self-contained: nothing is fetched.
    for from_elsewhere in ["http://", "https://", "src=", "@import", "<link"] {
        let found = html.replace("http://www.w3.org/2000/svg", "").contains(from_elsewhere);
        assert!(!found, "{from_elsewhere}");
    }
    assert_eq!(
        html.matches("<svg").count(),
        3 + reported.findings,
        "three figures and a pattern for each finding"
    );
}

#[test]
fn what_is_no_ledger_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let other = file(dir.path(), "other.txt", "not a ledger");
    let ledger = campaign(dir.path());
    let out = dir.path().join("page");
    let validity = format!("sort={}", text(&other));
    for (args, message) in [
        (vec!["--ledger", text(&other)], "other.txt"),
        (vec!["--ledger", "absent.ledger"], "absent.ledger"),
        (vec!["--ledger", text(&ledger), "--validity", "sort"], "expected NAME=FILE"),
        (vec!["--ledger", text(&ledger), "--validity", &validity], "other.txt: its last line is no summary"),
    ] {
        let said = run(&[&["report", "--out", text(&out)][..], &args].concat());
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{args:?}");
        assert!(said.err.contains(message), "{message}: {}", said.err);
        assert!(!out.exists(), "{args:?}");
    }
}
