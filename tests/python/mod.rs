//! The Python of the tests that put questions to PyTorch or ONNX: the one that the command line would use.

use std::path::Path;
use std::process::{Command, Stdio};

use etcetera::{BaseStrategy, choose_base_strategy};
use ulpian_vendor_compare::environment::{PythonSearch, find_or_make};

/// What a script of the tests folder prints, run with these arguments. Fails loudly where there is no Python with torch and
/// none may be made, or where the script fails.
pub(crate) fn run(script: &str, args: &[&str]) -> String {
    let cache = choose_base_strategy().map(|s| s.cache_dir()).unwrap_or_default();
    let search = PythonSearch::from_variables(|name| std::env::var_os(name), cache);
    let python = find_or_make(&search, &|_| ()).unwrap_or_else(|e| panic!("this test needs PyTorch: {e}"));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(script);
    let output = Command::new(&python.executable)
        .arg(&script)
        .args(args)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .expect("the interpreter runs");
    assert!(
        output.status.success(),
        "{} {} failed; its last words are above",
        python.executable.display(),
        script.display()
    );
    String::from_utf8(output.stdout).expect("the script prints text")
}
