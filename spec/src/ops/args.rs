//! How ops read their arguments from JSON and write them back.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{Scalar, TensorOrScalar};
use crate::case::json;
use crate::case::number::{parse_float, shorten};
use crate::{DType, InferError, OpKind, ValueRef};

/// Finds the tensor that an argument names or holds: `"@name"`, `"%id"`, or an inline tensor.
pub trait OperandSource {
    /// The operand, or what is wrong with it.
    ///
    /// # Errors
    /// A sentence about the value alone; the place is put before it.
    fn operand(&mut self, argument: &'static str, value: &RawValue) -> Result<ValueRef, String>;
}

/// The arguments of one call, each taken at most once, by name.
pub struct ArgReader<'a> {
    kind: OpKind,
    entries: Vec<(String, &'a RawValue)>,
    source: &'a mut dyn OperandSource,
}

impl<'a> ArgReader<'a> {
    /// Takes the object `args` apart.
    ///
    /// # Errors
    /// Where it is no object, or holds an argument twice or one that the op does not have.
    pub fn new(
        kind: OpKind,
        args: &'a RawValue,
        source: &'a mut dyn OperandSource,
    ) -> Result<ArgReader<'a>, InferError> {
        let entries = json::entries(args).map_err(|e| InferError::call(format!("args: {e}")))?;
        let names = kind.arguments();
        for (name, _) in &entries {
            if !names.contains(&name.as_str()) {
                return Err(InferError::call(format!(
                    "unknown argument `{}`; {kind} takes {}{}",
                    shorten(name),
                    names.join(", "),
                    json::suggestion(name, names.iter().copied())
                )));
            }
        }
        Ok(ArgReader { kind, entries, source })
    }

