//! The Python package that this crate carries with it.

use std::path::{Path, PathBuf};

use crate::Error;

/// Files of the package, each with its text.
macro_rules! package {
    ($($file:literal)*) => { &[$(($file, include_str!(concat!("../py/ulpian/", $file)))),*] };
}

/// The Python package, file by file.
const PACKAGE: &[(&str, &str)] = package! {
    "__init__.py"
    "capturing.py"
    "case_file.py"
    "protocol.py"
    "worker.py"
    "torch_ops.py"
    "torch_rows.py"
    "torch_executor.py"
    "ort_ops.py"
    "ort_executor.py"
    "tracing/__init__.py"
    "tracing/arguments.py"
    "tracing/data.py"
    "tracing/features.py"
    "tracing/names.py"
    "tracing/recording.py"
    "tracing/run.py"
    "tracing/subject.py"
    "tracing/tracer.py"
    "tracing/sources/__init__.py"
    "tracing/sources/factory.py"
    "tracing/sources/graphnet.py"
    "tracing/sources/graphnet_calls.py"
    "tracing/sources/mmpretrain.py"
    "tracing/sources/onnx_file.py"
    "tracing/sources/onnx_ops.py"
    "tracing/sources/package.py"
    "tracing/sources/timm.py"
    "tracing/sources/torchvision.py"
    "tracing/sources/transformers.py"
};

/// Writes the Python package into `folder` and returns what to put on Python's path. A package already there stays.
pub(crate) fn unpack(folder: &Path) -> Result<PathBuf, Error> {
    let root = folder.join("py");
    let package = root.join("ulpian");
    if !package.exists() {
        let fail = |e| Error::system(format!("writing {}", package.display()), &e);
        for (name, text) in PACKAGE {
            let path = package.join(name);
            std::fs::create_dir_all(path.parent().unwrap_or(&package)).map_err(fail)?;
            std::fs::write(path, text).map_err(fail)?;
        }
    }
    Ok(root)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::PACKAGE;

    /// The Python files below a folder, relative to `root`, with `/`.
    fn sources(root: &Path, folder: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).expect("the package is there").flatten() {
            let path = entry.path();
            if path.is_dir() {
                sources(root, &path, found);
            } else if path.extension().is_some_and(|e| e == "py") {
                let relative = path.strip_prefix(root).expect("it is below the root");
                found.push(relative.to_string_lossy().replace('\\', "/"));
            }
        }
    }

    #[test]
    fn every_file_of_the_package_is_carried() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("py/ulpian");
        let mut there = Vec::new();
        sources(&root, &root, &mut there);
        let mut carried: Vec<_> = PACKAGE.iter().map(|(name, _)| (*name).to_owned()).collect();
        there.sort();
        carried.sort();
        assert_eq!(carried, there);
    }
}
