//! Ulpian's own environment, made with a stand-in for Python that installs nothing.

#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;
use std::sync::Mutex;

use common::script;
use ulpian_vendor_compare::Error;
use ulpian_vendor_compare::environment::{Origin, Progress, PythonSearch, find, find_or_make};

/// Answers as Python does to what Ulpian asks: what it has, `-m venv`, and `-m pip install`, which leaves a file behind.
const STAND_IN: &str = r#"#!/bin/sh
here=$(dirname "$0")
case "$1 $2" in
    *find_spec*)
        torch=null
        [ -f "$here/installed" ] && torch='"2.11.0"'
        echo "{\"python\": [3, 12, 1], \"torch\": $torch, \"onnx\": null, \"onnxruntime\": null}" ;;
    *disk_usage*) echo FREE ;;
    "-c import venv"*) exit 0 ;;
    "-m venv") mkdir -p "$3/bin" && cp "$0" "$3/bin/python" && echo made "$3" ;;
    "-m pip") echo "Collecting torch"; sleep 0.3; PIP ;;
    *) echo "unexpected: $*" >&2; exit 9 ;;
esac
"#;

fn search(folder: &Path, free: u64, pip: &str) -> PythonSearch {
    let bin = folder.join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let python = bin.join("python3");
    script(&python, &STAND_IN.replace("FREE", &free.to_string()).replace("PIP", pip));
    PythonSearch {
        path: vec![bin],
        cache: folder.join("cache"),
        allow_managed: true,
        ..PythonSearch::default()
    }
}

const PLENTY: u64 = 100_000_000_000;
const INSTALLS: &str = "touch \"$here/installed\"";

#[test]
fn it_is_made_once_and_then_found() {
    let folder = tempfile::tempdir().unwrap();
    let search = search(folder.path(), PLENTY, INSTALLS);
    find(&search).unwrap_err();
    let news = Mutex::new(Vec::new());
    let made: Vec<_> = std::thread::scope(|scope| {
        let make = || find_or_make(&search, &|p| news.lock().unwrap().push(p)).unwrap();
        let threads = [scope.spawn(make), scope.spawn(make)];
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert_eq!(made[0], made[1]);
    assert_eq!(made[0].origin, Origin::Managed);
    assert!(made[0].executable.starts_with(folder.path().join("cache/ulpian")));
    let news = news.into_inner().unwrap();
    let count = |f: fn(&Progress) -> bool| news.iter().filter(|p| f(p)).count();
    assert_eq!(count(|p| matches!(p, Progress::Started { .. })), 1, "{news:?}");
    assert_eq!(count(|p| matches!(p, Progress::Finished { .. })), 1, "{news:?}");
    assert!(news.contains(&Progress::Line("Collecting torch".into())), "{news:?}");
    assert_eq!(find(&search).unwrap(), made[0]);
}

#[test]
fn an_unfinished_one_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let broken = search(folder.path(), PLENTY, "echo 'ERROR: No matching distribution' >&2; exit 1");
    let error = find_or_make(&broken, &|_| {}).unwrap_err();
    let Error::Unavailable { reason, remedy } = &error else { panic!("{error}") };
    assert!(reason.contains("pip install") && reason.contains("No matching distribution"), "{reason}");
    assert!(remedy.contains("ULPIAN_PYTHON"), "{remedy}");
    let rest = folder.path().join("cache/ulpian/python-torch-2.11.0/left-over");
    std::fs::write(&rest, "").unwrap();
    find(&broken).unwrap_err();
    let search = search(folder.path(), PLENTY, INSTALLS);
    find_or_make(&search, &|_| {}).unwrap();
    assert!(!rest.exists());
}

#[test]
fn a_full_disk_is_told_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let search = search(folder.path(), 1_000_000_000, INSTALLS);
    let error = find_or_make(&search, &|p| panic!("{p:?}")).unwrap_err().to_string();
    assert!(error.contains("needs 6.5 GB") && error.contains("1.0 GB are free"), "{error}");
}

#[test]
fn no_python_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let mut search = search(folder.path(), PLENTY, INSTALLS);
    search.path.clear();
    let error = find_or_make(&search, &|p| panic!("{p:?}")).unwrap_err().to_string();
    assert!(error.contains("no Python 3.11 to 3.14") && error.contains("python3-venv"), "{error}");
    search.allow_managed = false;
    let error = find_or_make(&search, &|p| panic!("{p:?}")).unwrap_err().to_string();
    assert!(error.contains("may not make"), "{error}");
}
