//! Where the files of CUDA's libraries are, before any of them is loaded.
//!
//! cudarc asks the loader for `libcublas.so`, without a version, and takes what the loader finds first. So that it finds the files
//! chosen here, they are linked under these names in a folder that stands first on the loader's path of the process that uses
//! them. A library for which no file is chosen is left to the loader.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::Library;

/// Folders to look in, in this order.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// Named by the user: folders of libraries, or roots that hold such folders.
    pub named: Vec<PathBuf>,
    /// `site-packages` folders of the Python that has PyTorch, whose packages `nvidia` hold what PyTorch itself loads.
    pub packages: Vec<PathBuf>,
    /// The loader's path.
    pub loader: Vec<PathBuf>,
    /// Roots of CUDA toolkits.
    pub toolkits: Vec<PathBuf>,
}

/// How a file was come by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// In a folder that the user named.
    Named,
    /// Beside PyTorch.
    Packages,
    /// On the loader's path, or in a folder that loaders look in.
    Loader,
    /// In a CUDA toolkit.
    Toolkit,
}

impl Origin {
    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Origin::Named => "named by ULPIAN_CUDA_PATH",
            Origin::Packages => "beside torch",
            Origin::Loader => "on the loader's path",
            Origin::Toolkit => "in a CUDA toolkit",
        }
    }
}

/// A library's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// The library.
    pub library: Library,
    /// The file.
    pub file: PathBuf,
    /// How it was come by.
    pub origin: Origin,
}

/// Folders in which the loaders of Linux distributions, containers and WSL look.
const SYSTEM: [&str; 9] = [
    "/usr/local/nvidia/lib64",
    "/usr/lib/wsl/lib",
    "/run/opengl-driver/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
];
/// Where toolkits are, below their root.
const TOOLKIT: [&str; 4] = ["lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"];

/// A file for each library that has one; the first folder that holds one wins, and in it the preferred version. cuBLASLt comes
/// from cuBLAS's folder, since they are one release.
pub fn choose(places: &Places) -> Vec<Chosen> {
    let folders = folders(places);
    let mut chosen: Vec<Chosen> = Vec::new();
    for library in Library::ALL {
        let beside = match library {
            Library::CublasLt => chosen.iter().find(|c| c.library == Library::Cublas),
            _ => None,
        };
        let beside = beside.and_then(|c| Some((c.file.parent()?.to_owned(), c.origin)));
        let found = beside.iter().chain(&folders).find_map(|(folder, origin)| {
            let file =
                library.files().into_iter().map(|name| folder.join(name)).find(|file| file.is_file())?;
            Some(Chosen { library, file, origin: *origin })
        });
        chosen.extend(found);
    }
    chosen
}

/// Every folder, with how it was come by.
fn folders(places: &Places) -> Vec<(PathBuf, Origin)> {
    let below = |root: &PathBuf| TOOLKIT.map(|sub| root.join(sub)).into_iter().collect::<Vec<_>>();
    let mut folders = Vec::new();
    for named in &places.named {
        folders.push((named.clone(), Origin::Named));
        folders.extend(below(named).into_iter().chain(packages(named)).map(|f| (f, Origin::Named)));
    }
    folders.extend(places.packages.iter().flat_map(|p| packages(p)).map(|f| (f, Origin::Packages)));
    let system = SYSTEM.iter().map(PathBuf::from);
    folders.extend(places.loader.iter().cloned().chain(system).map(|f| (f, Origin::Loader)));
    folders.extend(places.toolkits.iter().flat_map(below).map(|f| (f, Origin::Toolkit)));
    folders
}

/// The folders of libraries in the packages `nvidia` below a `site-packages` folder: `cu13/lib` since CUDA 13, `cublas/lib` and
/// others before.
fn packages(site: &Path) -> Vec<PathBuf> {
    let parts = std::fs::read_dir(site.join("nvidia")).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> =
        parts.map(|part| part.path().join("lib")).filter(|f| f.is_dir()).collect();
    folders.sort();
    // The newest version of CUDA first, as `cu13` before `cu12`.
    folders.reverse();
    folders
}

/// Links the chosen files in `folder` under the names that cudarc asks for.
///
/// # Errors
/// Those of the file system, with the link.
pub fn link(chosen: &[Chosen], folder: &Path) -> Result<(), (PathBuf, std::io::Error)> {
    for one in chosen {
        let link = folder.join(format!("{}.so", one.library.name()));
        let target = one.file.canonicalize().unwrap_or_else(|_| one.file.clone());
        let _ = std::fs::remove_file(&link);
        symlink(&target, &link).map_err(|error| (link, error))?;
    }
    Ok(())
}

#[cfg(unix)]
fn symlink(target: &Path, link: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(not(unix))]
fn symlink(target: &Path, link: &Path) -> std::io::Result<()> {
    std::fs::copy(target, link).map(drop)
}

/// The loader's path for a process that uses the chosen files: the folder of links, the folders of the files, in which they find
/// their own parts, and what was on the path before.
pub fn loader_path(chosen: &[Chosen], links: &Path, before: Option<&OsStr>) -> OsString {
    let mut folders = vec![links.to_owned()];
    for folder in chosen.iter().filter_map(|c| c.file.parent()) {
        if !folders.iter().any(|f| f == folder) {
            folders.push(folder.to_owned());
        }
    }
    folders.extend(before.into_iter().flat_map(std::env::split_paths));
    std::env::join_paths(folders.iter().filter(|f| !f.as_os_str().is_empty()))
        .unwrap_or_else(|_| links.into())
}
