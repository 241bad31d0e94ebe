//! One long-lived Python worker: started, asked, timed, and buried with its last words.

use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use crate::Error;
use crate::group::Group;
use crate::last_words::LastWords;
use crate::protocol::{self, Answer, Hello, Reply, Request};

/// While an answer is awaited, how often to look whether the worker still lives.
const WATCH: Duration = Duration::from_millis(200);
/// How long a worker that closed its pipe may take to end.
const DYING: Duration = Duration::from_secs(2);

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
    stderr: LastWords,
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
        let pipe = child.stderr.take().expect(missing);

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
        let stderr = LastWords::of(pipe);
        let hello =
            Hello { protocol: 0, byteorder: String::new(), facts: serde_json::Map::new(), problem: None };
        let mut worker = Worker { group, requests, frames, stderr, hello };
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
                    return Err(Error::Timeout { seconds: timeout.as_secs(), stderr: self.stderr.text() });
                }
                Err(_) => {
                    let status = self.wait();
                    return Err(Error::Died { status, stderr: self.stderr.text() });
                }
            }
        }
    }

    fn broken(&mut self, what: String) -> Error {
        let _ = self.group.end();
        Error::Protocol { what, stderr: self.stderr.text() }
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
}

/// How a process ended, in words.
pub(crate) fn describe(status: ExitStatus) -> String {
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
