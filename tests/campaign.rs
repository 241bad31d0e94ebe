//! `ulpian campaign` as scripts see it: what a ledger holds, and that it survives kills.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{Said, file, run, run_with_python, text, ulpian_with_python};
use rusqlite::types::Value as Sql;
use ulpian::campaign::rows::FindingRow;
use ulpian::campaign::{CampaignError, Writer};
use ulpian::records::{CampaignCase, CampaignFinding, CampaignSummary, ExportedExecution};
use ulpian::spec::verdict::CaseVerdict;

/// A division by a scalar of some numbers, and the square of the quotient.
fn division(folder: &Path, name: &str, by: f32) -> PathBuf {
    let seen = [169.0f32, 49.5, 1.0].map(|x| x * (1.0 / by));
    let json = format!(
        r#"{{"format": "ulpian-case/1", "name": "{name}", "source": "a test", "nodes": [
            {{"id": "q", "op": "div", "args": {{"input": {{"dtype": "float32", "shape": [3], "data": [169, 49.5, 1]}}, "other": {by}}}}},
            {{"id": "y", "op": "mul", "args": {{"input": "%q", "other": "%q"}}}}], "outputs": ["y"],
            "observed": [{{"executor": "seen", "node": "q", "tensor": {{"dtype": "float32", "shape": [3], "data": {seen:?}}}}}]}}"#
    );
    file(folder, &format!("{name}.json"), json)
}

/// Chains that PyTorch takes different ways through, in different sizes.
fn chains(folder: &Path, count: usize) {
    for n in 0..count {
        let (rows, inner, seed) = (2 + n % 5, 8 + 7 * n, n as f64);
        let data = |len: usize, step: f64| {
            let values: Vec<String> =
                (0..len).map(|i| format!("{}", ((i as f64 + seed) * step).rem_euclid(2.0) - 1.0)).collect();
            values.join(", ")
        };
        let json = format!(
            r#"{{"format": "ulpian-case/1", "name": "chain-{n:02}", "source": "a test", "nodes": [
                {{"id": "fc", "op": "linear", "args": {{
                    "input": {{"dtype": "float32", "shape": [{rows}, {inner}], "data": [{}]}},
                    "weight": {{"dtype": "float32", "shape": [4, {inner}], "data": [{}]}}}}}},
                {{"id": "act", "op": "gelu", "args": {{"input": "%fc"}}}},
                {{"id": "p", "op": "softmax", "args": {{"input": "%act", "dim": -1}}}}], "outputs": ["p"]}}"#,
            data(rows * inner, 0.7391),
            data(4 * inner, 0.618)
        );
        file(folder, &format!("chain-{n:02}.json"), json);
    }
}

fn parse(said: &Said) -> (Vec<CampaignCase>, CampaignSummary) {
    let mut lines: Vec<&str> = said.out.lines().collect();
    let summary = serde_json::from_str(lines.pop().unwrap()).unwrap();
    (lines.into_iter().map(|line| serde_json::from_str(line).unwrap()).collect(), summary)
}

/// Every row of every table but `timings`.
fn rows(ledger: &Path) -> Vec<(String, Vec<Vec<Sql>>)> {
    let connection = rusqlite::Connection::open(ledger).unwrap();
    ["plan", "cases", "executions", "nodes", "verdicts", "environment"]
        .map(|table| {
            let mut statement =
                connection.prepare(&format!("SELECT * FROM {table} ORDER BY 1, 2, 3, 4")).ok();
            if statement.is_none() {
                statement =
                    Some(connection.prepare(&format!("SELECT * FROM {table} ORDER BY 1, 2")).unwrap());
            }
            let mut statement = statement.unwrap();
            let columns = statement.column_count();
            let rows = statement
                .query_map([], |row| (0..columns).map(|i| row.get(i)).collect::<Result<Vec<Sql>, _>>())
                .unwrap();
            (table.to_owned(), rows.map(Result::unwrap).collect())
        })
        .into()
}

