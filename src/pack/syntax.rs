//! Calls, values and observations as text.
//!
//! ```text
//! call         ID=OP ARG=VALUE …        fc=linear input=@x weight=@w bias=null
//! value        JSON, a bare word, a Python literal, @TENSOR, %ID
//! observation  WHO[:NODE]=@TENSOR       a100:fc=@seen
//! ```

use serde_json::Value;

/// Text that is not of the form asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}`: {why}")]
pub struct SyntaxError {
    /// The text.
    pub text: String,
    /// What is wrong with it, and what would be right.
    pub why: String,
}

pub(super) fn wrong(text: &str, why: impl Into<String>) -> SyntaxError {
    SyntaxError { text: text.to_owned(), why: why.into() }
}

/// The value of an argument.
#[derive(Debug, Clone, PartialEq)]
pub enum Word {
    /// `@NAME`, without the `@`.
    Tensor(String),
    /// Anything else, as it stands in the case.
    Literal(Value),
}

impl Word {
    /// Reads a value.
    ///
    /// # Errors
    /// [`SyntaxError`] where it begins like JSON and is not.
    pub fn parse(text: &str) -> Result<Word, SyntaxError> {
        if let Some(name) = text.strip_prefix('@') {
            return if name.is_empty() {
                Err(wrong(text, "a tensor's name is missing after `@`"))
            } else {
                Ok(Word::Tensor(name.to_owned()))
            };
        }
        let python = match text {
            "None" => Some(Value::Null),
            "True" => Some(Value::Bool(true)),
            "False" => Some(Value::Bool(false)),
            _ => None,
        };
        if let Some(value) = python {
            return Ok(Word::Literal(value));
        }
        // A Python tuple is a list.
        let inner = text.strip_prefix('(').and_then(|t| t.strip_suffix(')'));
        let json =
            inner.map_or_else(|| text.to_owned(), |t| format!("[{}]", t.trim_end().trim_end_matches(',')));
        match serde_json::from_str(&json) {
            // Quotes let a tensor's file name hold blanks.
            Ok(Value::String(quoted)) if quoted.starts_with('@') => Word::parse(&quoted),
            Ok(value) => Ok(Word::Literal(value)),
            Err(_) if text.starts_with('%') || is_word(text) => {
                Ok(Word::Literal(Value::String(text.to_owned())))
            }
            Err(e) => Err(wrong(text, format!("neither JSON ({e}) nor a bare word, @TENSOR or %ID"))),
        }
    }
}

/// A word such as `tanh`, `torch.float32` or `-inf`.
fn is_word(text: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '+');
    !text.is_empty() && text.chars().all(plain) && text.chars().any(char::is_alphabetic)
}

/// One node.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The node's name.
    pub id: String,
    /// The op.
    pub op: String,
    /// Its arguments by name.
    pub args: Vec<(String, Word)>,
}

impl Call {
    /// Reads `ID=OP ARG=VALUE …`.
    ///
    /// # Errors
    /// [`SyntaxError`]
    pub fn parse(text: &str) -> Result<Call, SyntaxError> {
        let form = "expected ID=OP ARG=VALUE …";
        let mut words = split(text)?.into_iter();
        let head = words.next().ok_or_else(|| wrong(text, form))?;
        let (id, op) = head.split_once('=').ok_or_else(|| wrong(text, form))?;
        Call::new(id, op, words)
    }

    /// A node from its parts, each argument `ARG=VALUE`.
    ///
    /// # Errors
    /// [`SyntaxError`]
    pub fn new(id: &str, op: &str, words: impl IntoIterator<Item = String>) -> Result<Call, SyntaxError> {
        if !is_name(id) || !is_name(op) {
            let why = "a node's name and its op may not be empty, nor hold blanks, quotes or brackets";
            return Err(wrong(&format!("{id}={op}"), why));
        }
        let mut args: Vec<(String, Word)> = Vec::new();
        for word in words {
            let (name, value) = word
                .split_once('=')
                .filter(|(name, _)| is_name(name))
                .ok_or_else(|| wrong(&word, "expected ARG=VALUE; name every argument, as in input=@x"))?;
            if args.iter().any(|(n, _)| n == name) {
                return Err(wrong(&word, format!("argument `{name}` of `{id}` is given twice")));
            }
            args.push((name.to_owned(), Word::parse(value)?));
        }
        Ok(Call { id: id.to_owned(), op: op.to_owned(), args })
    }
}

/// What may stand before a `=`.
fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || "\"[](){}".contains(c))
}

