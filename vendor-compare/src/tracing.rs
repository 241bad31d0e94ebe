//! Models traced in Python, each in a process of its own, which is given one request and writes two files of plain JSON Lines.
//!
//! The Python side is `py/ulpian/tracing/run.py`; both change together.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use ulpian_spec::DType;

use crate::Error;
use crate::group::{Group, forget_folder, remember_folder};
use crate::last_words::LastWords;
use crate::package::unpack;
use crate::process::describe;

/// How often a silent process is looked at.
const WATCH: Duration = Duration::from_millis(200);
/// How long a process may take to end after its last word.
const DYING: Duration = Duration::from_secs(2);

/// How a model is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Options {
    /// What the model and its inputs are converted to; as the source makes them where there is none.
    pub dtype: Option<DType>,
    /// Images or texts at a time.
    pub batch: usize,
    /// The side of images, where not the model's own.
    pub image_size: Option<usize>,
    /// Of random weights.
    pub seed: u64,
    /// PyTorch's threads.
    pub threads: usize,
}

/// What a model left: two files of plain JSON Lines, in a folder that goes with this.
#[derive(Debug)]
pub struct Traced {
    /// The graph, `ulpian-graph/1`.
    pub graph: PathBuf,
    /// The features of the calls' inputs, `ulpian-features/1`.
    pub features: PathBuf,
    folder: TempDir,
}

impl Drop for Traced {
    fn drop(&mut self) {
        forget_folder(self.folder.path());
    }
}

/// Starts the processes.
#[derive(Debug)]
pub struct Tracing {
    python: PathBuf,
    package: PathBuf,
    folder: TempDir,
}

impl Drop for Tracing {
    fn drop(&mut self) {
        forget_folder(self.folder.path());
    }
}

#[derive(Serialize)]
struct Request<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    list: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
    #[serde(flatten)]
    options: Option<Options>,
    graph: &'a Path,
    features: &'a Path,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Message {
    Doing(String),
    Done {
        #[serde(default)]
        names: Vec<String>,
    },
    Missing {
        reason: String,
        remedy: String,
    },
    Refused {
        reason: String,
        remedy: String,
    },
    Raised {
        kind: String,
        message: String,
    },
}

impl Tracing {
    /// Over this Python, with temporary files in `scratch`.
    ///
    /// # Errors
    /// [`Error::System`] where these cannot be written.
    pub fn new(python: &Path, scratch: &Path) -> Result<Tracing, Error> {
        let folder = temporary(scratch)?;
        let package = unpack(folder.path())?;
        Ok(Tracing { python: python.to_owned(), package, folder })
    }

    /// The names of all models of a kind of source (`torchvision`, `timm`, …).
    ///
    /// # Errors
    /// As [`Tracing::trace`].
    pub fn names(&self, kind: &str, timeout: Duration) -> Result<Vec<String>, Error> {
        let nowhere = Path::new("");
        let request =
            Request { list: Some(kind), source: None, options: None, graph: nowhere, features: nowhere };
        self.run(&request, timeout, &mut |_| {})
    }

    /// Runs one model. `doing` hears what is being done.
    ///
    /// # Errors
    /// Why the model left nothing: [`Error::Unavailable`] with the remedy, an exception, a crash, or the time.
    pub fn trace(
        &self,
        source: &str,
        options: Options,
        timeout: Duration,
        doing: &mut dyn FnMut(&str),
    ) -> Result<Traced, Error> {
        let folder = temporary(self.folder.path())?;
        let graph = folder.path().join("graph.jsonl");
        let features = folder.path().join("features.jsonl");
        let request = Request {
            list: None,
            source: Some(source),
            options: Some(options),
            graph: &graph,
            features: &features,
        };
        self.run(&request, timeout, doing)?;
        Ok(Traced { graph, features, folder })
    }

    fn run(
        &self,
        request: &Request<'_>,
        timeout: Duration,
        doing: &mut dyn FnMut(&str),
    ) -> Result<Vec<String>, Error> {
        // The package's folder takes the place of the working folder at the head of the path, so that no file of the user
        // is imported by mistake.
        const BOOT: &str =
            "import sys; sys.path[0] = sys.argv[1]; from ulpian.tracing.run import main; main(sys.argv[2])";
        let request = serde_json::to_string(request)
            .map_err(|e| Error::System { what: "a request to the tracer".into(), message: e.to_string() })?;
        let mut command = Command::new(&self.python);
        command
            .args(["-c", BOOT])
            .arg(&self.package)
            .arg(request)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut group = Group::start(&mut command)
            .map_err(|e| Error::system(format!("starting {}", self.python.display()), &e))?;
        let child = group.leader();
        let missing = "the pipe was asked for when the process was started";
        // It ends when this closes, and so when Ulpian ends.
        let _held_open = child.stdin.take().expect(missing);
        let stdout = BufReader::new(child.stdout.take().expect(missing));
        let stderr = LastWords::of(child.stderr.take().expect(missing));
        let (found, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines() {
                let last = line.is_err();
                if found.send(line).is_err() || last {
                    return;
                }
            }
        });
        let deadline = Instant::now() + timeout;
        let mut ended = false;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match lines.recv_timeout(left.min(WATCH)) {
                Ok(Ok(line)) => match serde_json::from_str(&line) {
                    Ok(Message::Doing(what)) => doing(&what),
                    Ok(Message::Done { names }) => return Ok(names),
                    Ok(Message::Missing { reason, remedy }) => {
                        return Err(Error::unavailable(reason, remedy));
                    }
                    Ok(Message::Refused { reason, remedy }) => return Err(Error::Input { reason, remedy }),
                    Ok(Message::Raised { kind, message }) => {
                        return Err(Error::Exception { node: None, kind, message });
                    }
                    Err(e) => {
                        let _ = group.end();
                        let what = format!("{e}: {line:.80}");
                        return Err(Error::Protocol { what, stderr: stderr.text() });
                    }
                },
                // A child of a process that ended may hold the pipe open.
                Err(RecvTimeoutError::Timeout) if left > WATCH && !ended => ended = group.has_ended(),
                Err(RecvTimeoutError::Timeout) if left <= WATCH => {
                    let _ = group.end();
                    return Err(Error::Timeout { seconds: timeout.as_secs(), stderr: stderr.text() });
                }
                _ => return Err(Error::Died { status: end(&mut group), stderr: stderr.text() }),
            }
        }
    }
}

fn temporary(parent: &Path) -> Result<TempDir, Error> {
    let folder = tempfile::Builder::new()
        .prefix("ulpian-trace-")
        .tempdir_in(parent)
        .map_err(|e| Error::system(format!("a folder in {}", parent.display()), &e))?;
    remember_folder(folder.path());
    Ok(folder)
}

/// How the process ended, in words.
fn end(group: &mut Group) -> String {
    let deadline = Instant::now() + DYING;
    while Instant::now() < deadline && !group.has_ended() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let had_ended = group.has_ended();
    match group.end() {
        Ok(status) if had_ended => describe(status),
        Ok(_) => "it closed its pipe, did not end, and was killed".to_owned(),
        Err(error) => error.to_string(),
    }
}