/// A ledger over recorded observations and a replay, which need no Python; one of its three cases is broken.
fn small() -> (tempfile::TempDir, PathBuf, Said) {
    let dir = tempfile::tempdir().unwrap();
    let cases = dir.path().join("cases");
    division(&cases, "thirteenth", 13.0);
    division(&cases, "third", 3.0);
    file(&cases, "broken.json", r#"{"format": "ulpian-case/1", "nodes": 3}"#);
    let ledger = dir.path().join("ledger.db");
    let said = run(&[
        "campaign",
        "run",
        "--json",
        "--cases",
        text(&cases),
        "--executor",
        "recorded:seen",
        "--executor",
        "replay:reciprocal-multiply",
        "--ledger",
        text(&ledger),
    ]);
    (dir, ledger, said)
}

#[test]
fn a_ledger_holds_every_case_with_all_criteria() {
    let (_dir, ledger, said) = small();
    let (cases, summary) = parse(&said);
    assert_eq!(said.code, 2, "{}{}", said.err, said.out);
    assert_eq!((summary.cases, summary.done, summary.left, summary.invalid), (3, 3, 0, 1));
    assert_eq!(summary.executions, 4);
    let broken = cases.iter().find(|c| c.case == "broken").unwrap();
    assert_eq!(broken.status, "invalid");
    assert!(broken.reason.as_ref().unwrap().contains("broken.json"), "{:?}", broken.reason);
    assert!(summary.found.fault > 0 && summary.found.bound > 0, "{:?}", summary.found);

    let exported = |form: &str| {
        let said = run(&["campaign", "export", "--ledger", text(&ledger), "--format", form]);
        assert_eq!(said.code, 0, "{}", said.err);
        said.out
    };
    let lines: Vec<ExportedExecution> =
        exported("jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let table = exported("csv");
    let to = run(&["campaign", "export", "--ledger", text(&ledger), "--format", "csv", "--out", "-"]);
    assert_eq!(to.out, table, "- is standard output");
    let mut reader = csv::Reader::from_reader(table.as_bytes());
    let of_table: Vec<ExportedExecution> = reader.deserialize().map(Result::unwrap).collect();
    assert_eq!(lines, of_table);
    assert_eq!(lines.len(), 4);
    let of = |name: &str, executor: &str| {
        lines.iter().find(|e| e.name == name && e.executor == executor).unwrap().clone()
    };
    let seen = of("thirteenth", "recorded:seen");
    assert_eq!((seen.labels.as_str(), seen.op.as_deref()), ("div mul", Some("div")));
    assert_eq!((seen.sort, seen.assert_close), (None, None), "the first executor is compared with nobody");
    assert_eq!(seen.bound, Some(true));
    let replayed = of("third", "replay:reciprocal-multiply");
    assert_eq!(replayed.status, "ok");
    // 169/3 squared is compared with nothing: the observation is of the quotient alone.
    assert_eq!(replayed.difference, None);

    for (what, count) in [("cases", 3), ("nodes", 6), ("verdicts", 2)] {
        let said =
            run(&["campaign", "export", "--ledger", text(&ledger), "--format", "jsonl", "--rows", what]);
        assert_eq!(said.out.lines().count(), count, "{what}");
    }
    let status = run(&["campaign", "status", "--json", "--ledger", text(&ledger)]);
    assert_eq!(parse(&status).1, summary);
    // There is nothing left to do, and the code is that of the whole ledger.
    let again = run(&["campaign", "resume", "--json", "--ledger", text(&ledger)]);
    assert_eq!((again.code, parse(&again)), (2, (Vec::new(), summary)));
}

#[test]
fn a_party_that_some_cases_are_not_for_is_no_failure() {
    let dir = tempfile::tempdir().unwrap();
    let relu = r#"{"format": "ulpian-case/1", "name": "relu", "source": "a test", "nodes": [
        {"id": "y", "op": "relu", "args": {"input": {"dtype": "float32", "shape": [2], "data": [1, -1]}}}], "outputs": ["y"],
        "observed": [{"executor": "seen", "node": "y", "tensor": {"dtype": "float32", "shape": [2], "data": [1, 0]}}]}"#;
    let cases = dir.path().join("cases");
    file(&cases, "relu.json", relu);
    let run_on = |ledger: &str| {
        let ledger = dir.path().join(ledger);
        let parties = ["--executor", "recorded:seen", "--executor", "replay:reciprocal-multiply"];
        run(&[
            &["campaign", "run", "--json", "--cases", text(&cases)],
            &parties[..],
            &["--ledger", text(&ledger)],
        ]
        .concat())
    };
    // The replay is about divisions: there is none.
    let said = run_on("alone.db");
    assert_eq!(said.code, 3, "{}", said.err);
    division(&cases, "thirteenth", 13.0);
    let said = run_on("both.db");
    assert_eq!(said.code, 1, "{}", said.err);
    let (cases, summary) = parse(&said);
    assert_eq!(summary.causes["replay:reciprocal-multiply"]["unavailable"], 1);
    let relu = cases.iter().find(|c| c.case == "relu").unwrap();
    assert_eq!(relu.executors["replay:reciprocal-multiply"], "unavailable");
    // Why is said, not only that.
    let status = run(&["campaign", "status", "--ledger", text(&dir.path().join("both.db"))]);
    for err in [said.err, status.err] {
        assert!(err.contains("replay:reciprocal-multiply: unavailable in 1: "), "{err}");
    }
}

