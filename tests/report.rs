//! `ulpian report` as scripts see it: a campaign over recorded and replayed parties, as a page and as Markdown.

#![allow(clippy::unwrap_used)]

mod common;
mod reported;

use std::path::Path;

use common::{file, run, text};
use reported::{EXECUTORS, campaign, faulty, found, invalid, plan, reproduce, thousands, write};
use ulpian::mining::generate::baseline::Baseline;
use ulpian::records::Reported;

fn report(args: &[&str], out: &Path) -> (Reported, String, String) {
    let said = run(&[&["report", "--json", "--out", text(out)], args].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    let reported: Reported = serde_json::from_str(said.out.trim()).unwrap();
    let html = std::fs::read_to_string(&reported.html).unwrap();
    let markdown = std::fs::read_to_string(&reported.markdown).unwrap();
    (reported, html, markdown)
}

#[test]
fn the_page_and_the_summary_say_what_was_found() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = campaign(dir.path());
    let name = reproduce(&ledger);
    let out = dir.path().join("page");
    let (reported, html, markdown) = report(&["--ledger", text(&ledger)], &out);
    assert_eq!((reported.cases, reported.executions, reported.complete), (4, 12, true));
    assert_eq!(reported.findings, found(&ledger).len());
    // Four executions of the replay, two of what was seen.
    let answer = "In 6 of 12 judged executions (50.0%) the judge names a fault: 4 framework, 2 defect.";
    for page in [&html, &markdown] {
        assert!(page.contains(answer), "{markdown}");
        assert!(EXECUTORS.iter().all(|executor| page.contains(executor)));
        assert!(page.contains("relu → div") && page.contains("add → div"), "chains");
        assert!(page.contains(&format!("findings/{name}.py")), "a link");
    }
    // Found by sort: the 0.25 and the NaN, in which both ops take part.
    assert!(markdown.contains("| `sort` | 2 | 25.0% | 0 | 0 | 2 |"), "{markdown}");
    assert!(markdown.contains("| `relu` | 9 | 0 | 0 | 1 | 1 | 1 | 0 | 1 |"), "{markdown}");
    assert!(markdown.contains("| `add` | 3 | 0 | 1 | 1 | 1 | 1 | 0 | 1 |"), "{markdown}");
    assert_eq!(
        std::fs::read_to_string(out.join(format!("findings/{name}.py"))).unwrap(),
        "print('the fault shows')\n"
    );
    assert!(out.join(format!("findings/{name}.json")).is_file());
}

#[test]
fn the_page_needs_nothing_from_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = campaign(dir.path());
    let (_, html, _) = report(&["--ledger", text(&ledger)], &dir.path().join("page"));
    for from_elsewhere in ["http://", "https://", "//cdn", " src=", "@import", "url(", "/tmp/"] {
        assert!(!html.contains(from_elsewhere), "{from_elsewhere}");
    }
    assert_eq!(html.matches("<link").count(), html.matches(r#"<link rel="icon" href="data:,">"#).count());
}

#[test]
fn every_table_of_the_summary_is_one_and_every_figure_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = campaign(dir.path());
    let out = dir.path().join("page");
    let (_, _, markdown) = report(&["--ledger", text(&ledger)], &out);
    let cells = |line: &str| line.replace("\\|", "").matches('|').count();
    let mut width = None;
    let mut tables = 0;
    for line in markdown.lines() {
        match (line.starts_with('|'), width) {
            (true, None) => (width, tables) = (Some(cells(line)), tables + 1),
            (true, Some(width)) => assert_eq!(cells(line), width, "{line}"),
            (false, _) => width = None,
        }
    }
    assert!(tables >= 6, "{markdown}");
    let figures: Vec<&str> =
        markdown.split("](figures/").skip(1).map(|rest| rest.split(')').next().unwrap()).collect();
    assert!(figures.len() >= 4, "{figures:?}");
    for figure in figures {
        let svg = std::fs::read_to_string(out.join("figures").join(figure)).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("xmlns"), "{figure}");
    }
}

#[test]
fn single_ops_and_baselines_stand_beside_the_campaign() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    write(&at("chains"), &plan(2, false, None), (0..2).map(|n| faulty(n, &["add", "gelu"])));
    write(&at("alone"), &plan(1, true, None), [faulty(0, &["add"])].into_iter());
    let mixed = [faulty(0, &["add"]), invalid(1, "add"), invalid(2, "gelu")];
    write(&at("mutated"), &plan(3, true, Some(Baseline::Mutate)), mixed.into_iter());
    let ledgers = ["alone", "mutated", "chains"].map(|name| text(&at(name)).to_owned());
    let args: Vec<&str> = ledgers.iter().flat_map(|ledger| ["--ledger", ledger]).collect();
    let out = at("page");
    let (reported, html, markdown) = report(&args, &out);
    assert_eq!((reported.cases, reported.executions), (2, 12), "the campaign's alone");
    // Table I: the generator over chains and single ops, and the baseline.
    for row in [
        "| op | ulpian | mutate |",
        "| `2 nodes` | 100.00% of 2 | / |",
        "| `add` | 100.00% of 1 | 50.00% of 2 |",
        "| `gelu` | / | 0.00% of 1 |",
        "| `total` | 100.00% of 3 | 33.33% of 3 |",
        // Figure 13: `add` differs alone; in chains it takes part in what its successor shows.
        "| `add` | 0 | 0 | 100.0% | 100.0% | 0.0% | 0.0% | 0.0% | 100.0% |",
        "| `gelu` | 0.25 | – | 100.0% | – | 0.0% | – | 100.0% | – |",
    ] {
        assert!(markdown.contains(row), "{row}\n{markdown}");
    }
    assert!(html.contains("in chains"), "the legend");
    let said = run(&["report", "--out", text(&out), "--ledger", &ledgers[1]]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("baseline"), "{}", said.err);
}

#[test]
fn thousands_of_findings_fit_on_the_page() {
    let dir = tempfile::tempdir().unwrap();
    let (reported, html, _) = report(&["--ledger", text(&thousands(dir.path()))], &dir.path().join("page"));
    assert_eq!((reported.executions, reported.findings), (5004, 5004));
    assert!(html.len() < 3_000_000, "{} bytes", html.len());
    assert!(html.contains("are left out, the least of their op and cause"));
    for op in ["batch_norm", "gelu"] {
        assert!(html.matches(&format!(r#"data-op="{op}""#)).count() > 100, "{op}");
    }
}

#[test]
fn ledgers_that_make_no_report_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let other = file(dir.path(), "other.txt", "not a ledger");
    let ledger = campaign(dir.path());
    let out = dir.path().join("page");
    let validity = format!("sort={}", text(&other));
    for (args, message) in [
        (vec![], "--ledger"),
        (vec!["--ledger", text(&other)], "other.txt"),
        (vec!["--ledger", "absent.ledger"], "absent.ledger"),
        (vec!["--ledger", text(&ledger), "--ledger", text(&ledger)], "both campaigns of their own"),
        (vec!["--ledger", text(&ledger), "--validity", "sort"], "expected NAME=FILE"),
        (vec!["--ledger", text(&ledger), "--validity", &validity], "other.txt: its last line is no summary"),
    ] {
        let said = run(&[&["report", "--out", text(&out)][..], &args].concat());
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{args:?}");
        assert!(said.err.contains(message), "{message}: {}", said.err);
        assert!(!out.exists(), "{args:?}");
    }
}
