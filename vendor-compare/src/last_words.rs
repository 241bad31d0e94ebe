//! The end of what a process wrote to standard error.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes of standard error that are kept.
const LAST_WORDS: usize = 8 << 10;
/// Lines of standard error that a message shows.
const LAST_LINES: usize = 20;

/// Reads a process's standard error and keeps its end.
#[derive(Debug)]
pub(crate) struct LastWords {
    ring: Arc<Mutex<VecDeque<u8>>>,
    reader: JoinHandle<()>,
}

impl LastWords {
    /// Reads from now on, in a thread of its own.
    pub(crate) fn of(mut pipe: impl Read + Send + 'static) -> LastWords {
        let ring = Arc::new(Mutex::new(VecDeque::new()));
        let kept = Arc::clone(&ring);
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = pipe.read(&mut buffer) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend(&buffer[..n]);
                let excess = kept.len().saturating_sub(LAST_WORDS);
                kept.drain(..excess);
            }
        });
        LastWords { ring, reader }
    }

    /// The last lines so far.
    pub(crate) fn text(&self) -> String {
        // A process that left the group may hold the pipe open, so the wait is short.
        let deadline = Instant::now() + Duration::from_millis(300);
        while !self.reader.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
        let bytes: Vec<u8> =
            self.ring.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        tail(&String::from_utf8_lossy(&bytes))
    }
}

/// The last lines of a text.
pub(crate) fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
}
