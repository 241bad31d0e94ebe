//! Tensors from other people's files: `.npy`, `.npz`, `.safetensors`, and `.pt`/`.pth` through PyTorch itself.
//!
//! The files are not trusted: what a header claims is checked before anything is allocated for it, and nothing that could
//! run code (a pickle) is ever loaded here. A `.pt` file is a pickle; it is handed to a loader that the caller provides.

pub mod npy;
pub mod npz;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use ulpian_spec::HostTensor;

/// Most bytes that one imported tensor may take.
pub const MAX_TENSOR_BYTES: usize = 4 << 30;

/// A tensor file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It cannot be opened or read.
    #[error("{}: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Its content is not what it should be, or not something that Ulpian takes.
    #[error("{}: {message}", file.display())]
    Content {
        /// The file.
        file: PathBuf,
        /// What is wrong, and what would be right.
        message: String,
    },
    /// It holds no tensor of the name that was asked for.
    #[error("{}: no tensor `{name}`; it holds {}", file.display(), list(holds))]
    NoSuchTensor {
        /// The file.
        file: PathBuf,
        /// The name.
        name: String,
        /// The names that are there.
        holds: Vec<String>,
    },
}

fn list(names: &[String]) -> String {
    match names {
        [] => "none".to_owned(),
        names if names.len() <= 12 => names.join(", "),
        names => format!("{}, … ({} in all)", names[..12].join(", "), names.len()),
    }
}

/// Loads a `.pt` file: every tensor in it, by name.
pub type PtLoader<'a> = &'a mut dyn FnMut(&Path) -> Result<BTreeMap<String, HostTensor>, String>;

/// A file with named tensors, opened. Single tensors are read when asked for.
pub struct TensorFile {
    path: PathBuf,
    content: Content,
}

enum Content {
    Npy { name: String },
    Npz(npz::Archive<BufReader<File>>),
    Loaded(BTreeMap<String, HostTensor>),
}

/// Is this the name of a kind of file that [`TensorFile::open`] takes?
pub fn is_tensor_file(path: &Path) -> bool {
    matches!(extension(path).as_str(), "npy" | "npz" | "safetensors" | "pt" | "pth")
}

fn extension(path: &Path) -> String {
    path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase()).unwrap_or_default()
}

impl TensorFile {
    /// Opens a file; its kind is told by its extension. The tensor of a `.npy` file is named after the file.
    ///
    /// # Errors
    /// [`ImportError`], naming the file.
    pub fn open(path: &Path, load_pt: PtLoader<'_>) -> Result<TensorFile, ImportError> {
        let content = match extension(path).as_str() {
            "npy" => {
                open(path)?;
                Content::Npy { name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned() }
            }
            "npz" => {
                let file = BufReader::new(open(path)?);
                Content::Npz(npz::Archive::open(file).map_err(|m| wrong(path, m))?)
            }
            "safetensors" => {
                let tensors = ulpian_spec::tensors_file::read(path).map_err(|m| wrong(path, m))?;
                Content::Loaded(tensors)
            }
            "pt" | "pth" => {
                open(path)?;
                Content::Loaded(load_pt(path).map_err(|m| wrong(path, m))?)
            }
            _ => {
                let message =
                    "not a kind of file that tensors are read from: .npy, .npz, .safetensors, .pt, .pth";
                return Err(wrong(path, message.to_owned()));
            }
        };
        Ok(TensorFile { path: path.to_owned(), content })
    }

    /// The names of its tensors.
    pub fn names(&self) -> Vec<String> {
        match &self.content {
            Content::Npy { name } => vec![name.clone()],
            Content::Npz(archive) => archive.names(),
            Content::Loaded(tensors) => tensors.keys().cloned().collect(),
        }
    }

    /// One tensor.
    ///
    /// # Errors
    /// [`ImportError`], naming the file, where the tensor is not there or cannot be read.
    pub fn get(&mut self, name: &str) -> Result<HostTensor, ImportError> {
        let path = self.path.clone();
        let read = match &mut self.content {
            Content::Npy { name: only } if only == name => {
                let file = open(&path)?;
                let length =
                    file.metadata().map_err(|source| ImportError::Io { file: path.clone(), source })?.len();
                Some(npy::read(&mut BufReader::new(file), length))
            }
            Content::Npy { .. } => None,
            Content::Npz(archive) => archive.get(name),
            Content::Loaded(tensors) => tensors.get(name).cloned().map(Ok),
        };
        match read {
            Some(Ok(tensor)) => Ok(tensor),
            Some(Err(message)) => Err(wrong(&path, message)),
            None => Err(ImportError::NoSuchTensor { file: path, name: name.to_owned(), holds: self.names() }),
        }
    }
}

fn open(path: &Path) -> Result<File, ImportError> {
    ulpian_spec::tensors_file::open_regular(path)
        .map_err(|source| ImportError::Io { file: path.to_owned(), source })
}

fn wrong(path: &Path, message: String) -> ImportError {
    ImportError::Content { file: path.to_owned(), message }
}
