//! Rules of the code that no compiler checks.

use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The source files of a folder, at any depth.
fn sources(folder: &str) -> Vec<PathBuf> {
    fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("the folder is readable").flatten() {
            let path = entry.path();
            if path.is_dir() {
                collect(&path, files);
            } else if path.extension().is_some_and(|e| e == "rs") {
                files.push(path);
            }
        }
    }
    let mut files = Vec::new();
    collect(&root().join(folder), &mut files);
    assert!(!files.is_empty(), "{folder} holds no source");
    files.sort();
    files
}

/// The lines of a file before its unit tests, without comments, numbered from 1.
fn code(path: &Path) -> Vec<(usize, String)> {
    let text = std::fs::read_to_string(path).expect("the file is readable");
    let before_tests = text.lines().take_while(|line| !line.trim_start().starts_with("#[cfg(test)]"));
    let numbered = before_tests.enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"));
    numbered.map(|(i, line)| (i + 1, line.to_owned())).collect()
}

/// Asserts that no line of the folder's code holds one of these words.
fn forbid(folder: &str, words: &[&str], excepted: &[&str], why: &str) {
    let mut found = Vec::new();
    for file in sources(folder) {
        let name = file.strip_prefix(root()).expect("within the repository").display().to_string();
        if excepted.iter().any(|e| name.starts_with(e)) || name.ends_with("/tests.rs") {
            continue;
        }
        for (line, text) in code(&file) {
            for word in words.iter().filter(|w| text.contains(**w)) {
                found.push(format!("{name}:{line}: `{word}`"));
            }
        }
    }
    assert!(found.is_empty(), "{why}:\n{}", found.join("\n"));
}

const LIBRARIES: [&str; 5] = ["spec/src", "reference/src", "kernels/src", "mining/src", "vendor-compare/src"];

#[test]
fn libraries_neither_print_nor_read_the_environment_nor_exit() {
    let words = [
        "println!(",
        "print!(",
        "eprintln!(",
        "eprint!(",
        "dbg!(",
        "env::var",
        "env::args",
        "process::exit",
        "stdout()",
        "stderr()",
    ];
    for folder in LIBRARIES {
        // A child's standard error is read, not written to.
        forbid(
            folder,
            &words,
            &["vendor-compare/src/process.rs"],
            "a library prints, reads the environment or exits",
        );
    }
}

#[test]
fn all_printing_goes_through_the_report() {
    let words = ["println!(", "print!(", "eprintln!(", "eprint!(", "dbg!(", "stdout()", "stderr()"];
    forbid("src", &words, &["src/report/"], "printing outside src/report/");
}

#[test]
fn the_reference_uses_no_function_of_unspecified_precision() {
    let words = [
        ".exp()",
        ".exp2()",
        ".exp_m1()",
        ".ln()",
        ".ln_1p()",
        ".log2()",
        ".log10()",
        ".log(",
        ".powf(",
        ".powi(",
        ".sin()",
        ".cos()",
        ".tan()",
        ".tanh()",
        ".sinh()",
        ".cosh()",
        ".cbrt()",
        ".hypot(",
        ".atan",
    ];
    forbid("reference/src", &words, &[], "std's float functions have no specified precision");
}

#[test]
fn the_judge_calls_no_executor() {
    let words =
        ["crate::pool", "crate::process", "crate::torch", "crate::ort", "crate::environment", "std::process"];
    forbid("vendor-compare/src/judge", &words, &[], "the judge receives values; it calls nobody");
}

#[test]
fn unsafe_code_stands_in_listed_files_and_says_why_it_is_sound() {
    let listed = ["compiler.rs", "device.rs", "library.rs", "native.rs"];
    for file in sources("kernels/src") {
        let text = std::fs::read_to_string(&file).expect("the file is readable");
        let name =
            file.strip_prefix(root().join("kernels/src")).expect("within the crate").display().to_string();
        let blocks = text.matches("unsafe {").count();
        assert!(blocks == 0 || listed.contains(&name.as_str()), "{name} holds unsafe code and is not listed");
        let reasons = text.matches("// SAFETY: ").count();
        assert_eq!(blocks, reasons, "{name}: a block of unsafe code without its reason");
    }
    for name in listed {
        let text = std::fs::read_to_string(root().join("kernels/src").join(name)).expect("a listed file");
        assert!(text.contains("unsafe {"), "{name} is listed and holds no unsafe code");
    }
}

#[test]
fn nothing_is_left_unfinished() {
    for folder in ["src", "spec/src", "reference/src", "mining/src", "vendor-compare/src"] {
        forbid(
            folder,
            &["todo!(", "unimplemented!(", "allow(unsafe_code)"],
            &[],
            "unfinished or unsafe code",
        );
    }
}
