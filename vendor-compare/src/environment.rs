//! The Python that computes: found, or made once.
//!
//! In this order: the one the caller names; the active environment's; one on the search path; Ulpian's own, under the user's
//! cache folder. All but the first count only if they have PyTorch, which is asked without importing it.

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::group::Group;
use crate::{Error, managed};

/// How long an interpreter may take to say what it has.
const PROBE_TIMEOUT: Duration = Duration::from_secs(60);

/// Where to look for Python. The library reads no environment variable: its caller fills this in.
#[derive(Debug, Clone, Default)]
pub struct PythonSearch {
    /// The interpreter to use and no other (`ULPIAN_PYTHON`).
    pub chosen: Option<PathBuf>,
    /// Folders of active environments (`VIRTUAL_ENV`, `CONDA_PREFIX`).
    pub active: Vec<PathBuf>,
    /// The search path's folders (`PATH`).
    pub path: Vec<PathBuf>,
    /// The user's cache folder.
    pub cache: PathBuf,
    /// May Ulpian make an environment of its own, or use one that it made?
    pub allow_managed: bool,
}

impl PythonSearch {
    /// What the environment says, by `variable`: `ULPIAN_PYTHON`, `VIRTUAL_ENV`, `CONDA_PREFIX`, `PATH`, and
    /// `ULPIAN_MANAGED_PYTHON`, which is `0` where no environment may be made.
    pub fn from_variables(variable: impl Fn(&str) -> Option<OsString>, cache: PathBuf) -> PythonSearch {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        PythonSearch {
            chosen: set("ULPIAN_PYTHON").map(PathBuf::from),
            active: ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(set).map(PathBuf::from).collect(),
            path: set("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default(),
            cache,
            allow_managed: set("ULPIAN_MANAGED_PYTHON").is_none_or(|value| value != "0"),
        }
    }
}

/// How a Python was come by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The caller named it.
    Chosen,
    /// The active environment's.
    Active,
    /// On the search path.
    Path,
    /// Ulpian's own.
    Managed,
}

impl Origin {
    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Origin::Chosen => "named by ULPIAN_PYTHON",
            Origin::Active => "the active environment's",
            Origin::Path => "found on PATH",
            Origin::Managed => "Ulpian's own environment",
        }
    }
}

/// A Python with PyTorch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Python {
    /// The interpreter.
    pub executable: PathBuf,
    /// How it was come by.
    pub origin: Origin,
    /// What it has.
    pub has: Probe,
}

/// What an interpreter says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Probe {
    /// Major, minor and micro version.
    pub python: (u32, u32, u32),
    /// The version of torch.
    pub torch: Option<String>,
    /// The version of onnx.
    pub onnx: Option<String>,
    /// The version of onnxruntime.
    pub onnxruntime: Option<String>,
}

/// News while Ulpian makes its environment.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// Another process makes it; this one waits.
    Waiting {
        /// The environment's folder.
        folder: PathBuf,
    },
    /// It begins.
    Started {
        /// The environment's folder.
        folder: PathBuf,
        /// What will be installed.
        packages: &'static [&'static str],
        /// Bytes that it takes in the end, about.
        expected: u64,
    },
    /// A line that pip printed.
    Line(String),
    /// Bytes on disk so far.
    Size(u64),
    /// It is ready.
    Finished {
        /// The environment's folder.
        folder: PathBuf,
        /// Seconds that it took.
        seconds: f64,
    },
}

/// The Python to use, if there is one already. Makes nothing.
///
/// # Errors
/// [`Error::Unavailable`], with what was looked at and the remedy.
pub fn find(search: &PythonSearch) -> Result<Python, Error> {
    if let Some(chosen) = &search.chosen {
        return named(chosen);
    }
    let active = search.active.iter().map(|folder| (in_environment(folder), Origin::Active));
    let path = search
        .path
        .iter()
        .flat_map(|folder| ["python", "python3"].map(|name| (folder.join(name), Origin::Path)));
    let mut looked_at = Vec::new();
    let mut seen = Vec::new();
    for (executable, origin) in active.chain(path) {
        let Some(identity) = identity(&executable).filter(|id| !seen.contains(id)) else { continue };
        seen.push(identity);
        if let Ok(has) = probe(&executable)
            && has.torch.is_some()
        {
            return Ok(Python { executable, origin, has });
        }
        looked_at.push(executable);
    }
    let looked = match looked_at.as_slice() {
        [] => "no Python was found on PATH".to_owned(),
        list => {
            let list: Vec<String> = list.iter().map(|p| p.display().to_string()).collect();
            format!("no Python with torch was found (looked at {})", list.join(", "))
        }
    };
    if !search.allow_managed {
        return Err(Error::unavailable(
            format!("{looked}, and Ulpian may not make an environment of its own"),
            "set ULPIAN_PYTHON to a Python that has torch, or allow the managed environment",
        ));
    }
    managed::existing(&search.cache).ok_or_else(|| {
        Error::unavailable(
            looked,
            "set ULPIAN_PYTHON to a Python that has torch; or run `ulpian judge`, which makes an environment of its own",
        )
    })
}

