//! The keys of an executor's name: which there are, and which values each takes.

use ulpian_spec::ExecutorId;
use ulpian_spec::executor::ExecutorIdError;

/// A key of an executor and the values it takes.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// Its values; none where it takes any number from 1 up.
    pub values: &'static [&'static str],
}

impl Key {
    pub(crate) const fn new(name: &'static str, values: &'static [&'static str]) -> Key {
        Key { name, values }
    }

    pub(crate) const fn count(name: &'static str) -> Key {
        Key { name, values: &[] }
    }

    fn accepts(&self, value: &str) -> bool {
        if self.values.is_empty() {
            value.parse::<u16>().is_ok_and(|n| n > 0)
        } else {
            self.values.contains(&value)
        }
    }

    fn describe(&self) -> String {
        let values = if self.values.is_empty() { "1, 2, …".to_owned() } else { self.values.join("|") };
        format!("{}={values}", self.name)
    }
}

pub(crate) fn error(id: &ExecutorId, why: impl Into<String>) -> ExecutorIdError {
    ExecutorIdError { text: id.to_string(), why: why.into() }
}

/// Checks that every key of `id` is one of `known`, with a value that it takes.
pub(crate) fn check(id: &ExecutorId, known: &[Key]) -> Result<(), ExecutorIdError> {
    for (name, value) in &id.keys {
        match known.iter().find(|key| key.name == name) {
            None if known.is_empty() => return Err(error(id, format!("it has no keys, so no `{name}`"))),
            None => {
                let all: Vec<String> = known.iter().map(Key::describe).collect();
                return Err(error(id, format!("no key `{name}`; its keys are {}", all.join(", "))));
            }
            Some(key) if !key.accepts(value) => {
                return Err(error(id, format!("`{name}={value}` is not one of {}", key.describe())));
            }
            Some(_) => {}
        }
    }
    Ok(())
}
