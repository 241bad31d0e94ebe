//! The docket, as the README's first command judges it: thirty public disputes, each with its expected outcome. PyTorch is
//! heard, found or made as for every user.

#![allow(clippy::unwrap_used)]

use std::process::{Command, Stdio};

use ulpian::spec::verdict::{CaseVerdict, Grade};

/// Rows of the docket.
const ROWS: usize = 30;
/// Rows whose cause must be confirmed, by a switch or bit for bit.
const CONFIRMED: usize = 15;

#[test]
fn every_row_ends_as_its_case_says() {
    let output = Command::new(env!("CARGO_BIN_EXE_ulpian"))
        .args(["judge", "tests/docket", "--expect", "--json"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .expect("the program starts");
    let out = String::from_utf8(output.stdout).expect("standard output is text");
    let verdicts: Vec<CaseVerdict> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(verdicts.len(), ROWS);
    let mut unmet = Vec::new();
    for verdict in &verdicts {
        let expectation =
            verdict.expectation.as_ref().unwrap_or_else(|| panic!("{}: no `expect`", verdict.case));
        unmet.extend(expectation.unmet.iter().map(|why| format!("{}: {why}", verdict.case)));
        assert_eq!(expectation.met, expectation.unmet.is_empty(), "{}", verdict.case);
    }
    assert!(unmet.is_empty(), "unmet:\n{}", unmet.join("\n"));
    let confirmed = verdicts
        .iter()
        .filter(|v| matches!(v.verdict.grade, Grade::ConfirmedByIntervention | Grade::ConfirmedBitwise));
    let confirmed = confirmed.count();
    assert!(confirmed >= CONFIRMED, "confirmed in {confirmed} rows, expected at least {CONFIRMED}");
    assert_eq!(output.status.code(), Some(0));
}