#[test]
fn a_ledger_is_begun_once_and_written_by_one() {
    let (dir, ledger, _) = small();
    let cases = dir.path().join("cases");
    let again = ["campaign", "run", "--cases", text(&cases), "--ledger", text(&ledger)];
    let said = run(&again);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("has a campaign already"), "{}", said.err);

    let writer = Writer::resume(&ledger).unwrap();
    let second = run(&["campaign", "resume", "--ledger", text(&ledger)]);
    assert_eq!(second.code, 3);
    assert!(second.err.contains("another process is writing this ledger"), "{}", second.err);
    // Readers are let in.
    assert_eq!(run(&["campaign", "status", "--ledger", text(&ledger)]).code, 0);
    drop(writer);
    assert_eq!(run(&["campaign", "resume", "--ledger", text(&ledger)]).code, 2);
}

#[test]
fn what_is_no_whole_ledger_of_this_version_is_named() {
    let (dir, ledger, _) = small();
    let folder = dir.path();
    let bytes = std::fs::read(&ledger).unwrap();
    let text_file =
        file(folder, "notes.txt", "not a database, but long enough to look like one\n".repeat(40));
    let truncated = file(folder, "truncated.db", &bytes[..bytes.len() / 2]);
    let empty = file(folder, "empty.db", "");
    let other = folder.join("other.db");
    rusqlite::Connection::open(&other).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
    let newer = folder.join("newer.db");
    std::fs::write(&newer, &bytes).unwrap();
    rusqlite::Connection::open(&newer).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let lost = folder.join("lost.db");
    std::fs::write(&lost, &bytes).unwrap();
    rusqlite::Connection::open(&lost).unwrap().execute_batch("DELETE FROM plan").unwrap();
    for (path, message) in [
        (&text_file, "this is no ledger"),
        (&truncated, "damaged"),
        (&other, "this is no ledger"),
        (&newer, "has version 99"),
        (&lost, "damaged"),
        (&empty, "its campaign never began"),
        (&folder.join("absent.db"), "there is no such ledger"),
    ] {
        for command in ["status", "resume", "export"] {
            let mut args = vec!["campaign", command, "--ledger", text(path)];
            if command == "export" {
                args.extend(["--format", "csv"]);
            }
            let said = run(&args);
            assert_eq!((said.code, said.out.as_str()), (2, ""), "{command} {path:?}: {}", said.err);
            assert!(said.err.contains(message), "{command} {path:?}: {}", said.err);
        }
    }
    let locks = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name());
    let locks: Vec<_> = locks.filter(|name| name.to_string_lossy().ends_with("-lock")).collect();
    assert_eq!(locks, ["ledger.db-lock"], "what is no ledger gets no lock beside it");
    // A file of another kind is not overwritten.
    let cases = folder.join("cases");
    let said = run(&["campaign", "run", "--cases", text(&cases), "--ledger", text(&text_file)]);
    assert_eq!(said.code, 2);
    assert!(std::fs::read_to_string(&text_file).unwrap().starts_with("not a database"));
}

#[test]
fn a_file_that_changed_stops_the_campaign() {
    let (dir, ledger, _) = small();
    division(&dir.path().join("cases"), "third", 3.5);
    let said = run(&["campaign", "resume", "--ledger", text(&ledger)]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("third.json: this file has changed"), "{}", said.err);
    std::fs::remove_file(dir.path().join("cases/third.json")).unwrap();
    let said = run(&["campaign", "resume", "--ledger", text(&ledger)]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("third.json"), "{}", said.err);
}

