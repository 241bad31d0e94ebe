//! From the name of a tensor, as a call gives it, to the tensor and the name it has in the case.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::syntax::wrong;
use super::{PackError, Taken};
use crate::import::{PtLoader, TensorFile, is_tensor_file};

/// A place that a tensor comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    file: PathBuf,
    key: String,
}

/// The tensors at hand. Only those that are taken are read and become part of the case.
pub struct Tensors<'a> {
    files: BTreeMap<PathBuf, TensorFile>,
    /// Every place that goes by a name.
    named: BTreeMap<String, Vec<Place>>,
    places: BTreeMap<String, Place>,
    taken: Taken,
    load_pt: PtLoader<'a>,
}

impl<'a> Tensors<'a> {
    /// Opens `files`, whose tensors go by their own names, and adds `single` ones, `NAME=FILE[:KEY]`, which come first.
    ///
    /// # Errors
    /// [`PackError`] where a file cannot be opened or a text is not of that form.
    pub fn open(
        files: &[PathBuf],
        single: &[String],
        load_pt: PtLoader<'a>,
    ) -> Result<Tensors<'a>, PackError> {
        let mut tensors = Tensors {
            files: BTreeMap::new(),
            named: BTreeMap::new(),
            places: BTreeMap::new(),
            taken: Taken::new(),
            load_pt,
        };
        for file in files {
            for key in tensors.file(file)?.names() {
                let place = Place { file: file.clone(), key: key.clone() };
                tensors.named.entry(key).or_default().push(place);
            }
        }
        for text in single {
            let (name, from) = text
                .split_once('=')
                .filter(|(name, from)| !name.is_empty() && !from.is_empty())
                .ok_or_else(|| wrong(text, "expected NAME=FILE or NAME=FILE:KEY"))?;
            let place = tensors.place(from)?.ok_or_else(|| {
                wrong(text, "expected a file after `=`: .npy, .npz, .safetensors, .pt or .pth, with :KEY where it holds several")
            })?;
            tensors.named.insert(name.to_owned(), vec![place]);
        }
        Ok(tensors)
    }

    /// Takes a tensor into the case and returns its name there. `text` is the name of one at hand or `FILE[:KEY]`.
    ///
    /// # Errors
    /// [`PackError`] where there is none, where two files hold one of that name, or where it cannot be read.
    pub fn take(&mut self, text: &str) -> Result<String, PackError> {
        let (name, place) = match self.named.get(text).map(Vec::as_slice) {
            Some([place]) => (text.to_owned(), place.clone()),
            Some(places) => {
                let files: Vec<String> = places.iter().map(|p| p.file.display().to_string()).collect();
                let why = format!(
                    "{} hold a tensor of this name; say which with --tensor {text}=FILE:{text}",
                    files.join(" and ")
                );
                return Err(wrong(&format!("@{text}"), why).into());
            }
            None => match self.place(text)? {
                Some(place) => (place.key.clone(), place),
                None => {
                    let at_hand: Vec<&str> = self.named.keys().map(String::as_str).collect();
                    let why = format!(
                        "no such tensor; at hand are: {}. Give files with --tensors, or a file itself: @x.npy, @a.npz:KEY",
                        if at_hand.is_empty() { "none".to_owned() } else { at_hand.join(", ") }
                    );
                    return Err(wrong(&format!("@{text}"), why).into());
                }
            },
        };
        let name = self.free_name(&name, &place);
        if !self.taken.contains_key(&name) {
            let tensor = self.file(&place.file)?.get(&place.key)?;
            self.taken.insert(name.clone(), tensor);
            self.places.insert(name.clone(), place);
        }
        Ok(name)
    }

    /// What was taken.
    pub(super) fn into_taken(self) -> Taken {
        self.taken
    }

    /// `name`, or `name_2`, … where another tensor has it already.
    fn free_name(&self, name: &str, place: &Place) -> String {
        let numbered = (2..).map(|n| format!("{name}_{n}"));
        std::iter::once(name.to_owned())
            .chain(numbered)
            .find(|n| self.places.get(n).is_none_or(|p| p == place))
            .unwrap_or_else(|| name.to_owned())
    }

    /// `FILE[:KEY]`; `None` where the text names no kind of tensor file.
    fn place(&mut self, text: &str) -> Result<Option<Place>, PackError> {
        let (file, key) = match text.rsplit_once(':') {
            _ if is_tensor_file(Path::new(text)) => (Path::new(text), None),
            Some((file, key)) if is_tensor_file(Path::new(file)) => (Path::new(file), Some(key.to_owned())),
            _ => return Ok(None),
        };
        let names = self.file(file)?.names();
        let key = match (key, names.as_slice()) {
            (Some(key), _) => key,
            (None, [only]) => only.clone(),
            (None, names) => {
                let why =
                    format!("holds {} tensors; name one: {text}:KEY (of {})", names.len(), names.join(", "));
                return Err(wrong(text, why).into());
            }
        };
        Ok(Some(Place { file: file.to_owned(), key }))
    }

    fn file(&mut self, path: &Path) -> Result<&mut TensorFile, PackError> {
        if !self.files.contains_key(path) {
            let file = TensorFile::open(path, self.load_pt)?;
            self.files.insert(path.to_owned(), file);
        }
        Ok(self.files.get_mut(path).expect("opened just above"))
    }
}
