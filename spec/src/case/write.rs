//! Writing a case.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use safetensors::tensor::{Dtype, View};
use serde_json::{Map, Value};

use super::number::element_text;
use super::{CASE_FORMAT, Case, ValueRef};
use crate::ops::args::ArgWriter;
use crate::tensors_file;
use crate::{CaseError, HostTensor};

/// Most elements of an observed tensor that is put into the JSON where nothing says where it belongs.
pub(super) const MOST_INLINE: usize = 64;

impl Case {
    /// Writes the case to `path`, with its tensors (but inline ones) in a safetensors file of the same stem beside it.
    ///
    /// # Errors
    /// [`CaseError::Io`]; [`CaseError::Field`] where two tensors have one name.
    pub fn write(&self, path: &Path) -> Result<(), CaseError> {
        let file = path.display().to_string();
        let io = |source: std::io::Error| CaseError::Io { file: file.clone(), source };
        let tensors_path = path.with_extension("safetensors");
        if tensors_path == path {
            return Err(io(std::io::Error::other(
                "a case is JSON; name it .json, its tensors file is put beside it",
            )));
        }
        let named: Vec<(&str, Bytes<'_>)> =
            self.tensors.iter().filter(|t| !t.inline).map(|t| (t.name.as_str(), Bytes(&t.value))).collect();
        let mut seen = HashSet::new();
        if let Some((name, _)) = named.iter().find(|(name, _)| !seen.insert(*name)) {
            return Err(CaseError::Field {
                file,
                place: format!("tensor {name}"),
                message: "there are two of this name".to_owned(),
            });
        }
        let tensors_name = match tensors_path.file_name().and_then(|name| name.to_str()) {
            _ if named.is_empty() => None,
            Some(name) => Some(name),
            None => return Err(io(std::io::Error::other("the file's name is not UTF-8"))),
        };
        let text = self.render(tensors_name, false);
        if !named.is_empty() {
            safetensors::serialize_to_file(named, None, &tensors_path).map_err(|e| CaseError::Tensors {
                file: file.clone(),
                tensors: tensors_path.display().to_string(),
                message: e.to_string(),
            })?;
        }
        std::fs::write(path, text).map_err(io)
    }

    /// The case as JSON text with every tensor inline.
    pub fn to_json(&self) -> String {
        self.render(None, true)
    }

    /// One line for each field, node and observation.
    fn render(&self, tensors: Option<&str>, inline: bool) -> String {
        let operand = |at: ValueRef| self.operand_value(at, inline);
        let mut fields = vec![field("format", CASE_FORMAT.into()), field("name", self.name.as_str().into())];
        if !self.source.is_empty() {
            fields.push(field("source", self.source.as_str().into()));
        }
        if let Some(tensors) = tensors {
            fields.push(field("tensors", tensors.into()));
        }
        let nodes = self.nodes.iter().map(|node| {
            let mut args = ArgWriter::new(&operand);
            node.op.write(&mut args);
            object([
                ("id", node.id.as_str().into()),
                ("op", node.op.kind().name().into()),
                ("args", args.into_args().into()),
            ])
        });
        fields.push(field_of_lines("nodes", nodes));
        let outputs: Vec<Value> = self.outputs.iter().map(|&at| self.result_name(at).into()).collect();
        fields.push(field("outputs", outputs.into()));
        if !self.observed.is_empty() {
            let observed = self.observed.iter().map(|o| {
                object([
                    ("executor", o.executor.as_str().into()),
                    ("node", self.result_name(o.at).into()),
                    ("tensor", self.observed_value(&o.tensor, inline)),
                ])
            });
            fields.push(field_of_lines("observed", observed));
        }
        if let Some(expect) = &self.expect {
            // An expectation holds strings, numbers and maps with string keys only, so it is always JSON.
            fields.push(field("expect", serde_json::to_value(expect).unwrap_or_default()));
        }
        format!("{{\n{}\n}}\n", fields.join(",\n"))
    }

    fn operand_value(&self, at: ValueRef, inline: bool) -> Value {
        match at {
            ValueRef::Node { .. } => format!("%{}", self.result_name(at)).into(),
            ValueRef::Input(i) => {
                let tensor = &self.tensors[i];
                if tensor.inline || inline {
                    inline_value(&tensor.value)
                } else {
                    format!("@{}", tensor.name).into()
                }
            }
        }
    }

    /// An observed tensor that is none of the case's tensors stands inline.
    fn observed_value(&self, value: &Arc<HostTensor>, inline: bool) -> Value {
        match self.tensors.iter().position(|t| Arc::ptr_eq(&t.value, value)) {
            Some(i) => self.operand_value(ValueRef::Input(i), inline),
            None => inline_value(value),
        }
    }
}

fn object<const N: usize>(entries: [(&str, Value); N]) -> Value {
    entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>().into()
}

fn field(name: &str, value: Value) -> String {
    format!("  \"{name}\": {}", spaced(&value))
}

fn field_of_lines(name: &str, values: impl Iterator<Item = Value>) -> String {
    let lines: Vec<String> = values.map(|value| format!("    {}", spaced(&value))).collect();
    format!("  \"{name}\": [\n{}\n  ]", lines.join(",\n"))
}

/// JSON on one line with a space after each comma and colon.
fn spaced(value: &Value) -> String {
    match value {
        Value::Array(list) => format!("[{}]", list.iter().map(spaced).collect::<Vec<_>>().join(", ")),
        Value::Object(map) => {
            let entries =
                map.iter().map(|(key, value)| format!("{}: {}", Value::from(key.as_str()), spaced(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// The tensor as `{"dtype", "shape", "data"}`, its elements in the fewest digits that read back to them.
fn inline_value(tensor: &HostTensor) -> Value {
    let data: Vec<Value> = (0..tensor.len())
        .map(|i| {
            let (text, is_number) = element_text(tensor, i);
            // Without a point or an exponent, -0 would be read as the integer 0.
            match serde_json::from_str(&text) {
                Ok(number) if is_number => number,
                _ => text.into(),
            }
        })
        .collect();
    object([
        ("dtype", tensor.dtype().name().into()),
        ("shape", tensor.shape().to_vec().into()),
        ("data", data.into()),
    ])
}

/// A tensor's little-endian bytes, made when they are written.
struct Bytes<'t>(&'t HostTensor);

impl View for Bytes<'_> {
    fn dtype(&self) -> Dtype {
        tensors_file::to_file(self.0.dtype())
    }

    fn shape(&self) -> &[usize] {
        self.0.shape()
    }

    fn data(&self) -> Cow<'_, [u8]> {
        self.0.storage().to_le_bytes().into()
    }

    fn data_len(&self) -> usize {
        self.0.len() * self.0.dtype().size()
    }
}
