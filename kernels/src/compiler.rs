//! The native kernels' way to PTX: NVRTC, and a folder of what it made.

use std::ffi::{CString, c_char};
use std::io::Write;
use std::path::{Path, PathBuf};

use cudarc::nvrtc::sys::{self, nvrtcProgram};
use sha2::{Digest, Sha256};

use crate::library::{Library, nvrtc_version};
use crate::{Error, HEADERS, Source, status};

/// Options of every compilation: nothing is contracted, approximated or flushed.
pub const OPTIONS: [&str; 5] =
    ["--std=c++17", "-fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true"];

/// NVRTC, with the folder in which PTX is kept between processes.
#[derive(Debug)]
pub struct Compiler {
    version: (i32, i32),
    known: Vec<i32>,
    cache: Option<PathBuf>,
}

impl Compiler {
    /// `cache` is made where it is not there; without it nothing is kept.
    ///
    /// # Errors
    /// Where NVRTC cannot be loaded, or does not tell what it knows.
    pub fn open(cache: Option<PathBuf>) -> Result<Compiler, Error> {
        Library::Nvrtc.check()?;
        let version = nvrtc_version()?;
        let mut count = 0;
        // SAFETY: the number is written to a local.
        let status = unsafe { sys::nvrtcGetNumSupportedArchs(&mut count) };
        status::nvrtc("nvrtcGetNumSupportedArchs", status, || None)?;
        let mut known = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: NVRTC writes as many numbers as it said just before.
        let status = unsafe { sys::nvrtcGetSupportedArchs(known.as_mut_ptr()) };
        status::nvrtc("nvrtcGetSupportedArchs", status, || None)?;
        Ok(Compiler { version, known, cache })
    }

    /// PTX of a kernel for a GPU of this compute capability; for one that is newer than NVRTC, of the newest that NVRTC knows,
    /// from which the driver goes on.
    ///
    /// # Errors
    /// NVRTC's, with its log; [`Error::Missing`] where the GPU is older than all that it knows.
    pub fn ptx(&self, source: Source, capability: (i32, i32)) -> Result<String, Error> {
        let wanted = capability.0 * 10 + capability.1;
        let Some(architecture) = self.known.iter().copied().filter(|&a| a <= wanted).max() else {
            return Err(Error::Missing {
                reason: format!(
                    "NVRTC {}.{} knows no GPU of compute capability {}.{}",
                    self.version.0, self.version.1, capability.0, capability.1
                ),
                remedy: "name the folder of an older NVRTC in ULPIAN_CUDA_PATH".to_owned(),
            });
        };
        let architecture = format!("--gpu-architecture=compute_{architecture}");
        let options: Vec<&str> = std::iter::once(architecture.as_str()).chain(OPTIONS).collect();
        let file =
            self.cache.as_ref().map(|folder| folder.join(format!("{}.ptx", self.key(source, &options))));
        if let Some(ptx) = file.as_deref().and_then(kept) {
            return Ok(ptx);
        }
        let ptx = compile(source, &options)?;
        // What cannot be kept is made again next time.
        let _ = file.map(|file| keep(&file, &ptx));
        Ok(ptx)
    }

    /// What the PTX depends on.
    fn key(&self, source: Source, options: &[&str]) -> String {
        let mut hash = Sha256::new();
        let mut add = |text: &str| {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        };
        add(&format!("NVRTC {}.{}", self.version.0, self.version.1));
        options.iter().for_each(|option| add(option));
        for part in std::iter::once(&source).chain(HEADERS) {
            add(part.file);
            add(part.text);
        }
        hex(&hash.finalize())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// The first line of a kept file: the digest of the rest.
fn seal(ptx: &str) -> String {
    format!("// sha256 {}", hex(&Sha256::digest(ptx)))
}

/// What a file holds, where it is whole.
fn kept(file: &Path) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let (first, ptx) = text.split_once('\n')?;
    (first == seal(ptx)).then(|| ptx.to_owned())
}

/// Writes a file that others may read at the same time.
fn keep(file: &Path, ptx: &str) -> std::io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut temporary = tempfile::NamedTempFile::new_in(folder)?;
    writeln!(temporary, "{}", seal(ptx))?;
    temporary.write_all(ptx.as_bytes())?;
    temporary.persist(file)?;
    Ok(())
}

/// A program of NVRTC's, destroyed on drop.
struct Program(nvrtcProgram);

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: the program was created once, and is destroyed once.
        let _ = unsafe { sys::nvrtcDestroyProgram(&mut self.0) };
    }
}

fn compile(source: Source, options: &[&str]) -> Result<String, Error> {
    let text = c_string(source.text);
    let name = c_string(source.file);
    let headers: Vec<CString> = HEADERS.iter().map(|h| c_string(h.text)).collect();
    let names: Vec<CString> = HEADERS.iter().map(|h| c_string(h.file)).collect();
    let options: Vec<CString> = options.iter().map(|o| c_string(o)).collect();
    let (headers, names, options) = (pointers(&headers), pointers(&names), pointers(&options));
    let mut program = Program(std::ptr::null_mut());
    // SAFETY: all strings end with 0 and outlive the call; both lists are as long as is said.
    let status = unsafe {
        sys::nvrtcCreateProgram(
            &mut program.0,
            text.as_ptr(),
            name.as_ptr(),
            headers.len() as i32,
            headers.as_ptr(),
            names.as_ptr(),
        )
    };
    status::nvrtc("nvrtcCreateProgram", status, || None)?;
    // SAFETY: the program was created just now; the options' strings end with 0 and outlive the call.
    let status = unsafe { sys::nvrtcCompileProgram(program.0, options.len() as i32, options.as_ptr()) };
    status::nvrtc("nvrtcCompileProgram", status, || {
        let log = text_of(
            // SAFETY: the length is written to a local.
            |length| unsafe { sys::nvrtcGetProgramLogSize(program.0, length) },
            // SAFETY: the buffer holds as many bytes as NVRTC asked for.
            |buffer| unsafe { sys::nvrtcGetProgramLog(program.0, buffer) },
        );
        Some(format!("{}\n{}", source.file, log.unwrap_or_default()))
    })?;
    text_of(
        // SAFETY: the length is written to a local.
        |length| unsafe { sys::nvrtcGetPTXSize(program.0, length) },
        // SAFETY: the buffer holds as many bytes as NVRTC asked for.
        |buffer| unsafe { sys::nvrtcGetPTX(program.0, buffer) },
    )
}

/// A text that NVRTC first tells the length of, its closing 0 counted.
fn text_of(
    length: impl FnOnce(*mut usize) -> sys::nvrtcResult,
    text: impl FnOnce(*mut c_char) -> sys::nvrtcResult,
) -> Result<String, Error> {
    let mut bytes = 0;
    status::nvrtc("the length of a text of NVRTC's", length(&mut bytes), || None)?;
    let mut buffer = vec![0u8; bytes.max(1)];
    status::nvrtc("a text of NVRTC's", text(buffer.as_mut_ptr().cast()), || None)?;
    let end = buffer.iter().position(|&b| b == 0).unwrap_or(buffer.len());
    Ok(String::from_utf8_lossy(&buffer[..end]).into_owned())
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|s| s.as_ptr()).collect()
}

/// Sources, names and options are ours and hold no 0.
fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}