#[test]
fn a_ledger_that_is_gone_is_no_success() {
    let (_dir, ledger, _) = small();
    let mut writer = Writer::resume(&ledger).unwrap();
    std::fs::remove_file(&ledger).unwrap();
    let finding = FindingRow {
        case: 0,
        place: 0,
        executions: 1,
        name: "lost".to_owned(),
        elements: 1,
        elements_left: 1,
        because: String::new(),
        minimised: String::new(),
        repro: None,
    };
    let error = writer.record_finding(&finding).unwrap_err();
    assert!(matches!(error, CampaignError::Moved(_)), "{error}");
}

#[test]
fn fewer_inputs_than_patterns_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    let pattern = |id: usize| {
        format!(
            r#"{{"format": "ulpian-patterns/1", "id": {id}, "nodes": ["relu"], "edges": [], "directed": true, "support": 0,
                "graphs": [], "bindings": []}}"#
        )
        .replace('\n', "")
    };
    let patterns = file(folder, "patterns.jsonl", format!("{}\n{}\n", pattern(0), pattern(1)));
    let call = r#"{"format": "ulpian-features/1", "model": "net", "calls": 1}
{"node": 0, "op": "relu", "args": {"input": {"dtype": "float32", "shape": [2], "zeros": 0, "nonfinite": 0, "min": -1, "max": 1}}}
"#;
    let features = file(folder, "net.features.jsonl", call);
    let run_on = |patterns: &str, count: &str| {
        let ledger = folder.join(format!("{count}.db"));
        let generated = ["campaign", "run", "--patterns", patterns, "--features", text(&features)];
        run(&[
            &generated[..],
            &["--count", count, "--executor", "replay:fma-contraction", "--ledger", text(&ledger)],
        ]
        .concat())
    };
    assert!(run_on(text(&patterns), "1").err.contains("1 of 2 patterns have an input"));
    assert!(!run_on(text(&patterns), "2").err.contains("patterns have an input"));
    let none = run_on(text(&patterns), "0");
    assert!(none.code == 2 && none.err.contains("1 or more"), "{}", none.err);
    // What ends when it is read cannot be read again.
    let endless = run_on("/dev/zero", "3");
    assert!(endless.code == 2 && endless.err.contains("/dev/zero: not a regular file"), "{}", endless.err);
}

#[test]
fn bad_usage_is_told() {
    for (args, message) in [
        (&["--ledger", "x"][..], "--cases"),
        (&["--cases", "tests/cases", "--features", "x", "--ledger", "x"], "cannot be used with"),
        (&["--cases", "tests/cases", "--ledger", "x", "--executor", "torch:tpu"], "torch:tpu"),
        (&["--features", "x", "--count", "1", "--ledger", "x"], "--patterns"),
        (&["--features", "x", "--single-op", "--ledger", "x"], "--count"),
    ] {
        let said = run(&[&["campaign", "run"][..], args].concat());
        assert_eq!(said.code, 2, "{args:?}");
        assert!(said.err.contains(message), "{args:?}: {}", said.err);
    }
}

