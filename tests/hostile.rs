//! Input that lies, never ends or climbs: one clear message and exit code 2, whatever it claims; and output that cannot be
//! written.

#![allow(clippy::unwrap_used)]
#![cfg(unix)]

mod common;
mod python;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use ulpian::spec::{Case, case::Limits};

use common::{Said, file, npy, run, said, text, ulpian};

const SMALL: &str = "tests/cases/linear/with-bias.json";

fn refused(args: &[&str], says: &str) -> Said {
    let start = Instant::now();
    let said = run(args);
    assert_eq!((said.code, said.out.as_str()), (2, ""), "{args:?}: {}", said.err);
    assert!(said.err.contains(says), "{args:?}: {}", said.err);
    assert_eq!(said.err.matches(says).count(), 1, "said once: {}", said.err);
    assert!(start.elapsed() < Duration::from_secs(20), "{args:?}");
    said
}

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// A case of one node, whose arguments are given as JSON.
fn case(dir: &Path, op: &str, args: &str) -> String {
    let json = format!(
        r#"{{"format": "ulpian-case/1", "name": "hostile", "nodes": [{{"id": "y", "op": "{op}", "args": {args}}}]}}"#
    );
    text(&file(dir, "hostile.json", json)).to_owned()
}

#[test]
fn what_has_no_end_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| text(&dir.path().join(name)).to_owned();
    let out = at("out");
    for extension in ["json", "npy", "npz", "safetensors", "pt"] {
        let (pipe_at, zero, folder) = (
            at(&format!("pipe.{extension}")),
            at(&format!("zero.{extension}")),
            at(&format!("folder.{extension}")),
        );
        pipe(Path::new(&pipe_at));
        std::os::unix::fs::symlink("/dev/zero", &zero).unwrap();
        std::fs::create_dir(&folder).unwrap();
        if extension == "json" {
            refused(&["truth", &pipe_at, "--out", &out], "not a regular file");
            refused(&["truth", &zero, "--out", &out], "not a regular file");
            continue;
        }
        for (path, says) in
            [(pipe_at, "not a regular file"), (zero, "not a regular file"), (folder, "this is a folder")]
        {
            let argument = format!("input=@{path}");
            refused(&["pack", "--out", &at("case.json"), "relu", &argument], says);
        }
    }
}

#[test]
fn a_link_is_followed_and_a_pipe_written_into() {
    let dir = tempfile::tempdir().unwrap();
    let graph = file(dir.path(), "g.gspan", "t # 0\nv 0 a\nv 1 b\ne 0 1 x\n");
    let (real, link, fifo) = (dir.path().join("real"), dir.path().join("link"), dir.path().join("fifo"));
    std::fs::write(&real, "old").unwrap();
    std::os::unix::fs::symlink("real", &link).unwrap();
    pipe(&fifo);
    let mine = |out: &Path| run(&["mine", text(&graph), "--support", "1", "--out", text(out)]);
    assert_eq!(mine(&link).code, 0);
    assert!(link.is_symlink());
    let patterns = std::fs::read_to_string(&real).unwrap();
    assert!(patterns.starts_with("{\"format\":\"ulpian-patterns/1\""), "{patterns}");
    let cat = Command::new("cat").arg(&fifo).stdout(std::process::Stdio::piped()).spawn().unwrap();
    assert_eq!(mine(&fifo).code, 0);
    assert_eq!(String::from_utf8(cat.wait_with_output().unwrap().stdout).unwrap(), patterns);
    assert!(!fifo.metadata().unwrap().is_file());
}

#[test]
fn a_case_may_come_through_a_pipe() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = ulpian(&["truth", "/dev/stdin", "--json", "--out", text(dir.path())]);
    let case = case(dir.path(), "relu", r#"{"input": {"dtype": "float32", "shape": [1], "data": [1]}}"#);
    let mut cat = Command::new("cat").arg(case).stdout(std::process::Stdio::piped()).spawn().unwrap();
    command.stdin(cat.stdout.take().unwrap());
    let said = said(command);
    cat.wait().unwrap();
    assert_eq!(said.code, 0, "{}", said.err);
}

