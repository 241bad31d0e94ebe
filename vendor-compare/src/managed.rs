//! Ulpian's own Python environment: made once, in the user's cache folder, by one process at a time.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::Error;
use crate::environment::{self, Origin, Progress, Python, PythonSearch};
use crate::last_words::tail;

/// What is installed.
pub const PACKAGES: &[&str] = &["torch==2.11.0", "numpy==2.4.6", "onnx==1.23.2", "onnxruntime==1.32.0"];
/// The Python versions that have wheels of all of these.
const VERSIONS: std::ops::RangeInclusive<(u32, u32)> = (3, 11)..=(3, 14);
/// Bytes that the environment takes on Linux with CUDA's libraries, about.
const SIZE: u64 = 4_600_000_000;
/// Bytes that must be free: the environment and what pip unpacks meanwhile.
const NEEDED: u64 = 6_500_000_000;
/// Written last: an environment without it is unfinished.
const MARKER: &str = "ulpian-complete";

fn folder(cache: &Path) -> PathBuf {
    cache.join("ulpian").join("python-torch-2.11.0")
}

/// The environment, if it is there and finished.
pub(crate) fn existing(cache: &Path) -> Option<Python> {
    let folder = folder(cache);
    if !folder.join(MARKER).is_file() {
        return None;
    }
    let executable = environment::in_environment(&folder);
    let has = environment::probe(&executable).ok().filter(|has| has.torch.is_some())?;
    Some(Python { executable, origin: Origin::Managed, has })
}

/// Makes the environment, or waits for the process that makes it.
pub(crate) fn make(search: &PythonSearch, progress: &dyn Fn(Progress)) -> Result<Python, Error> {
    if let Some(python) = existing(&search.cache) {
        return Ok(python);
    }
    let folder = folder(&search.cache);
    let fail = |what: &str, error: &std::io::Error| {
        Error::unavailable(
            format!("Ulpian's Python environment cannot be made: {what}: {error}"),
            "make the cache folder writable, or set ULPIAN_PYTHON to a Python that has torch",
        )
    };
    let parent = search.cache.join("ulpian");
    std::fs::create_dir_all(&parent).map_err(|e| fail(&parent.display().to_string(), &e))?;
    let lock_path = parent.join("python-torch-2.11.0.lock");
    let lock = File::create(&lock_path).map_err(|e| fail(&lock_path.display().to_string(), &e))?;
    if lock.try_lock().is_err() {
        progress(Progress::Waiting { folder: folder.clone() });
        lock.lock().map_err(|e| fail(&lock_path.display().to_string(), &e))?;
        if let Some(python) = existing(&search.cache) {
            return Ok(python);
        }
    }
    let started = Instant::now();
    let base = base_python(search)?;
    check_space(&base, &parent)?;
    progress(Progress::Started { folder: folder.clone(), packages: PACKAGES, expected: SIZE });
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(|e| fail(&folder.display().to_string(), &e))?;
    }
    let mut log = Log { progress, folder: &folder, text: String::new() };
    log.run(Command::new(&base).args(["-m", "venv"]).arg(&folder))?;
    let executable = environment::in_environment(&folder);
    log.run(
        Command::new(&executable)
            .args([
                "-m",
                "pip",
                "install",
                "--disable-pip-version-check",
                "--no-input",
                "--progress-bar",
                "off",
            ])
            .args(PACKAGES),
    )?;
    let marker = folder.join(MARKER);
    let mut file = File::create(&marker).map_err(|e| fail(&marker.display().to_string(), &e))?;
    writeln!(file, "{}", PACKAGES.join("\n")).map_err(|e| fail(&marker.display().to_string(), &e))?;
    progress(Progress::Finished { folder: folder.clone(), seconds: started.elapsed().as_secs_f64() });
    existing(&search.cache).ok_or_else(|| {
        Error::unavailable(
            format!("pip reported success, yet {} has no torch", executable.display()),
            format!("remove {} and try again, or set ULPIAN_PYTHON", folder.display()),
        )
    })
}