/// The Python to use. Where there is none with PyTorch, Ulpian's own environment is made, which takes minutes.
///
/// # Errors
/// [`Error::Unavailable`], with the remedy.
pub fn find_or_make(search: &PythonSearch, progress: &dyn Fn(Progress)) -> Result<Python, Error> {
    match find(search) {
        Err(_) if search.chosen.is_none() && search.allow_managed => managed::make(search, progress),
        found => found,
    }
}

/// The interpreter that the caller names, which must have PyTorch.
fn named(chosen: &Path) -> Result<Python, Error> {
    let has = probe(chosen).map_err(|why| {
        Error::unavailable(
            format!("{}, named by ULPIAN_PYTHON, does not run: {why}", chosen.display()),
            "set ULPIAN_PYTHON to a Python interpreter that has torch, or unset it",
        )
    })?;
    if has.torch.is_none() {
        return Err(Error::unavailable(
            format!("{}, named by ULPIAN_PYTHON, has no torch", chosen.display()),
            format!("install it: {} -m pip install torch; or unset ULPIAN_PYTHON", chosen.display()),
        ));
    }
    Ok(Python { executable: chosen.to_owned(), origin: Origin::Chosen, has })
}

/// What makes two names the same interpreter: the file behind the links, and the folder that it is called in, which makes it a
/// virtual environment's. `None` where there is no such file.
fn identity(executable: &Path) -> Option<(PathBuf, PathBuf)> {
    let file = executable.canonicalize().ok().filter(|file| file.is_file())?;
    Some((executable.parent()?.canonicalize().ok()?, file))
}

/// The interpreter of a virtual or conda environment.
pub(crate) fn in_environment(folder: &Path) -> PathBuf {
    if cfg!(windows) { folder.join("Scripts").join("python.exe") } else { folder.join("bin").join("python") }
}

/// Asks an interpreter what it has, without importing it.
pub(crate) fn probe(executable: &Path) -> Result<Probe, String> {
    const SCRIPT: &str = r#"
import sys; sys.path.pop(0)
import importlib.util, importlib.metadata, json
def version(name):
    if importlib.util.find_spec(name) is None: return None
    try: return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError: return "unknown"
print(json.dumps({"python": sys.version_info[:3], **{n: version(n) for n in ("torch", "onnx", "onnxruntime")}}))
"#;
    serde_json::from_str(&ask(executable, SCRIPT)?).map_err(|e| e.to_string())
}

/// Runs a short script and returns what it prints. Whatever it starts ends with it.
pub(crate) fn ask(executable: &Path, script: &str) -> Result<String, String> {
    let mut command = Command::new(executable);
    command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut group = Group::start(&mut command).map_err(|e| e.to_string())?;
    let deadline = Instant::now() + PROBE_TIMEOUT;
    while !group.has_ended() {
        if Instant::now() > deadline {
            return Err(format!("no answer within {} s", PROBE_TIMEOUT.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    // Before the pipes are read, which a child of the script could hold open.
    let status = group.end().map_err(|e| e.to_string())?;
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let leader = group.leader();
    let read_out = leader.stdout.take().map_or(Ok(0), |mut pipe| pipe.read_to_end(&mut out));
    let read_err = leader.stderr.take().map_or(Ok(0), |mut pipe| pipe.read_to_end(&mut err));
    read_out.and(read_err).map_err(|e| e.to_string())?;
    if !status.success() {
        let text = String::from_utf8_lossy(&err);
        return Err(text.trim().lines().last().unwrap_or("it failed without a word").to_owned());
    }
    Ok(String::from_utf8_lossy(&out).into_owned())
}