#[test]
fn shapes_that_cannot_be_are_refused_and_padding_costs_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let out = text(&dir.path().join("out")).to_owned();
    let image = r#"{"dtype": "float32", "shape": [1, 1, 2, 2], "data": [1, 2, 3, 4]}"#;
    let one = r#"{"dtype": "float32", "shape": [1, 1, 1, 1], "data": [1]}"#;
    let four = r#"{"dtype": "float32", "shape": [1, 1, 2, 2], "data": [1, 1, 1, 1]}"#;
    let conv = |weight: &str, rest: &str| format!(r#"{{"input": {image}, "weight": {weight}, {rest}}}"#);
    for (op, args, says) in [
        (
            "relu",
            r#"{"input": {"dtype": "float32", "shape": [0, 1099511627776, 1099511627776], "data": []}}"#
                .to_owned(),
            "64 bits",
        ),
        (
            "relu",
            r#"{"input": {"dtype": "float32", "shape": [0, 9223372036854775808], "data": []}}"#.to_owned(),
            "64 bits",
        ),
        ("conv2d", conv(one, r#""padding": 9223372036854775807"#), "64 bits"),
        ("conv2d", conv(one, r#""padding": 1099511627776"#), "more elements than the limit"),
        ("conv2d", conv(four, r#""padding": "same", "dilation": 9223372036854775807"#), "64 bits"),
        (
            "adaptive_avg_pool2d",
            format!(r#"{{"input": {image}, "output_size": 1099511627776}}"#),
            "more elements",
        ),
    ] {
        let case = case(dir.path(), op, &args);
        refused(&["truth", &case, "--out", &out], says);
    }
    // PyTorch takes these: few windows, and most of each is padding or lies between a kernel's taps.
    for (weight, rest) in [
        (one, r#""padding": 2305843009213693952, "stride": 2305843009213693952"#),
        (one, r#""stride": 9223372036854775807"#),
        (four, r#""padding": 1073741824, "dilation": 2147483648, "stride": 1073741824"#),
        (four, r#""padding": "same", "dilation": 1099511627776"#),
    ] {
        let case = case(dir.path(), "conv2d", &conv(weight, rest));
        let said = run(&["truth", &case, "--out", &out]);
        assert_eq!(said.code, 0, "{rest}: {}", said.err);
    }
}

#[test]
fn names_cannot_act_on_the_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let json = r#"{"format": "ulpian-case/1", "name": "\u001b[2J\u202egnp", "nodes": []}"#;
    let case = file(dir.path(), "c.json", json);
    let said = run(&["truth", text(&case), "--out", text(dir.path())]);
    assert_eq!(said.code, 2);
    assert!(!said.err.contains(['\u{1b}', '\u{202e}']), "{:?}", said.err);
}

#[test]
fn a_damaged_archive_is_noticed() {
    // Stored, not deflated, so that only the checksum can tell.
    let dir = tempfile::tempdir().unwrap();
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let stored = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    zip.start_file("x.npy", stored).unwrap();
    std::io::Write::write_all(&mut zip, &npy(&[2], &[1.0, 7.0])).unwrap();
    let mut bytes = zip.finish().unwrap().into_inner();
    let seven = 7.0f32.to_le_bytes();
    let at = bytes.windows(4).position(|w| w == seven).unwrap();
    let whole = file(dir.path(), "whole.npz", &bytes);
    bytes[at] ^= 1;
    let damaged = file(dir.path(), "damaged.npz", &bytes);
    let out = dir.path().join("case.json");
    let pack = |path: &Path| {
        run(&["pack", "--force", "--out", text(&out), "relu", &format!("input=@{}", text(path))])
    };
    assert_eq!(pack(&whole).code, 0);
    let said = pack(&damaged);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("checksum"), "{}", said.err);
}

#[test]
#[cfg(target_os = "linux")]
fn output_that_is_lost_is_no_success() {
    let dir = tempfile::tempdir().unwrap();
    for args in
        [&["truth", SMALL, "--json", "--out", text(dir.path())][..], &["man"], &["completions", "bash"]]
    {
        // Captured output would replace it, so the shell gives the full device.
        let mut command = Command::new("sh");
        command
            .args(["-c", "exec \"$@\" > /dev/full", "sh", env!("CARGO_BIN_EXE_ulpian")])
            .args(args)
            .current_dir(env!("CARGO_MANIFEST_DIR"));
        let said = said(command);
        assert_eq!(said.code, 3, "{args:?}: {}", said.err);
        assert!(said.err.contains("standard output"), "{}", said.err);
    }
}

#[test]
fn a_pt_file_gives_its_tensors_and_runs_no_code() {
    let dir = tempfile::tempdir().unwrap();
    python::run("python/write_pt.py", &[text(dir.path())]);
    let out = dir.path().join("case.json");
    let pack = |file: &str| {
        let argument = format!("input=@{}", text(&dir.path().join(file)));
        let mut command = ulpian(&["pack", "--force", "--out", text(&out), "flatten", &argument]);
        match std::env::var_os("ULPIAN_PYTHON").filter(|v| !v.is_empty()) {
            Some(chosen) => command.env("ULPIAN_PYTHON", chosen),
            None => command.env_remove("ULPIAN_PYTHON"),
        };
        command.env_remove("ULPIAN_MANAGED_PYTHON");
        said(command)
    };
    let packed = pack("tensors.pt:fc.weight");
    assert_eq!(packed.code, 0, "{}", packed.err);
    let case = Case::read(&out, Limits::default()).unwrap();
    assert_eq!(case.nodes[0].types[0].to_string(), "bfloat16[6]");
    assert_eq!(case.tensors[0].value.to_f64_vec(), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    for (file, says) in [
        ("evil.pt:x", "weights_only"),
        ("old_evil.pt:x", "weights_only"),
        ("expanded.pt:x", "unfolds"),
        ("meta.pt:x", "meta device"),
    ] {
        let packed = pack(file);
        assert_eq!(packed.code, 2, "{file}: {}", packed.err);
        assert!(packed.err.contains(says), "{file}: {}", packed.err);
    }
    assert!(!dir.path().join("executed").exists());
}
