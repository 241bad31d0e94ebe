//! The cases that the command line names: files, and folders that are searched for them.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::exit::Exit;
use crate::report::Reporter;

/// The cases that all arguments name, in order. What is passed over or cannot be found is reported; the code says whether
/// anything was amiss.
pub(crate) fn find_all(arguments: &[PathBuf], reporter: &Reporter) -> (Vec<PathBuf>, Exit) {
    let (mut cases, mut exit) = (Vec::new(), Exit::Clean);
    for argument in arguments {
        match find(argument) {
            Ok(found) => {
                cases.extend(found.cases);
                for file in found.skipped {
                    reporter.note(&format!("{}: skipped, not a case", file.display()));
                }
            }
            Err(error) => {
                reporter.error(&error);
                exit = Exit::BadInput;
            }
        }
    }
    (cases, exit)
}

/// What an argument turned out to be.
struct Found {
    /// Case files, sorted within each folder.
    cases: Vec<PathBuf>,
    /// JSON files in folders that are not cases.
    skipped: Vec<PathBuf>,
}

/// The cases that `argument` names. A file counts whatever it holds; in a folder (searched at any depth) so does each `*.json`
/// unless it is an object without a `format` of `ulpian-case/…`.
fn find(argument: &Path) -> Result<Found> {
    let meta = std::fs::metadata(argument).with_context(|| argument.display().to_string())?;
    let mut found = Found { cases: Vec::new(), skipped: Vec::new() };
    if !meta.is_dir() {
        found.cases.push(argument.to_owned());
        return Ok(found);
    }
    let mut files = Vec::new();
    collect(argument, &mut files)?;
    files.sort();
    for file in files {
        if is_another_kind_of_json(&file) {
            found.skipped.push(file);
        } else {
            found.cases.push(file);
        }
    }
    if found.cases.is_empty() {
        bail!(
            "{}: no case in this folder (a *.json file whose `format` is `ulpian-case/1`)",
            argument.display()
        );
    }
    Ok(found)
}

/// Links to folders are not followed, so a cycle of them is no trap.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let at = || folder.display().to_string();
    for entry in std::fs::read_dir(folder).with_context(at)? {
        let entry = entry.with_context(at)?;
        let path = entry.path();
        if entry.file_type().with_context(at)?.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("json")) && path.is_file() {
            files.push(path);
        }
    }
    Ok(())
}

/// Well-formed JSON that does not call itself a case. What cannot be parsed may be a broken case and is not passed over.
fn is_another_kind_of_json(path: &Path) -> bool {
    #[derive(serde::Deserialize)]
    struct Probe {
        #[serde(default)]
        format: serde_json::Value,
    }
    let Ok(file) = std::fs::File::open(path) else { return false };
    let mut reader = std::io::BufReader::new(file);
    let start =
        reader.fill_buf().ok().and_then(|bytes| bytes.iter().find(|b| !b.is_ascii_whitespace()).copied());
    if start != Some(b'{') {
        return serde_json::from_reader::<_, serde::de::IgnoredAny>(reader).is_ok();
    }
    let probe = serde_json::from_reader::<_, Probe>(reader);
    probe.is_ok_and(|p| !p.format.as_str().is_some_and(|f| f.starts_with("ulpian-case/")))
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn a_folder_gives_its_cases_and_names_what_it_passes_over() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("b case.json", r#"{"format": "ulpian-case/1"}"#);
        write("deep/er/a.json", r#"{"format": "ulpian-case/9"}"#);
        write("other.json", r#"{"dependencies": {}}"#);
        write("list.json", "[1, 2]");
        write("broken.json", r#"{"format": "ulpian-ca"#);
        write("notes.txt", "not JSON");
        let found = find(dir.path()).unwrap();
        let names = |paths: &[std::path::PathBuf]| -> Vec<String> {
            paths.iter().map(|p| p.file_name().unwrap().to_string_lossy().into_owned()).collect()
        };
        assert_eq!(names(&found.cases), ["b case.json", "broken.json", "a.json"]);
        assert_eq!(names(&found.skipped), ["list.json", "other.json"]);
    }

    #[test]
    fn a_folder_without_cases_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        assert!(find(dir.path()).is_err());
        assert!(find(&dir.path().join("absent.json")).is_err());
    }
}
