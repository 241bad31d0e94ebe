//! Names in a case: of the case itself, of nodes and their results, of tensors and ops.

use serde_json::value::RawValue;

use super::json;
use super::number::shorten;
use crate::OpKind;

/// What an operand's text refers to.
pub(super) enum Reference {
    /// `@name`
    Tensor(String),
    /// `%id` or `%id.1`
    Node(String),
}

/// # Errors
/// Where the value is neither `"@name"` nor `"%id"`.
pub(super) fn reference(value: &RawValue) -> Result<Reference, String> {
    let expected = "expected a tensor: \"@name\", \"%id\" or {\"dtype\", \"shape\", \"data\"}";
    if !json::is_string(value) {
        return Err(format!("{expected}; got {}", json::show(value)));
    }
    let text = json::string(value)?;
    match text.as_bytes().first() {
        Some(b'@') => Ok(Reference::Tensor(text[1..].to_owned())),
        Some(b'%') => Ok(Reference::Node(text[1..].to_owned())),
        _ => Err(format!("{expected}; got {}", json::show(value))),
    }
}

/// # Errors
/// Where there is no op of this name.
pub(super) fn op_kind(name: &str) -> Result<OpKind, String> {
    OpKind::from_name(name).ok_or_else(|| {
        let names = OpKind::ALL.iter().map(|k| k.name());
        let list: Vec<&str> = names.clone().collect();
        format!(
            "unknown op `{}`; the ops are {}{}",
            shorten(name),
            list.join(", "),
            json::suggestion(name, names)
        )
    })
}

/// `id.1` as `id` and 1. An id never ends in a point and digits, so this is unambiguous.
pub(super) fn split_result_name(name: &str) -> (&str, usize) {
    match name.rsplit_once('.') {
        Some((id, digits)) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => {
            (id, digits.parse().unwrap_or(usize::MAX))
        }
        _ => (name, 0),
    }
}

/// File names are made from a case's name.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let why = if name.is_empty() {
        "it is empty"
    } else if name.len() > 200 {
        "it is longer than 200 bytes"
    } else if name.starts_with('.') {
        "it starts with a point"
    } else if name.contains(['/', '\\']) {
        "it holds a path separator"
    } else if name.chars().any(char::is_control) {
        "it holds a control character"
    } else {
        return Ok(());
    };
    Err(format!("`{}` cannot be used, since file names are made from it: {why}", shorten(name)))
}

pub(super) fn check_id(id: &str) -> Result<(), String> {
    let why = if id.is_empty() {
        "it is empty"
    } else if id.len() > 200 {
        "it is longer than 200 bytes"
    } else if id.starts_with(['@', '%']) {
        "it starts with @ or %"
    } else if id.chars().any(|c| c.is_control() || c.is_whitespace()) {
        "it holds white space or a control character"
    } else if split_result_name(id).0 != id {
        "it ends in a point and a number, as the names of further results do"
    } else {
        return Ok(());
    };
    Err(format!("this id cannot be used: {why}"))
}
