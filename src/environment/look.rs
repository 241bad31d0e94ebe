//! What this machine has, component by component. Looking changes nothing: no environment is made, nothing installed.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use ulpian::records::{DOCTOR_FORMAT, Finding};
use ulpian::vendor_compare::Error;
use ulpian::vendor_compare::environment::Python;

type Facts = Map<String, Value>;

fn finding(component: &str) -> Finding {
    Finding {
        format: DOCTOR_FORMAT.to_owned(),
        component: component.to_owned(),
        found: false,
        version: None,
        place: None,
        detail: None,
        remedy: None,
    }
}

fn missing(component: &str, remedy: &str) -> Finding {
    Finding { remedy: Some(remedy.to_owned()), ..finding(component) }
}

/// Why something cannot be had, and what to do about it, apart where they are known apart.
fn refused(component: &str, error: &Error) -> Finding {
    match error {
        Error::Unavailable { reason, remedy } => {
            Finding { detail: Some(reason.clone()), remedy: Some(remedy.clone()), ..finding(component) }
        }
        other => Finding { detail: Some(other.to_string()), ..finding(component) },
    }
}

fn text(facts: &Facts, key: &str) -> Option<String> {
    match facts.get(key)? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// The interpreter, with how it was come by.
pub(crate) fn python(found: &Result<Python, Error>) -> Vec<Finding> {
    vec![match found {
        Ok(python) => {
            let (major, minor, micro) = python.has.python;
            Finding {
                found: true,
                version: Some(format!("{major}.{minor}.{micro}")),
                place: Some(python.executable.display().to_string()),
                detail: Some(python.origin.name().to_owned()),
                ..finding("python")
            }
        }
        Err(error) => refused("python", error),
    }]
}

/// PyTorch and the libraries below it, as it reports them.
pub(crate) fn torch(facts: &Result<Facts, Error>) -> Vec<Finding> {
    let facts = match facts {
        Ok(facts) => facts,
        Err(error) => return vec![refused("torch", error)],
    };
    let threads = text(facts, "threads").map_or_else(String::new, |n| format!(", {n} threads"));
    let torch = Finding {
        found: true,
        version: text(facts, "torch"),
        detail: text(facts, "isa").map(|isa| format!("CPU capability {isa}{threads}")),
        ..finding("torch")
    };
    let library = |component: &str, switch: &str, version: &str, without: &str| {
        let there = facts.get(switch).and_then(Value::as_bool).unwrap_or(false);
        let version = text(facts, version);
        if there {
            Finding { found: true, version, detail: Some("within torch".to_owned()), ..finding(component) }
        } else {
            Finding { detail: Some(without.to_owned()), ..finding(component) }
        }
    };
    let devices = facts.get("cuda_devices").and_then(Value::as_array).map_or(0, Vec::len);
    let cuda = match text(facts, "cuda") {
        Some(version) if devices > 0 => Finding {
            found: true,
            version: Some(version),
            detail: text(facts, "cuda_devices"),
            ..finding("torch-cuda")
        },
        Some(version) => Finding {
            detail: Some(format!("this torch is built for CUDA {version}, and sees no GPU")),
            ..missing("torch-cuda", "run on a machine with an NVIDIA GPU and its driver")
        },
        None => Finding {
            detail: Some("this torch is built for the CPU alone".to_owned()),
            ..missing("torch-cuda", "on a machine with an NVIDIA GPU, install a torch that is built for CUDA")
        },
    };
    vec![
        torch,
        library("onednn", "mkldnn", "onednn_version", "this torch is built without it"),
        library("mkl", "mkl", "mkl_version", "this torch is built without it and uses another BLAS"),
        cuda,
    ]
}

/// ONNX Runtime, which is optional.
pub(crate) fn onnxruntime(facts: &Result<Facts, Error>) -> Finding {
    match facts {
        Ok(facts) => Finding {
            found: true,
            version: text(facts, "onnxruntime"),
            detail: text(facts, "onnx").map(|v| format!("with onnx {v}; optional, for ort:cpu")),
            ..finding("onnxruntime")
        },
        Err(error) => refused("onnxruntime", error),
    }
}

/// The C++ compiler that `compile=on` needs.
pub(crate) fn compiler() -> Finding {
    let chosen = std::env::var_os("CXX").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let names = ["g++", "c++", "clang++"];
    let on_path = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    let place = chosen.filter(|c| c.is_file()).or_else(|| on_path.into_iter().find(|c| c.is_file()));
    let use_of_it = "for torch:cpu?compile=on";
    match place {
        Some(place) => Finding {
            found: true,
            version: first_line(&place),
            place: Some(place.display().to_string()),
            detail: Some(use_of_it.to_owned()),
            ..finding("c++ compiler")
        },
        None => Finding {
            detail: Some(use_of_it.to_owned()),
            ..missing("c++ compiler", "install g++ (apt install g++, dnf install gcc-c++)")
        },
    }
}

fn first_line(program: &Path) -> Option<String> {
    let output = std::process::Command::new(program).arg("--version").output().ok()?;
    String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_owned)
}

/// The GPU's driver, and the libraries of CUDA that PyTorch's wheels bring or that are installed.
pub(crate) fn gpu(python: Option<&Python>) -> Vec<Finding> {
    let version = std::fs::read_to_string("/proc/driver/nvidia/version").ok();
    let driver = match version {
        Some(text) => Finding {
            found: true,
            version: text
                .split_whitespace()
                .find(|w| w.starts_with(|c: char| c.is_ascii_digit()))
                .map(str::to_owned),
            place: Some("/proc/driver/nvidia/version".to_owned()),
            ..finding("nvidia driver")
        },
        None if super::has_gpu() => {
            Finding { found: true, place: Some("/dev/nvidiactl".to_owned()), ..finding("nvidia driver") }
        }
        None => Finding {
            detail: Some("for torch:cuda".to_owned()),
            ..missing("nvidia driver", "run on a machine with an NVIDIA GPU and its driver")
        },
    };
    let folders = library_folders(python);
    let library = |(component, stem): (&str, &str)| match newest(&folders, stem) {
        Some(place) => Finding {
            found: true,
            version: place.file_name().and_then(|n| n.to_str()?.strip_prefix(stem).map(str::to_owned)),
            place: Some(place.display().to_string()),
            ..finding(component)
        },
        None => {
            missing(component, "it comes with a torch that is built for CUDA, or with NVIDIA's CUDA toolkit")
        }
    };
    let libraries = [("cublas", "libcublas.so."), ("cudnn", "libcudnn.so."), ("nvrtc", "libnvrtc.so.")];
    std::iter::once(driver).chain(libraries.into_iter().map(library)).collect()
}

/// Beside torch first, then where the toolkit and the system put libraries.
fn library_folders(python: Option<&Python>) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    if let Some(python) = python {
        let (major, minor, _) = python.has.python;
        let prefix = python.executable.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
        let packages = prefix.join(format!("lib/python{major}.{minor}/site-packages/nvidia"));
        let parts = std::fs::read_dir(packages).into_iter().flatten().flatten();
        folders.extend(parts.map(|part| part.path().join("lib")));
        folders.sort();
    }
    let system =
        ["/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64"];
    folders.extend(system.map(PathBuf::from));
    folders
}

/// The first folder's file whose name begins with `stem`; of several there the last by name.
fn newest(folders: &[PathBuf], stem: &str) -> Option<PathBuf> {
    folders.iter().find_map(|folder| {
        let files = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
        files.filter(|f| f.file_name().and_then(|n| n.to_str()).is_some_and(|n| n.starts_with(stem))).max()
    })
}
