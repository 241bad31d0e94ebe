//! Text files line by line, compressed or not, within limits.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;

/// The first bytes of a zstd frame (RFC 8878, section 3.1.1).
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Level of compression: zstd's default.
const LEVEL: i32 = 3;

/// What a file may cost before it is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one line.
    pub line: usize,
    /// Bytes of the whole text, after decompression.
    pub text: u64,
}

impl Default for Limits {
    /// 16 MiB a line, 1 GiB a file.
    fn default() -> Limits {
        Limits { line: 16 << 20, text: 1 << 30 }
    }
}

/// The lines of a text file. Blank ones are passed over.
pub struct Lines {
    path: PathBuf,
    reader: Box<dyn BufRead + Send>,
    limits: Limits,
    line: usize,
    bytes: u64,
    buffer: Vec<u8>,
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").field("path", &self.path).field("line", &self.line).finish_non_exhaustive()
    }
}

impl Lines {
    /// Opens a file; whether it is compressed is seen from its first bytes.
    pub fn open(path: &Path, limits: Limits) -> Result<Lines, Error> {
        let at = |source| Error::io(path, source);
        let mut file = File::open(path).map_err(at)?;
        let mut magic = Vec::with_capacity(ZSTD_MAGIC.len());
        (&mut file).take(ZSTD_MAGIC.len() as u64).read_to_end(&mut magic).map_err(at)?;
        file.rewind().map_err(at)?;
        let reader: Box<dyn BufRead + Send> = if magic == ZSTD_MAGIC {
            Box::new(BufReader::new(zstd::stream::read::Decoder::new(file).map_err(at)?))
        } else {
            Box::new(BufReader::new(file))
        };
        Ok(Lines::new(path, reader, limits))
    }

    /// The lines of what `reader` gives; `path` is for messages.
    pub fn new(path: &Path, reader: Box<dyn BufRead + Send>, limits: Limits) -> Lines {
        Lines { path: path.to_owned(), reader, limits, line: 0, bytes: 0, buffer: Vec::new() }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// An error about the line that was read last.
    pub fn error(&self, message: impl Into<String>) -> Error {
        Error::line(&self.path, self.line, message)
    }

    /// The next line that is not blank, without its end; none after the last.
    pub fn next_line(&mut self) -> Result<Option<&str>, Error> {
        loop {
            self.buffer.clear();
            let limit = self.limits.line as u64 + 1;
            let read = (&mut self.reader).take(limit).read_until(b'\n', &mut self.buffer);
            let read = read.map_err(|e| Error::io(&self.path, e))? as u64;
            if read == 0 {
                return Ok(None);
            }
            self.line += 1;
            self.bytes += read;
            if read == limit && self.buffer.last() != Some(&b'\n') {
                return Err(self.error(format!("the line is longer than {} bytes", self.limits.line)));
            }
            if self.bytes > self.limits.text {
                return Err(self.error(format!("the text is longer than {} bytes", self.limits.text)));
            }
            if !self.buffer.trim_ascii().is_empty() {
                break;
            }
        }
        match std::str::from_utf8(self.buffer.trim_ascii()) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(Error::line(&self.path, self.line, "the line is not UTF-8")),
        }
    }

    /// The next line as JSON.
    pub fn json<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Error> {
        let Some(text) = self.next_line()? else { return Ok(None) };
        match serde_json::from_str(text) {
            Ok(value) => Ok(Some(value)),
            Err(e) => Err(self.error(at_column(&e))),
        }
    }

    /// The first line, whose `format` must be this one.
    pub fn header<T: DeserializeOwned>(&mut self, format: &str) -> Result<T, Error> {
        #[derive(serde::Deserialize)]
        struct Probe {
            format: String,
        }
        let path = self.path.clone();
        let Some(text) = self.next_line()? else {
            return Err(Error::file(
                &path,
                format!("the file is empty; a first line of `{format}` is missing"),
            ));
        };
        let header = match serde_json::from_str::<Probe>(text) {
            Err(e) => Err(format!("no header of `{format}`: {}", at_column(&e))),
            Ok(probe) if probe.format != format => {
                Err(format!("`format` is `{}`, not `{format}`", probe.format))
            }
            Ok(_) => serde_json::from_str(text).map_err(|e| at_column(&e)),
        };
        header.map_err(|message| self.error(message))
    }
}

/// serde_json counts lines within the one that it was given; only the column says something here.
fn at_column(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
    format!("{what} (column {})", error.column())
}

/// One value as a line.
pub(super) fn json_line<T: Serialize>(out: &mut dyn Write, value: &T) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}

/// The file that writing to `path` is to replace: itself, or what a link leads to.
pub fn behind_link(path: &Path) -> PathBuf {
    match path.is_symlink() {
        true => path.canonicalize().unwrap_or_else(|_| path.to_owned()),
        false => path.to_owned(),
    }
}

/// Whether `path` is a device, a pipe or a socket, which is written into and never replaced.
pub fn is_special(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir())
}

/// Has `write` make the file `path`, compressed where its name ends in `.zst`. It appears when it is complete; its folder is
/// made where needed.
pub fn write_text(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Error> {
    let encode = |file: &File| {
        let mut out = BufWriter::new(file);
        if path.extension().is_some_and(|e| e == "zst") {
            let mut encoder = zstd::stream::write::Encoder::new(&mut out, LEVEL)?;
            encoder.include_checksum(true)?;
            write(&mut encoder)?;
            encoder.finish()?;
        } else {
            write(&mut out)?;
        }
        out.flush()
    };
    let make = || {
        if is_special(path) {
            return encode(&File::options().write(true).open(path)?);
        }
        let target = behind_link(path);
        let folder = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        std::fs::create_dir_all(folder)?;
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(std::fs::Permissions::from_mode(0o644));
        }
        let staged = builder.tempfile_in(folder)?;
        encode(staged.as_file())?;
        staged.persist(&target)?;
        Ok(())
    };
    make().map_err(|e: io::Error| Error::io(path, e))
}
