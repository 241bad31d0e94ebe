//! The libraries of CUDA, checked before they are called: cudarc ends the process where one, or a function of it, is missing.

use std::path::PathBuf;
use std::sync::OnceLock;

use cudarc::{cublas, cublaslt, cudnn, driver, nvrtc};

use crate::{Error, status};

/// A library of NVIDIA's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Library {
    /// libcuda, which comes with the driver.
    Driver,
    /// libnvrtc, the compiler of the native kernels.
    Nvrtc,
    /// libcublas.
    Cublas,
    /// libcublasLt.
    CublasLt,
    /// libcudnn, version 9.
    Cudnn,
}

impl Library {
    /// All of them.
    pub const ALL: [Library; 5] =
        [Library::Driver, Library::Nvrtc, Library::Cublas, Library::CublasLt, Library::Cudnn];

    /// The start of its file's name.
    pub const fn name(self) -> &'static str {
        match self {
            Library::Driver => "libcuda",
            Library::Nvrtc => "libnvrtc",
            Library::Cublas => "libcublas",
            Library::CublasLt => "libcublasLt",
            Library::Cudnn => "libcudnn",
        }
    }

    /// The major versions that serve, the preferred one first.
    pub const fn versions(self) -> &'static [u32] {
        match self {
            Library::Driver => &[1],
            Library::Nvrtc | Library::Cublas | Library::CublasLt => &[13, 12],
            Library::Cudnn => &[9],
        }
    }

    /// The names that its file can have, the preferred one first.
    pub fn files(self) -> Vec<String> {
        self.versions().iter().map(|version| format!("{}.so.{version}", self.name())).collect()
    }

    /// How to get it.
    pub const fn remedy(self) -> &'static str {
        match self {
            Library::Driver => {
                "run on a machine with an NVIDIA GPU and its driver; in a container, pass the GPU in (--gpus all)"
            }
            Library::Nvrtc => {
                "install a torch that is built for CUDA, or NVIDIA's CUDA toolkit, or name a folder that holds libnvrtc in ULPIAN_CUDA_PATH"
            }
            Library::Cublas | Library::CublasLt => {
                "install a torch that is built for CUDA, or NVIDIA's CUDA toolkit, or name a folder that holds libcublas and libcublasLt in ULPIAN_CUDA_PATH"
            }
            Library::Cudnn => {
                "install a torch that is built for CUDA, or NVIDIA's cuDNN 9, or name a folder that holds libcudnn in ULPIAN_CUDA_PATH"
            }
        }
    }

    /// The functions that Ulpian calls.
    pub(crate) const fn functions(self) -> &'static [&'static str] {
        match self {
            Library::Driver => &[
                "cuCtxSetCurrent",
                "cuCtxSynchronize",
                "cuDeviceGet",
                "cuDeviceGetAttribute",
                "cuDeviceGetCount",
                "cuDeviceGetName",
                "cuDevicePrimaryCtxRelease_v2",
                "cuDevicePrimaryCtxRetain",
                "cuDeviceTotalMem_v2",
                "cuDriverGetVersion",
                "cuInit",
                "cuLaunchKernel",
                "cuMemAlloc_v2",
                "cuMemFree_v2",
                "cuMemGetInfo_v2",
                "cuMemcpyDtoH_v2",
                "cuMemcpyHtoD_v2",
                "cuMemsetD8_v2",
                "cuModuleGetFunction",
                "cuModuleLoadDataEx",
                "cuModuleUnload",
            ],
            Library::Nvrtc => &[
                "nvrtcCompileProgram",
                "nvrtcCreateProgram",
                "nvrtcDestroyProgram",
                "nvrtcGetNumSupportedArchs",
                "nvrtcGetPTX",
                "nvrtcGetPTXSize",
                "nvrtcGetProgramLog",
                "nvrtcGetProgramLogSize",
                "nvrtcGetSupportedArchs",
                "nvrtcVersion",
            ],
            Library::Cublas => &["cublasGetProperty"],
            Library::CublasLt => &["cublasLtGetProperty"],
            Library::Cudnn => &["cudnnGetVersion"],
        }
    }

    /// Can it be loaded, and does it hold every function that Ulpian calls? It is looked at once a process.
    ///
    /// # Errors
    /// [`Error::Missing`], with the remedy.
    pub fn check(self) -> Result<(), Error> {
        static CHECKED: [OnceLock<Result<(), Error>>; 5] = [const { OnceLock::new() }; 5];
        CHECKED[self as usize].get_or_init(|| self.look()).clone()
    }

    fn look(self) -> Result<(), Error> {
        // These are the names that cudarc tries, in its order.
        let stem = self.name().trim_start_matches("lib");
        let mut why = None;
        let loaded = cudarc::get_lib_name_candidates(stem).into_iter().find_map(|name| {
            // SAFETY: NVIDIA's libraries do nothing unsound when they are loaded; the same file would be loaded by cudarc.
            match unsafe { libloading::Library::new(&name) } {
                Ok(library) => Some(library),
                Err(error) => {
                    // A file that is there and cannot be loaded says more than one that is not there.
                    let text = reason(&error);
                    if !text.contains("No such file") || why.is_none() {
                        why = Some(text);
                    }
                    None
                }
            }
        });
        let Some(loaded) = loaded else {
            let why = why.map_or(String::new(), |why| format!(": {why}"));
            return Err(self.missing(format!("{} cannot be loaded{why}", self.name())));
        };
        let absent = self.functions().iter().find(|name| {
            // SAFETY: the symbol is looked up and never called by this type.
            unsafe { loaded.get::<unsafe extern "C" fn()>(name.as_bytes()) }.is_err()
        });
        if let Some(absent) = absent {
            let place = self.path().map_or(String::new(), |p| format!(" ({})", p.display()));
            return Err(self.missing(format!(
                "{}{place} has no function {absent}: its version is not one that Ulpian knows",
                self.name()
            )));
        }
        // What cudarc loads must be this file: a library that stays loaded is found again by its name.
        std::mem::forget(loaded);
        Ok(())
    }

    fn missing(self, reason: String) -> Error {
        Error::Missing { reason, remedy: self.remedy().to_owned() }
    }

    /// The file that was loaded into this process, where the system tells.
    pub fn path(self) -> Option<PathBuf> {
        let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
        let start = format!("{}.so", self.name());
        let files = maps.lines().filter_map(|line| line.split_once('/').map(|(_, rest)| format!("/{rest}")));
        files.map(PathBuf::from).find(|file| {
            file.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(&start))
        })
    }

    /// Its version, as it says it; of the driver, the newest version of CUDA that it serves.
    ///
    /// # Errors
    /// Where it cannot be loaded, or does not tell.
    pub fn version(self) -> Result<String, Error> {
        self.check()?;
        let property = |get: &dyn Fn(u32) -> Option<i32>| {
            let parts: Option<Vec<String>> = (0..3).map(|part| get(part).map(|n| n.to_string())).collect();
            let unknown = || self.missing(format!("{} does not tell its version", self.name()));
            parts.map(|parts| parts.join(".")).ok_or_else(unknown)
        };
        match self {
            Library::Driver => {
                driver_version().map(|version| format!("CUDA {}.{}", version / 1000, version % 1000 / 10))
            }
            Library::Nvrtc => nvrtc_version().map(|(major, minor)| format!("{major}.{minor}")),
            Library::Cublas => property(&|part| {
                use cublas::sys::{cublasGetProperty, cublasStatus_t, libraryPropertyType as Part};
                let parts = [Part::MAJOR_VERSION, Part::MINOR_VERSION, Part::PATCH_LEVEL];
                let mut value = 0;
                // SAFETY: the value is written to a local.
                let status = unsafe { cublasGetProperty(parts[part as usize], &mut value) };
                (status == cublasStatus_t::CUBLAS_STATUS_SUCCESS).then_some(value)
            }),
            Library::CublasLt => property(&|part| {
                use cublaslt::sys::{cublasLtGetProperty, cublasStatus_t, libraryPropertyType as Part};
                let parts = [Part::MAJOR_VERSION, Part::MINOR_VERSION, Part::PATCH_LEVEL];
                let mut value = 0;
                // SAFETY: the value is written to a local.
                let status = unsafe { cublasLtGetProperty(parts[part as usize], &mut value) };
                (status == cublasStatus_t::CUBLAS_STATUS_SUCCESS).then_some(value)
            }),
            Library::Cudnn => {
                // SAFETY: the call takes nothing.
                let version = unsafe { cudnn::sys::cudnnGetVersion() };
                Ok(format!("{}.{}.{}", version / 10_000, version / 100 % 100, version % 100))
            }
        }
    }

    /// Fails where the driver is too old for this library.
    ///
    /// # Errors
    /// [`Error::Missing`], with both versions.
    pub fn check_driver(self) -> Result<(), Error> {
        let version = self.version()?;
        let major = match self {
            Library::Driver | Library::Cudnn => return Ok(()),
            _ => version.split('.').next().and_then(|n| n.parse::<i32>().ok()).unwrap_or(0),
        };
        let driver = driver_version()?;
        if driver / 1000 >= major {
            return Ok(());
        }
        let wanted = if major >= 13 { "580" } else { "525" };
        Err(Error::Missing {
            reason: format!(
                "the driver serves CUDA {}.{}, and {} {version} is of CUDA {major}",
                driver / 1000,
                driver % 1000 / 10,
                self.name()
            ),
            remedy: format!(
                "update the driver to {wanted} or newer, or name a folder with libraries of CUDA {} in ULPIAN_CUDA_PATH",
                driver / 1000
            ),
        })
    }
}