/// Words between blanks; blanks within brackets and quotes do not count.
fn split(text: &str) -> Result<Vec<String>, SyntaxError> {
    let (mut words, mut word) = (Vec::new(), String::new());
    let (mut depth, mut quoted, mut escaped) = (0usize, false, false);
    for c in text.chars() {
        if c.is_whitespace() && depth == 0 && !quoted {
            if !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
            continue;
        }
        match c {
            '"' if !escaped => quoted = !quoted,
            '[' | '(' | '{' if !quoted => depth += 1,
            ']' | ')' | '}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        escaped = quoted && c == '\\' && !escaped;
        word.push(c);
    }
    if quoted || depth > 0 {
        return Err(wrong(text, "a bracket or a quote is not closed"));
    }
    if !word.is_empty() {
        words.push(word);
    }
    Ok(words)
}

/// What somebody saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// The party.
    pub executor: String,
    /// The result: a node's name, or one of its further results, as in `pool.1`.
    pub node: String,
    /// The tensor, as [`Word::Tensor`] has it.
    pub tensor: String,
}

impl Observation {
    /// Reads `WHO[:NODE]=@TENSOR`. What follows the last colon is the node where it names one of `ids` or a further result of
    /// it (`pool.1`); otherwise it is part of the name, as in `torch:cuda`, and the last of `ids` was seen.
    ///
    /// # Errors
    /// [`SyntaxError`]
    pub fn parse(text: &str, ids: &[String]) -> Result<Observation, SyntaxError> {
        let form = "expected WHO=@TENSOR or WHO:NODE=@TENSOR";
        let (who, tensor) = text.rsplit_once("=@").ok_or_else(|| wrong(text, form))?;
        let named = |node: &str| {
            let result_of = |id: &String| {
                node.strip_prefix(id.as_str())
                    .and_then(|r| r.strip_prefix('.'))
                    .is_some_and(|n| n.parse::<u8>().is_ok())
            };
            ids.iter().any(|id| id == node || result_of(id))
        };
        let (executor, node) = match who.rsplit_once(':') {
            Some((executor, node)) if named(node) => (executor, node.to_owned()),
            _ => (who, ids.last().cloned().unwrap_or_default()),
        };
        if executor.is_empty() || tensor.is_empty() {
            return Err(wrong(text, form));
        }
        Ok(Observation { executor: executor.to_owned(), node, tensor: tensor.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_json_words_python_literals_or_references() {
        for (text, value) in [
            ("3", json!(3)),
            ("1e-5", json!(1e-5)),
            ("[64, 2]", json!([64, 2])),
            ("(3, 3)", json!([3, 3])),
            ("(64,)", json!([64])),
            ("null", json!(null)),
            ("None", json!(null)),
            ("True", json!(true)),
            ("tanh", json!("tanh")),
            ("\"tanh\"", json!("tanh")),
            ("torch.float32", json!("torch.float32")),
            ("-inf", json!("-inf")),
            ("%ln.1", json!("%ln.1")),
        ] {
            assert_eq!(Word::parse(text), Ok(Word::Literal(value)), "{text}");
        }
        for text in ["@x y.npy", "\"@x y.npy\""] {
            assert_eq!(Word::parse(text), Ok(Word::Tensor("x y.npy".to_owned())));
        }
        for text in ["", "@", "[1,", "{", "1 2", "((1)"] {
            assert!(Word::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_call_is_split_at_blanks_outside_brackets() {
        let call = Call::parse("ln=layer_norm input=@x normalized_shape=[2, 3]  eps=1e-5").unwrap();
        assert_eq!((call.id.as_str(), call.op.as_str(), call.args.len()), ("ln", "layer_norm", 3));
        assert_eq!(call.args[1], ("normalized_shape".to_owned(), Word::Literal(json!([2, 3]))));
    }

    #[test]
    fn calls_that_make_no_sense_are_refused() {
        for text in [
            "",
            "linear",
            "=linear",
            "fc=",
            "fc=linear @x",
            "fc=linear a=1 a=2",
            "fc=linear a=[1",
            "fc=linear =3",
            "fc=linear a{=@x}",
            "f\"c d\"=linear a=1",
            "fc=lin(ear) a=1",
        ] {
            assert!(Call::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_observation_is_of_a_node_or_of_the_last() {
        let ids = ["fc".to_owned(), "pool".to_owned()];
        let seen = |text| Observation::parse(text, &ids).map(|s| (s.executor, s.node, s.tensor));
        let is = |e: &str, n: &str, t: &str| Ok((e.to_owned(), n.to_owned(), t.to_owned()));
        assert_eq!(seen("a100=@y"), is("a100", "pool", "y"));
        assert_eq!(seen("a100:fc=@y.npy"), is("a100", "fc", "y.npy"));
        assert_eq!(seen("torch:cuda:pool.1=@i"), is("torch:cuda", "pool.1", "i"));
        assert_eq!(seen("torch:cuda?tf32=on=@y"), is("torch:cuda?tf32=on", "pool", "y"));
        for text in ["", "a100", "a100=y", "=@y", "a100=@"] {
            assert!(Observation::parse(text, &ids).is_err(), "{text}");
        }
    }
}