/// PyTorch's batch_norm in evaluation folds mean and variance into one scale and shift, which loses what a mean far from zero
/// leaves: a finding on every CPU.
#[test]
fn findings_become_small_cases_and_scripts_that_show_them() {
    let dir = tempfile::tempdir().unwrap();
    let cases = dir.path().join("cases");
    let data = |len: usize, from: f64| {
        let values: Vec<String> =
            (0..len).map(|i| format!("{}", from + (i as f64 * 0.618).fract())).collect();
        values.join(", ")
    };
    let json = format!(
        r#"{{"format": "ulpian-case/1", "name": "shifted", "source": "a test", "nodes": [
            {{"id": "a", "op": "relu", "args": {{"input": {{"dtype": "float32", "shape": [4, 3, 2, 2], "data": [{}]}}}}}},
            {{"id": "y", "op": "batch_norm", "args": {{"input": "%a",
                "running_mean": {{"dtype": "float32", "shape": [3], "data": [{}]}},
                "running_var": {{"dtype": "float32", "shape": [3], "data": [{}]}}, "training": false}}}}], "outputs": ["y"]}}"#,
        data(48, 1000.0),
        data(3, 1000.25),
        data(3, 0.5)
    );
    file(&cases, "shifted.json", json);
    let (ledger, out) = (dir.path().join("found.db"), dir.path().join("out"));
    let said = run_with_python(&[
        "campaign",
        "run",
        "--quiet",
        "--interventions",
        "quick",
        "--cases",
        text(&cases),
        "--ledger",
        text(&ledger),
    ]);
    assert_eq!(said.code, 1, "{}{}", said.out, said.err);
    let args = ["campaign", "findings", "--check", "--json", "--ledger", text(&ledger), "--out", text(&out)];
    let said = run_with_python(&args);
    assert_eq!(said.code, 1, "{}", said.err);
    let lines: Vec<CampaignFinding> = said.out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert!(!lines.is_empty());
    for line in &lines {
        assert_eq!((line.op.as_str(), line.cause.as_str()), ("batch_norm", "framework"));
        assert!(line.elements_left.unwrap() < line.elements / 4, "{line:?}");
        // The small case has the verdict of the large one.
        let judged =
            run_with_python(&["judge", "--json", "--executor", &line.executor, line.file.as_ref().unwrap()]);
        let verdict: CaseVerdict = serde_json::from_str(judged.out.trim()).unwrap();
        assert_eq!(verdict.verdict.cause.name(), line.cause);
        let script = line.repro.as_ref().unwrap();
        assert!(std::fs::read_to_string(script).unwrap().lines().count() < 60);
        let source = std::fs::read_to_string(script).unwrap();
        assert!(source.contains("computed:") && source.contains("certified:"), "{source}");
        assert_eq!(line.reproduced, Some(true), "{}", said.err);
    }
    // What was made small is kept.
    let again = run_with_python(&args);
    assert_eq!(again.out, said.out);
}

/// A campaign whose process is killed again and again ends with the rows of one that was left alone.
#[test]
fn a_campaign_survives_kills() {
    let dir = tempfile::tempdir().unwrap();
    let cases = dir.path().join("cases");
    chains(&cases, 12);
    let (left_alone, killed) = (dir.path().join("alone.db"), dir.path().join("killed.db"));
    let begin = |ledger: &Path| {
        let common = ["campaign", "run", "--quiet", "--interventions", "none", "--cases", text(&cases)];
        let rest =
            ["--executor", "torch:cpu", "--executor", "torch:cpu?mkldnn=off", "--ledger", text(ledger)];
        [&common[..], &rest].concat().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let start = Instant::now();
    let words = begin(&left_alone);
    let said = run_with_python(&words.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(said.code <= 1, "{}", said.err);
    let whole = start.elapsed();

    // As many kills as ULPIAN_TEST_KILLS says, spread over the time that the campaign takes.
    let kills: u32 = std::env::var("ULPIAN_TEST_KILLS").map_or(5, |text| text.parse().unwrap());
    let mut resumed = 0;
    for kill in 0..kills {
        let words = if killed.is_file() && std::fs::metadata(&killed).unwrap().len() > 0 {
            resumed += 1;
            ["campaign", "resume", "--quiet", "--ledger", text(&killed)].map(str::to_owned).to_vec()
        } else {
            begin(&killed)
        };
        let mut command = ulpian_with_python(&words.iter().map(String::as_str).collect::<Vec<_>>());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // The fractions of the golden ratio fall everywhere.
        let share = (f64::from(kill + 1) * 0.618).fract();
        std::thread::sleep(whole.mul_f64(share).max(Duration::from_millis(1)));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let last =
        if resumed > 0 { vec!["campaign", "resume", "--quiet", "--ledger", text(&killed)] } else { vec![] };
    assert!(!last.is_empty(), "no kill fell after the beginning");
    let said = run_with_python(&last);
    assert!(said.code <= 1, "{}", said.err);
    for ((table, expected), (_, got)) in rows(&left_alone).into_iter().zip(rows(&killed)) {
        assert!(!expected.is_empty(), "{table} is empty");
        assert_eq!(got, expected, "{table}");
    }
}