/// An interpreter that can make the environment.
fn base_python(search: &PythonSearch) -> Result<PathBuf, Error> {
    let names = ["python3", "python3.13", "python3.12", "python3.11", "python3.14", "python"];
    let (low, high) = (VERSIONS.start(), VERSIONS.end());
    let wanted = format!("Python {}.{} to {}.{}", low.0, low.1, high.0, high.1);
    let mut problem = format!("no {wanted} was found on PATH");
    for name in names {
        for executable in search.path.iter().map(|folder| folder.join(name)).filter(|p| p.is_file()) {
            match environment::probe(&executable) {
                Ok(has) if !VERSIONS.contains(&(has.python.0, has.python.1)) => {}
                Ok(_) => match environment::ask(&executable, "import venv, ensurepip") {
                    Ok(_) => return Ok(executable),
                    Err(why) => {
                        problem = format!("{} cannot make environments: {why}", executable.display());
                    }
                },
                Err(_) => {}
            }
        }
    }
    Err(Error::unavailable(
        problem,
        format!(
            "install {wanted} with its venv module (Debian, Ubuntu: apt install python3-venv), or set ULPIAN_PYTHON to a \
             Python that has torch"
        ),
    ))
}

fn check_space(base: &Path, parent: &Path) -> Result<(), Error> {
    let folder = serde_json::Value::from(parent.to_string_lossy().into_owned());
    let script = format!("import shutil; print(shutil.disk_usage({folder}).free)");
    let free = environment::ask(base, &script).ok().and_then(|text| text.trim().parse::<u64>().ok());
    match free {
        Some(free) if free < NEEDED => Err(Error::unavailable(
            format!(
                "Ulpian's Python environment needs {:.1} GB in {}, and {:.1} GB are free",
                NEEDED as f64 / 1e9,
                parent.display(),
                free as f64 / 1e9
            ),
            "free some space, choose another cache folder, or set ULPIAN_PYTHON to a Python that has torch",
        )),
        _ => Ok(()),
    }
}

/// Runs commands and passes on what they print.
struct Log<'a> {
    progress: &'a dyn Fn(Progress),
    folder: &'a Path,
    text: String,
}

impl Log<'_> {
    fn run(&mut self, command: &mut Command) -> Result<(), Error> {
        let shown = command.get_args().map(|a| a.to_string_lossy()).collect::<Vec<_>>().join(" ");
        let failed = |why: &str| {
            Error::unavailable(
                format!("Ulpian's Python environment could not be made: `{shown}` {why}"),
                "see pip's message (network, proxy, index); or set ULPIAN_PYTHON to a Python that has torch",
            )
        };
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| failed(&format!("does not start: {e}")))?;
        let (lines, printed) = channel();
        let streams: [Option<Box<dyn std::io::Read + Send>>; 2] = [
            child.stdout.take().map(|s| Box::new(s) as Box<_>),
            child.stderr.take().map(|s| Box::new(s) as Box<_>),
        ];
        for stream in streams.into_iter().flatten() {
            let lines = lines.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    if lines.send(line).is_err() {
                        return;
                    }
                }
            });
        }
        drop(lines);
        loop {
            match printed.recv_timeout(Duration::from_secs(2)) {
                Ok(line) => {
                    self.text.push_str(&line);
                    self.text.push('\n');
                    (self.progress)(Progress::Line(line));
                }
                Err(RecvTimeoutError::Timeout) => (self.progress)(Progress::Size(size_of(self.folder))),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let status = child.wait().map_err(|e| failed(&e.to_string()))?;
        if status.success() {
            return Ok(());
        }
        Err(failed(&format!("ended with {status}; its last words:\n{}", tail(&self.text))))
    }
}

/// Bytes of the files under a folder.
fn size_of(folder: &Path) -> u64 {
    let Ok(list) = std::fs::read_dir(folder) else { return 0 };
    list.flatten()
        .map(|entry| match entry.metadata() {
            Ok(data) if data.is_dir() => size_of(&entry.path()),
            Ok(data) => data.len(),
            Err(_) => 0,
        })
        .sum()
}
