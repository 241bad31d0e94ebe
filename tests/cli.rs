//! The command line as scripts see it: exit codes, what goes to which stream, files.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;

use common::{file, npy, run, said, text, ulpian};
use ulpian::records::{Finding, Packed};
use ulpian::spec::verdict::TruthLine;
use ulpian::spec::{Case, case::Limits, tensors_file};

const SMALL: &str = "tests/cases/linear/with-bias.json";

fn lines<T: serde::de::DeserializeOwned>(out: &str) -> Vec<T> {
    out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

#[test]
fn usage_errors_end_with_2_and_help_with_0() {
    for args in [
        &[][..],
        &["jugde"],
        &["truth"],
        &["truth", SMALL],
        &["judge"],
        &["judge", SMALL, "--timeout", "0"],
        &["judge", SMALL, "--timeout", "nan"],
        &["doctor", "--threads", "0"],
        &["pack"],
        &["pack", "--out", "x.json"],
        &["completions", "tcsh"],
    ] {
        let said = run(args);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{args:?}");
        assert!(!said.err.is_empty(), "{args:?}");
    }
    for args in [&["--help"][..], &["judge", "--help"], &["pack", "-h"], &["--version"], &["help", "truth"]] {
        let said = run(args);
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{args:?}");
    }
}

#[test]
fn truth_writes_one_file_a_case_and_one_line_a_result() {
    let dir = tempfile::tempdir().unwrap();
    let said = run(&["truth", "tests/cases", "--out", text(dir.path()), "--per-op", "--json"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let lines: Vec<TruthLine> = lines(&said.out);
    assert!(lines.len() > 15 && lines.iter().all(|l| l.undecided == 0));
    let pool: Vec<_> = lines.iter().filter(|l| l.case == "max_pool2d-with-indices").collect();
    assert_eq!(
        pool.iter().map(|l| (l.node.as_str(), l.dtype.as_str())).collect::<Vec<_>>(),
        [("y", "float32"), ("y.1", "int64")]
    );
    for line in &lines {
        let tensors = tensors_file::read(&dir.path().join(format!("{}.safetensors", line.case))).unwrap();
        let [value, center, radius, per_op] =
            ["value", "center", "radius", "per_op"].map(|part| &tensors[&format!("{}.{part}", line.node)]);
        assert_eq!((value.dtype().name(), value.shape()), (line.dtype.as_str(), line.shape.as_slice()));
        assert_eq!(per_op.tensor_type(), value.tensor_type());
        assert!(radius.to_f64_vec().iter().all(|r| *r >= 0.0));
        assert_eq!((center.dtype().name(), center.len()), ("float64", line.elements));
    }
}

#[test]
fn truth_for_people_has_no_colour_in_a_pipe() {
    let dir = tempfile::tempdir().unwrap();
    let said = run(&["truth", SMALL, "--out", text(dir.path())]);
    assert_eq!(said.code, 0);
    assert!(said.out.contains("linear-with-bias") && !said.out.contains('\x1b'), "{}", said.out);
    let mut forced = ulpian(&["truth", SMALL, "--out", text(dir.path())]);
    forced.env("CLICOLOR_FORCE", "1");
    assert!(common::said(forced).out.contains('\x1b'));
}

#[test]
fn a_truth_that_is_not_determined_ends_with_4() {
    let dir = tempfile::tempdir().unwrap();
    let case = r#"{"format": "ulpian-case/1", "name": "chance", "source": "", "nodes": [{"id": "y", "op": "dropout",
        "args": {"input": {"dtype": "float32", "shape": [2], "data": [1, 2]}}}], "outputs": ["y"]}"#;
    let path = file(dir.path(), "chance.json", case);
    let said = run(&["truth", text(&path), "--out", text(&dir.path().join("out")), "--json"]);
    assert_eq!(said.code, 4);
    assert_eq!(lines::<TruthLine>(&said.out)[0].undecided, 2);
    assert!(said.err.contains("mask"), "{}", said.err);
}