fn driver_version() -> Result<i32, Error> {
    let mut version = 0;
    // SAFETY: the driver was checked by the caller; the number is written to a local.
    status::driver("cuDriverGetVersion", unsafe { driver::sys::cuDriverGetVersion(&mut version) })?;
    Ok(version)
}

/// Major and minor version of NVRTC, which was checked.
pub(crate) fn nvrtc_version() -> Result<(i32, i32), Error> {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: both numbers are written to locals.
    status::nvrtc("nvrtcVersion", unsafe { nvrtc::sys::nvrtcVersion(&mut major, &mut minor) }, || None)?;
    Ok((major, minor))
}

/// What the loader says, which libloading keeps apart.
fn reason(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), |source| source.to_string())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    fn is_name(c: char) -> bool {
        c.is_ascii_alphanumeric() || c == '_'
    }

    /// The names in a text that are called and begin as functions of CUDA's libraries do.
    fn calls(text: &str, found: &mut BTreeSet<String>) {
        for (at, _) in text.match_indices('(') {
            let before = &text[..at];
            let start = before.rfind(|c| !is_name(c)).map_or(0, |i| i + 1);
            let name = &before[start..];
            let rest =
                ["cu", "nvrtc", "cublas", "cublasLt", "cudnn"].iter().filter_map(|p| name.strip_prefix(p));
            if rest.into_iter().any(|r| r.starts_with(|c: char| c.is_ascii_uppercase())) {
                found.insert(name.to_owned());
            }
        }
    }

    fn sources(folder: &Path, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).expect("the sources").flatten() {
            let path = entry.path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|e| e == "rs") {
                calls(&std::fs::read_to_string(&path).expect("a source"), found);
            }
        }
    }

    #[test]
    fn every_function_that_is_called_is_checked_before() {
        let mut called = BTreeSet::new();
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut called);
        let checked: BTreeSet<String> =
            Library::ALL.into_iter().flat_map(Library::functions).map(|&name| name.to_owned()).collect();
        assert_eq!(called, checked);
    }
}
