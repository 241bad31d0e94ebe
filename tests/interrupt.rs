//! Ctrl-C and `kill` end Ulpian as they end any program, and nothing that it started stays.

#![allow(clippy::unwrap_used)]
#![cfg(target_os = "linux")]

mod common;

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{file, ulpian};

/// Does the process run? One that has ended and that nobody has waited for does not.
fn runs(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

#[track_caller]
fn soon(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "not soon: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The folders for tensors in transit of this process.
fn folders(process: u32, temporary: &Path) -> Vec<std::path::PathBuf> {
    let middle = format!("-{process}-");
    let in_folder = |folder: &Path| std::fs::read_dir(folder).unwrap().flatten().map(|e| e.path());
    let all = in_folder(temporary).chain(in_folder(Path::new("/dev/shm")));
    all.filter(|p| p.file_name().is_some_and(|n| n.to_string_lossy().contains(&middle))).collect()
}

#[test]
fn an_interrupt_leaves_no_process_and_no_file() {
    for (name, number) in [("INT", 2), ("TERM", 15)] {
        let dir = tempfile::tempdir().unwrap();
        let child = dir.path().join("child");
        // In the place of Python: it says that it has torch, then hangs with a child of its own and ignores what it is told.
        let python = file(
            dir.path(),
            "python",
            format!(
                "#!/bin/sh\ntrap '' INT TERM\ncase \"$2\" in *find_spec*) \
                 echo '{{\"python\": [3, 12, 0], \"torch\": \"2.11.0\", \"onnx\": null, \"onnxruntime\": null}}';;\n\
                 *) sleep 1000 & echo $! > '{}'; wait;; esac\n",
                child.display()
            ),
        );
        std::fs::set_permissions(&python, PermissionsExt::from_mode(0o755)).unwrap();
        let mut program = ulpian(&["judge", "tests/cases/relu", "--executor", "torch:cpu"]);
        program.env("ULPIAN_PYTHON", &python).env("TMPDIR", dir.path());
        let mut program = program.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let started = || std::fs::read_to_string(&child).is_ok_and(|text| text.ends_with('\n'));
        soon("the worker starts", started);
        let child: u32 = std::fs::read_to_string(&child).unwrap().trim().parse().unwrap();
        let used = folders(program.id(), dir.path());
        assert!(runs(child) && !used.is_empty());
        let sent = Command::new("kill").args([format!("-{name}"), program.id().to_string()]).status();
        assert!(sent.unwrap().success());
        let status = program.wait().unwrap();
        assert_eq!(status.signal(), Some(number), "{status}");
        soon("the script's child ends", || !runs(child));
        soon("the folders are removed", || used.iter().all(|folder| !folder.exists()));
    }
}
