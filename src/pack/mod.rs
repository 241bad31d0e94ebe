//! Makes cases from tensor files and from calls written as text.

mod syntax;
mod tensors;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use ulpian_spec::case::{CASE_FORMAT, Limits};
use ulpian_spec::{Case, CaseError, tensors_file};

pub use syntax::{Call, Observation, SyntaxError, Word};
pub use tensors::Tensors;

use crate::import::{ImportError, PtLoader};

/// What a case is to hold, as text.
#[derive(Debug, Clone, Default)]
pub struct Recipe {
    /// The case's name.
    pub name: String,
    /// Where it comes from.
    pub source: String,
    /// Files whose tensors can be named.
    pub tensors: Vec<PathBuf>,
    /// Single tensors, `NAME=FILE[:KEY]`.
    pub tensor: Vec<String>,
    /// The calls.
    pub nodes: Vec<Call>,
    /// What was seen, `WHO[:NODE]=@TENSOR`.
    pub observed: Vec<String>,
    /// The results that count as outputs; the last node's where empty.
    pub outputs: Vec<String>,
}

/// Why a case cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// The text of a call, a tensor or an observation.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// A tensor file.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The case itself: an unknown op or argument, shapes that do not go together.
    #[error(transparent)]
    Case(#[from] CaseError),
    /// A file that cannot be written.
    #[error("{}: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Makes the case and writes it to `out`, its tensors beside it. Nothing is left behind where it turns out not to be valid.
///
/// # Errors
/// [`PackError`], naming the argument, the file or the place in the case.
pub fn pack(recipe: &Recipe, out: &Path, load_pt: PtLoader<'_>) -> Result<Case, PackError> {
    let io = |file: &Path| {
        let file = file.to_owned();
        move |source| PackError::Io { file, source }
    };
    let mut tensors = Tensors::open(&recipe.tensors, &recipe.tensor, load_pt)?;
    let mut document = document(recipe, &mut tensors)?;
    let taken = tensors.into_taken();
    let beside = out.with_extension("safetensors");
    if !taken.is_empty() {
        let name = beside.file_name().unwrap_or_default().to_string_lossy().into_owned();
        document.insert("tensors".to_owned(), Value::String(name));
    }

    let folder = match out.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    std::fs::create_dir_all(folder).map_err(io(folder))?;
    let staging = tempfile::Builder::new().prefix(".pack-").tempdir_in(folder).map_err(io(folder))?;
    let staged = |path: &Path| staging.path().join(path.file_name().unwrap_or_default());
    let (staged_case, staged_tensors) = (staged(out), staged(&beside));
    let mut text = Value::Object(document).to_string();
    text.push('\n');
    std::fs::write(&staged_case, text).map_err(io(out))?;
    if !taken.is_empty() {
        let list = taken.iter().map(|(name, t)| (name.clone(), t));
        tensors_file::write(&staged_tensors, list).map_err(io(&beside))?;
    }
    let case = Case::read(&staged_case, Limits::default()).map_err(|e| renamed(e, out))?;
    if !taken.is_empty() {
        std::fs::rename(&staged_tensors, &beside).map_err(io(&beside))?;
    }
    std::fs::rename(&staged_case, out).map_err(io(out))?;
    Ok(case)
}

/// The same error, about the file that was to be written.
fn renamed(error: CaseError, out: &Path) -> CaseError {
    let name = out.display().to_string();
    match error {
        CaseError::Io { source, .. } => CaseError::Io { file: name, source },
        CaseError::Json { message, .. } => CaseError::Json { file: name, message },
        CaseError::Tensors { tensors, message, .. } => CaseError::Tensors { file: name, tensors, message },
        CaseError::Field { place, message, .. } => CaseError::Field { file: name, place, message },
    }
}

fn document(recipe: &Recipe, tensors: &mut Tensors<'_>) -> Result<Map<String, Value>, PackError> {
    let mut nodes = Vec::new();
    let mut ids = Vec::new();
    for call in &recipe.nodes {
        let mut args = Map::new();
        for (name, word) in &call.args {
            args.insert(name.clone(), value(word, tensors)?);
        }
        nodes.push(json!({"id": call.id, "op": call.op, "args": args}));
        ids.push(call.id.clone());
    }
    let mut observed = Vec::new();
    for text in &recipe.observed {
        let seen = Observation::parse(text, &ids)?;
        let tensor = tensors.take(&seen.tensor)?;
        observed.push(json!({"executor": seen.executor, "node": seen.node, "tensor": format!("@{tensor}")}));
    }
    let outputs = match recipe.outputs.as_slice() {
        [] => ids.last().cloned().into_iter().collect(),
        given => given.to_vec(),
    };
    let mut document = Map::new();
    document.insert("format".to_owned(), json!(CASE_FORMAT));
    document.insert("name".to_owned(), json!(recipe.name));
    document.insert("source".to_owned(), json!(recipe.source));
    document.insert("nodes".to_owned(), json!(nodes));
    document.insert("outputs".to_owned(), json!(outputs));
    document.insert("observed".to_owned(), json!(observed));
    Ok(document)
}

fn value(word: &Word, tensors: &mut Tensors<'_>) -> Result<Value, PackError> {
    Ok(match word {
        Word::Tensor(name) => Value::String(format!("@{}", tensors.take(name)?)),
        Word::Literal(value) => value.clone(),
    })
}

/// The tensors that a case uses, by the names they have in it.
type Taken = BTreeMap<String, ulpian_spec::HostTensor>;
