//! One long-lived Python worker: started, asked, timed, and buried with its last words.

use std::collections::VecDeque;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::Error;
use crate::group::Group;
use crate::protocol::{self, Answer, Hello, Reply, Request};

/// Bytes of standard error that are kept.
const LAST_WORDS: usize = 8 << 10;
/// Lines of standard error that a message shows.
const LAST_LINES: usize = 20;
/// While an answer is awaited, how often to look whether the worker still lives.
const WATCH: Duration = Duration::from_millis(200);
/// How long a worker that closed its pipe may take to end.
const DYING: Duration = Duration::from_secs(2);

/// The Python package, file by file.
const PACKAGE: [(&str, &str); 8] = [
    ("__init__.py", include_str!("../py/ulpian/__init__.py")),
    ("protocol.py", include_str!("../py/ulpian/protocol.py")),
    ("worker.py", include_str!("../py/ulpian/worker.py")),
    ("torch_ops.py", include_str!("../py/ulpian/torch_ops.py")),
    ("torch_rows.py", include_str!("../py/ulpian/torch_rows.py")),
    ("torch_executor.py", include_str!("../py/ulpian/torch_executor.py")),
    ("ort_ops.py", include_str!("../py/ulpian/ort_ops.py")),
    ("ort_executor.py", include_str!("../py/ulpian/ort_executor.py")),
];

/// Writes the Python package into `folder` and returns what to put on Python's path. A package already there stays.
pub(crate) fn unpack(folder: &Path) -> Result<PathBuf, Error> {
    let root = folder.join("py");
    let package = root.join("ulpian");
    if !package.exists() {
        let fail = |e| Error::system(format!("writing {}", package.display()), &e);
        std::fs::create_dir_all(&package).map_err(fail)?;
        for (name, text) in PACKAGE {
            std::fs::write(package.join(name), text).map_err(fail)?;
        }
    }
    Ok(root)
}

/// What to start.
#[derive(Debug)]
pub(crate) struct Launch<'a> {
    /// The Python interpreter.
    pub(crate) python: &'a Path,
    /// The folder that holds the package `ulpian`.
    pub(crate) package: &'a Path,
    /// What the worker computes with: `torch` or `ort`.
    pub(crate) family: &'a str,
    /// Variables set besides those that Ulpian itself has.
    pub(crate) env: &'a [(String, String)],
    /// The folders of tensors in transit.
    pub(crate) folders: &'a [String],
}

/// A worker that said hello. Dropping it kills the process, and those that it started.
#[derive(Debug)]
pub(crate) struct Worker {
    group: Group,
    requests: Sender<Vec<u8>>,
    frames: Receiver<std::io::Result<Vec<u8>>>,
    stderr: Arc<Mutex<VecDeque<u8>>>,
    stderr_reader: JoinHandle<()>,
    /// What it said at the start.
    pub(crate) hello: Hello,
}