#[test]
fn a_bad_input_is_reported_and_does_not_stop_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let bad = file(dir.path(), "bad case.json", "{");
    let absent = dir.path().join("absent.json");
    let args = ["truth", text(&bad), text(&absent), SMALL, "--out", text(&out), "--json"];
    let said = run(&args);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("bad case.json") && said.err.contains("absent.json"), "{}", said.err);
    assert_eq!(lines::<TruthLine>(&said.out).len(), 1);
    assert!(out.join("linear-with-bias.safetensors").is_file());
}

#[test]
fn two_cases_of_one_name_do_not_overwrite_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let said = run(&["truth", SMALL, SMALL, "--out", text(dir.path())]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("linear-with-bias"), "{}", said.err);
}

#[test]
fn folders_are_searched_and_other_json_is_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let case = std::fs::read(SMALL).unwrap();
    file(dir.path(), "a folder/ä case.json", case);
    file(dir.path(), "package.json", r#"{"dependencies": {}}"#);
    let out = dir.path().join("out");
    let said = run(&["truth", text(dir.path()), "--out", text(&out)]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("package.json: skipped"), "{}", said.err);
    let quiet = run(&["truth", text(dir.path()), "--out", text(&out), "--quiet"]);
    assert_eq!((quiet.code, quiet.err.as_str()), (0, ""));
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(run(&["truth", text(empty.path()), "--out", text(&out)]).code, 2);
}

