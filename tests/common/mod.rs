//! What the tests of the command line share. Each uses a part of it.

#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// What the program said and how it ended.
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// The program, without Python unless a test asks for it, so that nothing here depends on what is installed.
pub(crate) fn ulpian(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ulpian"));
    command
        .args(args)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("ULPIAN_MANAGED_PYTHON", "0")
        .env("ULPIAN_PYTHON", "/nonexistent/python")
        .env_remove("CLICOLOR_FORCE")
        .stdin(Stdio::null());
    command
}

/// Runs it to its end. A panic in any thread fails the test, whatever the exit code.
pub(crate) fn said(mut command: Command) -> Said {
    let Output { status, stdout, stderr } = command.output().expect("the program starts");
    let said = Said {
        code: status.code().expect("no signal ended the program"),
        out: String::from_utf8(stdout).expect("standard output is text"),
        err: String::from_utf8_lossy(&stderr).into_owned(),
    };
    assert!(!said.err.contains("panicked") && !said.err.contains("internal error"), "{}", said.err);
    said
}

/// `ulpian` with these arguments, run to its end.
pub(crate) fn run(args: &[&str]) -> Said {
    said(ulpian(args))
}

/// As [`run`], with the Python that the tests were given.
pub(crate) fn run_with_python(args: &[&str]) -> Said {
    said(ulpian_with_python(args))
}

/// As [`ulpian`], with the Python that the tests were given.
pub(crate) fn ulpian_with_python(args: &[&str]) -> Command {
    let mut command = ulpian(args);
    for name in ["ULPIAN_PYTHON", "ULPIAN_MANAGED_PYTHON"] {
        match std::env::var_os(name) {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

/// A path as an argument.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("the test's paths are text")
}

/// Writes a file and returns its path.
pub(crate) fn file(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().expect("within the folder")).expect("the folder is made");
    std::fs::write(&path, content).expect("the file is written");
    path
}

/// A float32 array as NumPy saves it.
pub(crate) fn npy(shape: &[usize], data: &[f32]) -> Vec<u8> {
    let sizes: Vec<String> = shape.iter().map(|n| format!("{n},")).collect();
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}), }}", sizes.join(" "));
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data.iter().flat_map(|x| x.to_le_bytes()));
    bytes
}
