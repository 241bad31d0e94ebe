//! Raw JSON, taken apart one level at a time, so that numbers keep their digits and duplicate keys are seen.

use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::number::shorten;

/// What kind of JSON value it is, with an article.
pub(crate) fn kind(raw: &RawValue) -> &'static str {
    match raw.get().as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "a list",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a bool",
        Some(b'n') => "null",
        _ => "a number",
    }
}

/// The value for a message, shortened.
pub(crate) fn show(raw: &RawValue) -> String {
    shorten(raw.get())
}

pub(crate) fn is_null(raw: &RawValue) -> bool {
    raw.get() == "null"
}

pub(crate) fn is_list(raw: &RawValue) -> bool {
    raw.get().starts_with('[')
}

pub(crate) fn is_object(raw: &RawValue) -> bool {
    raw.get().starts_with('{')
}

pub(crate) fn is_string(raw: &RawValue) -> bool {
    raw.get().starts_with('"')
}

/// The digits of a number.
pub(crate) fn number(raw: &RawValue) -> Option<&str> {
    (kind(raw) == "a number").then(|| raw.get())
}

pub(crate) fn boolean(raw: &RawValue) -> Option<bool> {
    match raw.get() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// The text of a string.
///
/// # Errors
/// Where it is none, or holds an escape that is no character.
pub(crate) fn string(raw: &RawValue) -> Result<String, String> {
    if !is_string(raw) {
        return Err(format!("expected a string, got {}", kind(raw)));
    }
    serde_json::from_str(raw.get()).map_err(|e| format!("{} is not a valid string: {e}", show(raw)))
}

/// The entries of an object, in order.
///
/// # Errors
/// Where it is no object, or a key stands in it twice.
pub(crate) fn entries(raw: &RawValue) -> Result<Vec<(String, &RawValue)>, String> {
    struct Entries;
    impl<'de> Visitor<'de> for Entries {
        type Value = Vec<(String, &'de RawValue)>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut list = Vec::new();
            while let Some(entry) = map.next_entry::<String, &RawValue>()? {
                list.push(entry);
            }
            Ok(list)
        }
    }
    if !is_object(raw) {
        return Err(format!("expected an object, got {}", kind(raw)));
    }
    let list =
        serde_json::Deserializer::from_str(raw.get()).deserialize_map(Entries).map_err(|e| e.to_string())?;
    let mut seen = std::collections::HashSet::with_capacity(list.len());
    if let Some((twice, _)) = list.iter().find(|(key, _)| !seen.insert(key.as_str())) {
        return Err(format!("`{}` is given twice", shorten(twice)));
    }
    Ok(list)
}

/// Calls `f` with every element of a list, and returns their number.
///
/// # Errors
/// Where it is no list, and those of `f`.
pub(crate) fn for_each<'a>(
    raw: &'a RawValue,
    f: impl FnMut(usize, &'a RawValue) -> Result<(), String>,
) -> Result<usize, String> {
    struct Elements<F>(F);
    impl<'de, F: FnMut(usize, &'de RawValue) -> Result<(), String>> Visitor<'de> for Elements<F> {
        type Value = (usize, Result<(), String>);
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a list")
        }
        fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut count = 0;
            while let Some(element) = seq.next_element::<&RawValue>()? {
                if let Err(error) = (self.0)(count, element) {
                    while seq.next_element::<IgnoredAny>()?.is_some() {}
                    return Ok((count, Err(error)));
                }
                count += 1;
            }
            Ok((count, Ok(())))
        }
    }
    if !is_list(raw) {
        return Err(format!("expected a list, got {}", kind(raw)));
    }
    let (count, outcome) = serde_json::Deserializer::from_str(raw.get())
        .deserialize_seq(Elements(f))
        .map_err(|e| e.to_string())?;
    outcome.map(|()| count)
}

/// The elements of a list.
///
/// # Errors
/// Where it is no list.
pub(crate) fn elements(raw: &RawValue) -> Result<Vec<&RawValue>, String> {
    let mut list = Vec::new();
    for_each(raw, |_, element| {
        list.push(element);
        Ok(())
    })?;
    Ok(list)
}

/// The one of `names` that is nearest to a misspelt `name`, if one is near.
pub(crate) fn nearest<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    if name.len() > 64 {
        return None;
    }
    let (distance, best) = names
        .into_iter()
        .filter(|n| n.len() <= 64)
        .map(|n| (edit_distance(name, n), n))
        .min_by_key(|(distance, _)| *distance)?;
    (distance <= 1 + best.chars().count() / 4).then_some(best)
}

/// `; did you mean …?` or nothing.
pub(crate) fn suggestion<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> String {
    nearest(name, names).map_or_else(String::new, |n| format!("; did you mean `{n}`?"))
}

/// Levenshtein's distance.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