/// Each must be refused with the file's name, at once and without a panic.
#[test]
fn hostile_cases_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let node = |args: &str| {
        format!(
            r#"{{"format": "ulpian-case/1", "name": "n", "source": "", "nodes": [{{"id": "y", "op": "relu", "args": {args}}}], "outputs": ["y"]}}"#
        )
    };
    let inline = |shape: &str, data: &str| {
        node(&format!(r#"{{"input": {{"dtype": "float32", "shape": {shape}, "data": {data}}}}}"#))
    };
    file(dir.path(), "lies.safetensors", [0xff; 64]);
    let with_tensors = |tensors: &str| {
        node(r#"{"input": "@x"}"#).replacen("\"nodes\"", &format!("\"tensors\": {tensors}, \"nodes\""), 1)
    };
    for (name, content) in [
        ("empty", String::new()),
        ("binary", "\u{0}\u{1}PK".to_owned()),
        ("deep", "[".repeat(200_000)),
        ("deep-args", node(&"[".repeat(200_000))),
        ("number", "1e999999".to_owned()),
        ("version", r#"{"format": "ulpian-case/2"}"#.to_owned()),
        ("fields", r#"{"format": "ulpian-case/1", "surprise": 1}"#.to_owned()),
        ("huge", inline("[1099511627776]", "[1]")),
        ("overflow", inline("[4294967296, 4294967296, 4294967296]", "[]")),
        ("negative", inline("[-1]", "[]")),
        ("short", inline("[3]", "[1]")),
        ("words", inline("[1]", "[\"many\"]")),
        ("null", inline("[1]", "[null]")),
        ("shape", inline("\"3\"", "[1]")),
        ("reference", node(r#"{"input": "%y"}"#)),
        ("forward", node(r#"{"input": "%z"}"#)),
        ("no tensor", node(r#"{"input": "@x"}"#)),
        ("argument", node(r#"{"input": "@x", "inplace": true}"#)),
        ("climbs", with_tensors("\"../lies.safetensors\"")),
        ("absolute", with_tensors("\"/etc/passwd\"")),
        ("lies", with_tensors("\"lies.safetensors\"")),
        ("gone", with_tensors("\"gone.safetensors\"")),
        ("not a name", with_tensors("7")),
    ] {
        let path = file(dir.path(), &format!("{name}.json"), content);
        let said = run(&["truth", text(&path), "--out", text(&dir.path().join("out")), "--json"]);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{name}: {}", said.err);
        assert!(said.err.contains(&format!("{name}.json")), "{name}: {}", said.err);
    }
}

#[test]
fn a_name_that_climbs_out_of_the_folder_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let case = std::fs::read_to_string(SMALL).unwrap().replace("linear-with-bias", "../escaped");
    let path = file(dir.path(), "climbs.json", case);
    let said = run(&["truth", text(&path), "--out", text(&dir.path().join("out"))]);
    assert_eq!(said.code, 2);
    assert!(!dir.path().join("escaped.safetensors").exists());
}

#[test]
fn pack_makes_a_case_from_arrays() {
    let dir = tempfile::tempdir().unwrap();
    file(dir.path(), "x.npy", npy(&[1, 2], &[1.0, 2.0]));
    file(dir.path(), "my weight.npy", npy(&[3, 2], &[1.0, 0.0, 0.0, 1.0, 0.5, -0.5]));
    file(dir.path(), "seen.npy", npy(&[1, 3], &[1.0, 2.0, -0.5]));
    let mut pack = ulpian(&[
        "pack",
        "--out",
        "fc.json",
        "--json",
        "--tensor",
        "w=my weight.npy",
        "linear",
        "input=@x.npy",
        "weight=@w",
        "bias=None",
        "--observe",
        "a100=@seen.npy",
    ]);
    pack.current_dir(dir.path());
    let packed = said(pack);
    assert_eq!(packed.code, 0, "{}", packed.err);
    let lines: Vec<Packed> = lines(&packed.out);
    assert_eq!(
        (lines[0].nodes, lines[0].tensors, lines[0].observed.as_slice()),
        (1, 3, &["a100".to_owned()][..])
    );
    let case = Case::read(&dir.path().join("fc.json"), Limits::default()).unwrap();
    assert_eq!((case.name.as_str(), case.recorded_parties()), ("fc", vec!["a100"]));
    let mut again = ulpian(&["pack", "--out", "fc.json", "relu", "input=@x.npy"]);
    again.current_dir(dir.path());
    let again = said(again);
    assert!(again.code == 2 && again.err.contains("--force"), "{}", again.err);
}

#[test]
fn pack_makes_chains() {
    let dir = tempfile::tempdir().unwrap();
    file(dir.path(), "x.npy", npy(&[1, 2], &[1.0, 2.0]));
    file(dir.path(), "w.npy", npy(&[1, 2], &[3.0, -1.0]));
    let mut pack = ulpian(&[
        "pack",
        "--out",
        "chain.json",
        "--name",
        "a chain",
        "--tensors",
        "x.npy",
        "--tensors",
        "w.npy",
        "--node",
        "fc=linear input=@x weight=@w",
        "--node",
        "y=mul input=%fc other=[0.5]",
    ]);
    pack.current_dir(dir.path());
    let refused = said(pack);
    assert!(refused.code == 2 && refused.err.contains("other"), "{}", refused.err);
    assert!(!dir.path().join("chain.json").exists() && !dir.path().join("chain.safetensors").exists());
    let mut pack = ulpian(&[
        "pack",
        "--out",
        "chain.json",
        "--name",
        "a chain",
        "--tensors",
        "x.npy",
        "--tensors",
        "w.npy",
        "--node",
        "fc=linear input=@x weight=@w",
        "--node",
        "y=mul input=%fc other=0.5",
    ]);
    pack.current_dir(dir.path());
    let packed = said(pack);
    assert_eq!(packed.code, 0, "{}", packed.err);
    assert!(packed.out.contains("ulpian judge chain.json"), "{}", packed.out);
    let truth = run(&["truth", text(&dir.path().join("chain.json")), "--out", text(dir.path()), "--json"]);
    assert_eq!(
        lines::<TruthLine>(&truth.out).iter().map(|l| l.node.as_str()).collect::<Vec<_>>(),
        ["fc", "y"]
    );
}

#[test]
fn pack_says_what_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    file(dir.path(), "x.npy", npy(&[2], &[1.0, 2.0]));
    file(dir.path(), "huge.npy", npy(&[1 << 20, 1 << 20, 1 << 20], &[]));
    file(dir.path(), "bad.npz", b"PK not a zip");
    file(dir.path(), "bad.safetensors", [0xff; 32]);
    let (x, huge) = (format!("input=@{}", at("x.npy")), format!("input=@{}", at("huge.npy")));
    let (npz, safetensors) =
        (format!("input=@{}", at("bad.npz")), format!("input=@{}", at("bad.safetensors")));
    let (pt, out) = (format!("input=@{}", at("gone.pt")), at("out.json"));
    for (args, words) in [
        (vec!["relu", "input=@x"], "no such tensor"),
        (vec!["rleu", &x], "rleu"),
        (vec!["relu", &x, "dim=0"], "dim"),
        (vec!["relu", &x, "input=1"], "twice"),
        (vec!["relu", "x"], "ARG=VALUE"),
        (vec!["relu", &huge], "more than"),
        (vec!["relu", &npz], "bad.npz"),
        (vec!["relu", &safetensors], "bad.safetensors"),
        (vec!["relu", &pt], "gone.pt"),
        (vec!["relu", &x, "--observe", "a100"], "WHO"),
        (vec!["relu", &x, "--output", "nobody"], "nobody"),
    ] {
        let mut all = vec!["pack", "--out", &out];
        all.extend(args);
        let said = run(&all);
        assert_eq!(said.code, 2, "{all:?}: {}", said.err);
        assert!(said.err.contains(words), "{all:?}: {}", said.err);
    }
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(left.len(), 4, "nothing is left behind: {left:?}");
}

#[test]
fn doctor_says_what_is_missing_and_ends_with_3_without_torch() {
    let said = run(&["doctor", "--json"]);
    assert_eq!(said.code, 3, "{}", said.err);
    let findings: Vec<Finding> = lines(&said.out);
    let python = findings.iter().find(|f| f.component == "python").unwrap();
    assert!(!python.found && python.remedy.is_some(), "{python:?}");
    assert!(run(&["doctor"]).out.contains("missing"));
}

#[test]
fn completions_and_manual_pages_are_made_for_every_shell_and_command() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let said = run(&["completions", shell]);
        assert!(said.code == 0 && said.out.contains("no-managed-python"), "{shell}");
    }
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(run(&["man", "--out", text(dir.path())]).code, 0);
    for page in ["ulpian", "ulpian-doctor", "ulpian-truth", "ulpian-pack", "ulpian-completions", "ulpian-man"]
    {
        let manual = std::fs::read_to_string(dir.path().join(format!("{page}.1"))).unwrap();
        assert!(manual.contains(".SH SYNOPSIS"), "{page}");
    }
    assert!(run(&["man"]).out.contains(".TH ulpian 1"));
}

#[test]
#[cfg(unix)]
fn a_reader_that_goes_away_is_no_error() {
    use std::io::Read;
    use std::process::Stdio;

    let mut child = ulpian(&["man"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!((child.wait().unwrap().code(), err.as_str()), (Some(0), ""));
}

#[test]
fn files_appear_whole_with_ordinary_permissions() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("new/folder");
    assert_eq!(run(&["truth", SMALL, "--out", text(&out), "--quiet"]).code, 0);
    let names: Vec<_> = std::fs::read_dir(&out).unwrap().flatten().collect();
    assert_eq!(names.len(), 1);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(names[0].metadata().unwrap().permissions().mode() & 0o777, 0o644);
    }
    let not_a_folder = file(dir.path(), "file", "");
    assert_eq!(run(&["truth", SMALL, "--out", text(&not_a_folder)]).code, 3);
    assert!(!Path::new("linear-with-bias.safetensors").exists());
}