    /// The argument's value; null counts as absent.
    fn take(&mut self, name: &str) -> Option<&'a RawValue> {
        debug_assert!(self.kind.arguments().contains(&name));
        self.entries.iter().find(|(n, _)| n == name).map(|&(_, raw)| raw).filter(|raw| !json::is_null(raw))
    }

    fn require(&mut self, name: &'static str) -> Result<&'a RawValue, InferError> {
        let kind = self.kind;
        self.take(name).ok_or_else(|| InferError::argument(name, format!("{kind} needs it")))
    }

    /// The argument's value for an argument whose default is not null.
    fn with_default(&mut self, name: &'static str) -> Result<Option<&'a RawValue>, InferError> {
        match self.entries.iter().find(|(n, _)| n == name) {
            Some((_, raw)) if json::is_null(raw) => Err(InferError::argument(
                name,
                "null is not taken here; leave the argument out for its default",
            )),
            Some(&(_, raw)) => Ok(Some(raw)),
            None => Ok(None),
        }
    }

    fn resolve(&mut self, name: &'static str, raw: &RawValue) -> Result<ValueRef, InferError> {
        self.source.operand(name, raw).map_err(|e| InferError::argument(name, e))
    }

    /// A tensor that must be there.
    pub(super) fn tensor(&mut self, name: &'static str) -> Result<ValueRef, InferError> {
        let raw = self.require(name)?;
        self.resolve(name, raw)
    }

    /// A tensor, or nothing.
    pub(super) fn optional_tensor(&mut self, name: &'static str) -> Result<Option<ValueRef>, InferError> {
        self.take(name).map(|raw| self.resolve(name, raw)).transpose()
    }

    /// A tensor or a Python scalar.
    pub(super) fn tensor_or_scalar(
        &mut self,
        name: &'static str,
    ) -> Result<TensorOrScalar<ValueRef>, InferError> {
        let raw = self.require(name)?;
        if json::is_object(raw) || matches!(raw.get().as_bytes(), [b'"', b'@' | b'%', ..]) {
            self.resolve(name, raw).map(TensorOrScalar::Tensor)
        } else {
            scalar(raw).map(TensorOrScalar::Scalar).map_err(|e| InferError::argument(name, e))
        }
    }

    /// A Python scalar.
    pub(super) fn scalar(&mut self, name: &'static str, default: Scalar) -> Result<Scalar, InferError> {
        self.with_default(name)?.map_or(Ok(default), scalar).map_err(|e| InferError::argument(name, e))
    }

    /// A bool.
    pub(super) fn bool(&mut self, name: &'static str, default: bool) -> Result<bool, InferError> {
        let Some(raw) = self.with_default(name)? else { return Ok(default) };
        json::boolean(raw).ok_or_else(|| {
            InferError::argument(name, format!("expected true or false, got {}", json::show(raw)))
        })
    }

    /// A float64; an integer is taken too.
    pub(super) fn float(&mut self, name: &'static str, default: f64) -> Result<f64, InferError> {
        let Some(raw) = self.with_default(name)? else { return Ok(default) };
        float(raw).map_err(|e| InferError::argument(name, e))
    }

    /// An integer.
    pub(super) fn int(&mut self, name: &'static str, default: Option<i64>) -> Result<i64, InferError> {
        match (self.with_default(name)?, default) {
            (Some(raw), _) => int(raw).map_err(|e| InferError::argument(name, e)),
            (None, Some(default)) => Ok(default),
            (None, None) => Err(InferError::argument(name, format!("{} needs it", self.kind))),
        }
    }

    /// Integers, a list of any length.
    pub(super) fn ints(&mut self, name: &'static str) -> Result<Vec<i64>, InferError> {
        let raw = self.require(name)?;
        let mut list = Vec::new();
        json::for_each(raw, |_, element| {
            list.push(int(element)?);
            Ok(())
        })
        .map_err(|e| InferError::argument(name, format!("{e}; expected a list of integers")))?;
        Ok(list)
    }

    /// (height, width): a list of two integers, or one integer for both.
    pub(super) fn pair(&mut self, name: &'static str, default: [i64; 2]) -> Result<[i64; 2], InferError> {
        let Some(raw) = self.with_default(name)? else { return Ok(default) };
        pair(raw).map_err(|e| InferError::argument(name, e))
    }

    /// As [`ArgReader::pair`], where null (and, as in PyTorch, an empty list) stands for the default.
    pub(super) fn nullable_pair(&mut self, name: &'static str) -> Result<Option<[i64; 2]>, InferError> {
        let Some(raw) = self.take(name) else { return Ok(None) };
        if json::elements(raw).is_ok_and(|list| list.is_empty()) {
            return Ok(None);
        }
        pair(raw).map(Some).map_err(|e| InferError::argument(name, e))
    }

    /// As [`ArgReader::pair`], without a default.
    pub(super) fn required_pair(&mut self, name: &'static str) -> Result<[i64; 2], InferError> {
        let raw = self.require(name)?;
        pair(raw).map_err(|e| InferError::argument(name, e))
    }

    /// (height, width), each an integer or null: a list of two, or one integer for both.
    pub(super) fn required_pair_of_nullable(
        &mut self,
        name: &'static str,
    ) -> Result<[Option<i64>; 2], InferError> {
        let raw = self.require(name)?;
        let one = |raw: &RawValue| if json::is_null(raw) { Ok(None) } else { int(raw).map(Some) };
        let read = || -> Result<[Option<i64>; 2], String> {
            if !json::is_list(raw) {
                return one(raw).map(|size| [size; 2]);
            }
            match json::elements(raw)?[..] {
                [h, w] => Ok([one(h)?, one(w)?]),
                _ => Err(format!(
                    "expected an integer or a list of two integers or nulls, got {}",
                    json::show(raw)
                )),
            }
        };
        read().map_err(|e| InferError::argument(name, e))
    }

    /// The text of a string, or nothing.
    pub(super) fn text(&mut self, name: &'static str) -> Result<Option<String>, InferError> {
        self.take(name).map(|raw| json::string(raw).map_err(|e| InferError::argument(name, e))).transpose()
    }

    /// The name of a dtype, or nothing.
    pub(super) fn dtype(&mut self, name: &'static str) -> Result<Option<DType>, InferError> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        dtype(&text).map(Some).map_err(|e| InferError::argument(name, e))
    }

    /// The argument's raw value, null included.
    pub(super) fn raw(&mut self, name: &'static str) -> Option<&'a RawValue> {
        self.entries.iter().find(|(n, _)| n == name).map(|&(_, raw)| raw)
    }
}

/// The dtype of this name.
pub(crate) fn dtype(name: &str) -> Result<DType, String> {
    DType::from_name(name).ok_or_else(|| {
        let names = DType::ALL.map(DType::name);
        format!(
            "unknown dtype `{}`; expected one of {}{}",
            shorten(name),
            names.join(", "),
            json::suggestion(name, names)
        )
    })
}

/// A number with a point or an exponent is a float, as in Python; so is text such as `"inf"` or `"0x1.8p+3"`.
fn scalar(raw: &RawValue) -> Result<Scalar, String> {
    if let Some(b) = json::boolean(raw) {
        return Ok(Scalar::Bool(b));
    }
    match json::number(raw) {
        Some(digits) if !digits.contains(['.', 'e', 'E']) => int(raw).map(Scalar::Int),
        _ => float(raw).map(Scalar::Float),
    }
}

fn float(raw: &RawValue) -> Result<f64, String> {
    if let Some(digits) = json::number(raw) {
        return parse_float(digits, DType::F64);
    }
    if json::is_string(raw) {
        return parse_float(&json::string(raw)?, DType::F64);
    }
    Err(format!("expected a number, got {}", json::show(raw)))
}

fn int(raw: &RawValue) -> Result<i64, String> {
    let Some(digits) = json::number(raw) else {
        return Err(format!("expected an integer, got {}", json::show(raw)));
    };
    if digits.contains(['.', 'e', 'E']) {
        return Err(format!("expected an integer, got the float {}", json::show(raw)));
    }
    digits.parse().map_err(|_| format!("{} does not fit into 64 bits", json::show(raw)))
}

fn pair(raw: &RawValue) -> Result<[i64; 2], String> {
    if !json::is_list(raw) {
        return int(raw).map(|n| [n; 2]);
    }
    match json::elements(raw)?[..] {
        [n] => int(n).map(|n| [n; 2]),
        [h, w] => Ok([int(h)?, int(w)?]),
        _ => Err(format!("expected an integer or a list of two, got {}", json::show(raw))),
    }
}

/// The arguments of one call as JSON; those at their default are left out.
pub struct ArgWriter<'a> {
    operand: &'a dyn Fn(ValueRef) -> Value,
    args: Map<String, Value>,
}

impl<'a> ArgWriter<'a> {
    /// `operand` says how a tensor is written.
    pub fn new(operand: &'a dyn Fn(ValueRef) -> Value) -> ArgWriter<'a> {
        ArgWriter { operand, args: Map::new() }
    }

    /// What was written.
    pub fn into_args(self) -> Map<String, Value> {
        self.args
    }

    pub(super) fn tensor(&mut self, name: &str, value: ValueRef) {
        self.args.insert(name.to_owned(), (self.operand)(value));
    }

    pub(super) fn optional_tensor(&mut self, name: &str, value: Option<ValueRef>) {
        if let Some(value) = value {
            self.tensor(name, value);
        }
    }

    pub(super) fn tensor_or_scalar(&mut self, name: &str, value: TensorOrScalar<ValueRef>) {
        match value {
            TensorOrScalar::Tensor(t) => self.tensor(name, t),
            TensorOrScalar::Scalar(s) => self.put(name, scalar_value(s)),
        }
    }

    pub(super) fn put(&mut self, name: &str, value: impl Into<Value>) {
        self.args.insert(name.to_owned(), value.into());
    }

    pub(super) fn scalar(&mut self, name: &str, value: Scalar, default: Scalar) {
        if value != default {
            self.put(name, scalar_value(value));
        }
    }

    pub(super) fn float(&mut self, name: &str, value: f64, default: f64) {
        if value.to_bits() != default.to_bits() {
            self.put(name, float_value(value));
        }
    }

    pub(super) fn unless_default<T: PartialEq + Into<Value>>(&mut self, name: &str, value: T, default: T) {
        if value != default {
            self.put(name, value);
        }
    }

    /// One integer where both are the same.
    pub(super) fn pair(&mut self, name: &str, [h, w]: [i64; 2]) {
        self.put(name, if h == w { Value::from(h) } else { Value::from(vec![h, w]) });
    }

    pub(super) fn pair_unless_default(&mut self, name: &str, value: [i64; 2], default: [i64; 2]) {
        if value != default {
            self.pair(name, value);
        }
    }
}

fn scalar_value(s: Scalar) -> Value {
    match s {
        Scalar::Bool(b) => b.into(),
        Scalar::Int(i) => i.into(),
        Scalar::Float(x) => float_value(x),
    }
}

/// serde_json writes a float64 with a point or an exponent, in the fewest digits that read back to it.
fn float_value(x: f64) -> Value {
    if x.is_nan() {
        "nan".into()
    } else if x.is_infinite() {
        if x > 0.0 { "inf".into() } else { "-inf".into() }
    } else {
        x.into()
    }
}