impl Worker {
    /// Starts a worker and waits for its hello, which comes after its imports.
    pub(crate) fn start(launch: &Launch<'_>, timeout: Duration) -> Result<Worker, Error> {
        // The package's folder takes the place of the working folder at the head of the path, so that no file of the user
        // is imported by mistake.
        const BOOT: &str =
            "import sys; sys.path[0] = sys.argv[1]; from ulpian.worker import main; main(*sys.argv[2:])";
        let mut command = Command::new(launch.python);
        command
            .args(["-c", BOOT])
            .arg(launch.package)
            .arg(launch.family)
            .arg(std::process::id().to_string())
            .args(launch.folders)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .envs(launch.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut group = Group::start(&mut command)
            .map_err(|e| Error::system(format!("starting {}", launch.python.display()), &e))?;
        let child = group.leader();
        let missing = "the pipe was asked for when the process was started";
        let mut stdin = child.stdin.take().expect(missing);
        let mut stdout = child.stdout.take().expect(missing);
        let mut pipe = child.stderr.take().expect(missing);

        let (requests, pending) = channel::<Vec<u8>>();
        // Writing has a thread of its own: a stopped worker would block the one who waits for its answer.
        std::thread::spawn(move || {
            while let Ok(frame) = pending.recv() {
                if std::io::Write::write_all(&mut stdin, &frame).is_err() {
                    return;
                }
            }
        });
        let (found, frames) = channel();
        std::thread::spawn(move || {
            while let Some(frame) = protocol::read_frame(&mut stdout).transpose() {
                let last = frame.is_err();
                if found.send(frame).is_err() || last {
                    return;
                }
            }
        });
        let stderr = Arc::new(Mutex::new(VecDeque::new()));
        let ring = Arc::clone(&stderr);
        let stderr_reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = pipe.read(&mut buffer) {
                let mut ring = ring.lock().unwrap_or_else(PoisonError::into_inner);
                ring.extend(&buffer[..n]);
                let excess = ring.len().saturating_sub(LAST_WORDS);
                ring.drain(..excess);
            }
        });
        let hello =
            Hello { protocol: 0, byteorder: String::new(), facts: serde_json::Map::new(), problem: None };
        let mut worker = Worker { group, requests, frames, stderr, stderr_reader, hello };
        let body = worker.receive(timeout)?;
        worker.hello = worker.parse(&body)?;
        if worker.hello.protocol != protocol::VERSION || worker.hello.byteorder != "little" {
            let what = format!(
                "it speaks version {} on a {}-endian machine, and Ulpian version {} on little-endian ones",
                worker.hello.protocol,
                worker.hello.byteorder,
                protocol::VERSION
            );
            return Err(worker.broken(what));
        }
        Ok(worker)
    }

    /// Is the process still there?
    pub(crate) fn is_alive(&mut self) -> bool {
        !self.group.has_ended()
    }

    /// The process's number.
    pub(crate) fn pid(&self) -> u32 {
        self.group.id()
    }

    /// Asks and waits for the answer. After any error the process is dead or unusable, and this worker must be dropped.
    pub(crate) fn ask(&mut self, request: &Request<'_>, timeout: Duration) -> Result<Answer, Error> {
        let mut frame = Vec::new();
        protocol::write_frame(&mut frame, request)
            .map_err(|e| Error::system("a request to the worker", &e))?;
        // Where the thread has ended, so has the process; that shows below.
        let _ = self.requests.send(frame);
        let body = self.receive(timeout)?;
        let reply: Reply = self.parse(&body)?;
        if reply.id != request.id {
            return Err(self.broken(format!("an answer to request {}, not {}", reply.id, request.id)));
        }
        Ok(reply.answer)
    }

    fn parse<T: serde::de::DeserializeOwned>(&mut self, body: &[u8]) -> Result<T, Error> {
        serde_json::from_slice(body).map_err(|e| self.broken(format!("an answer that cannot be read: {e}")))
    }

    fn receive(&mut self, timeout: Duration) -> Result<Vec<u8>, Error> {
        let deadline = Instant::now() + timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.frames.recv_timeout(left.min(WATCH)) {
                Ok(Ok(body)) => return Ok(body),
                Ok(Err(error)) => return Err(self.broken(error.to_string())),
                // A child of a worker that ended may hold the pipe open.
                Err(RecvTimeoutError::Timeout) if left > WATCH && !self.group.has_ended() => {}
                Err(RecvTimeoutError::Timeout) if left <= WATCH => {
                    let _ = self.group.end();
                    return Err(Error::Timeout { seconds: timeout.as_secs(), stderr: self.last_words() });
                }
                Err(_) => {
                    let status = self.wait();
                    return Err(Error::Died { status, stderr: self.last_words() });
                }
            }
        }
    }

    fn broken(&mut self, what: String) -> Error {
        let _ = self.group.end();
        Error::Protocol { what, stderr: self.last_words() }
    }

    /// How the process ended, in words.
    fn wait(&mut self) -> String {
        let deadline = Instant::now() + DYING;
        while Instant::now() < deadline {
            if self.group.has_ended() {
                return self.group.end().map_or_else(|e| e.to_string(), describe);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.group.end();
        "it closed its pipe, did not end, and was killed".to_owned()
    }

    /// The end of what the process wrote to standard error.
    fn last_words(&self) -> String {
        // A process that left the worker's group may hold the pipe open, so the wait is short.
        let deadline = Instant::now() + Duration::from_millis(300);
        while !self.stderr_reader.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
        let bytes: Vec<u8> =
            self.stderr.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        tail(&String::from_utf8_lossy(&bytes))
    }
}

/// The last lines of a text.
pub(crate) fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
}

fn describe(status: ExitStatus) -> String {
    if let Some(code) = status.code() {
        return format!("exit code {code}");
    }
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        let name = match signal {
            4 => "SIGILL: an instruction this processor does not have",
            6 => "SIGABRT",
            7 => "SIGBUS",
            8 => "SIGFPE",
            9 => "SIGKILL: from outside, or by the system for want of memory",
            11 => "SIGSEGV",
            15 => "SIGTERM",
            _ => return format!("signal {signal}"),
        };
        return format!("signal {signal}, {name}");
    }
    status.to_string()
}
